"""`tapestry metakernel show`: templates, and what they are for numbers and symbols."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.diagnostics import UsageError
from tapestry.tools._show_options import named_lists, named_values
from tapestry.tools.tapestry import main


def show(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["metakernel", "show", *map(str, arguments)])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_a_template_alone(capsys: pytest.CaptureFixture[str]):
    assert show("mean") == 0
    out, _ = capsys.readouterr()
    assert "{axis: int[] = []}\n  {keepdim: bool = false}" in out
    assert "index" not in out


def test_symbols_and_assumptions(capsys: pytest.CaptureFixture[str]):
    assert show("matmul", "--shapes", "X=[N, K],W=[L, M]", "--dtypes", "X=f16,W=f16") == 0
    assert (
        """
@matmul(X: [N, K] f16, W: [K, M] f16) -> result: [N, M] f16
  index
    d0  map       N  @row
    d1  map       M  @col
    d2  fold add  K  @inner
  X reads (d0, d1, d2) -> (d0, d2)
    [1 0 0 | 0]
    [0 0 1 | 0]
  W reads (d0, d1, d2) -> (d2, d1)
    [0 0 1 | 0]
    [0 1 0 | 0]
  result writes (d0, d1) -> (d0, d1)
    [1 0 | 0]
    [0 1 | 0]
  wrap: cast(X, f32) * cast(W, f32) : f32
  unwrap: cast(fold, f16) : f16
assuming K == L
"""
        in capsys.readouterr().out
    )


def test_numbers_and_parameters(capsys: pytest.CaptureFixture[str]):
    assert show("mean", "--shapes", "x=[2, 3]", "--params", "axis=-1,keepdim=true") == 0
    out, _ = capsys.readouterr()
    assert "result: [2, 1] f32" in out
    assert "unwrap: fold / 3.0 : f32" in out
    assert "assuming" not in out


def test_steps_are_shown_inside(capsys: pytest.CaptureFixture[str]):
    assert show("softmax", "--shapes", "x=[N, 8]") == 0
    out, _ = capsys.readouterr()
    assert "\n  peak = @max(wide: [N, 8] f32) -> result: [N, 1] f32\n    index\n" in out


def test_a_users_template_with_offsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "flip.yaml").write_text(
        'flip: {inputs: {x: {shape: "[$n, 4]", ipf: "[$n - 1 - @n, @k + 1]"}}, '
        'index: "[$n, k = 3]"}\n'
    )
    assert show("flip", "--shapes", "x=[2 * N + 10, 4]", "--metakernels", tmp_path) == 0
    out, _ = capsys.readouterr()
    assert "x reads (d0, d1) -> (-d0 + 2 * N + 9, d1 + 1)" in out
    assert "    [-1 0 | 2 * N + 9]\n    [ 0 1 |         1]\n" in out
    assert "moves cells alone" in out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nothing"], 1, "there is no metakernel @nothing"),
        (["transpose", "--shapes", "x=[N]"], 1, "parameter perm (int[]) is missing"),
        (["sum", "--shapes", "y=[N]"], 2, "y, which is no input of @sum"),
        (["add", "--shapes", "a=[N]"], 2, "--shapes a=[...],b=[...]"),
        (["relu", "--shapes", "x=N"], 2, "a list: x=[2, N]"),
        (["relu", "--shapes", "x=[N"], 2, "a list: x=[2, N]"),
        (["relu", "--shapes", "[N]"], 2, "no `name=value`"),
        (["relu", "--shapes", "x=[N],x=[2]"], 2, "given twice"),
        (["relu", "--shapes", "x=[N!]"], 1, "unexpected `!`"),
        (["relu", "--shapes", "x=[$N]"], 1, "is no size"),
        (["relu", "--shapes", "x=[-1]"], 1, "negative"),
        (["relu", "--shapes", "x=[4]", "--dtypes", "x=float"], 2, "there is no dtype float"),
        (["relu", "--shapes", "x=[4]", "--dtypes", "x=i1"], 1, "x has dtype i1"),
    ],
)  # fmt: skip
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str):
    assert show(*arguments) == code
    err = capsys.readouterr().err
    assert says in err
    assert err.count("error: ") == 1


def test_options_with_several_values():
    assert named_lists("shapes", " a = [ 1 , min(N, 2) ], b=[]") == {"a": [1, "min(N, 2)"], "b": []}
    assert named_values("params", None) == {}
    with pytest.raises(UsageError):
        named_values("params", "axis")

"""`tapestry metakernel check`: right templates, wrong ones, and examples that do not hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tapestry.metakernels import Library, load_library
from tapestry.metakernels.composition import check_steps
from tapestry.runtime.executor import Result
from tapestry.tools._check_examples import Depth, ExampleError, check_example
from tapestry.tools.tapestry import main

ROWS = """\
total:
  inputs: {x: {shape: "[$rows, $n]", dtype: number, ipf: "[@rows, @n]"}}
  index: "[$rows]"
  fold: {n: {extent: $n, monoid: add}}
  wrap: "x"
  outputs: {sums: {}}
  examples:
    - inputs: {x: [[1, 2, 3, 4], [5, 6, 7, 8]]}
      dtypes: {x: i32}
      outputs: {sums: [10, 26]}
"""


def check(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["metakernel", "check", *map(str, arguments)])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def changed(old: str, new: str) -> str:
    assert old in ROWS
    return ROWS.replace(old, new)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.yaml"
    path.write_text(ROWS)
    return path


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n"])
def test_a_file_without_templates(text: str, file: Path, capsys: pytest.CaptureFixture[str]):
    file.write_text(text)
    for path in (file, file.parent):
        assert check(path) == 2
        assert f"{path} holds no metakernel" in capsys.readouterr().err


def test_a_right_file(file: Path, capsys: pytest.CaptureFixture[str]):
    assert check(file) == 0
    out, err = capsys.readouterr()
    assert "1 metakernel, 1 example, 0 errors" in out
    assert err == ""


def test_a_folder_prints_its_kernels(file: Path, capsys: pytest.CaptureFixture[str]):
    assert check(file.parent, "--print-kernels") == 0
    assert "@triton.jit\ndef total_sums(" in capsys.readouterr().out


def test_the_kernels_can_be_too_large_to_run(file: Path, capsys: pytest.CaptureFixture[str]):
    assert check(file, "--points", 3) == 0
    assert "ran" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (changed("[10, 26]", "[10, 27]"), "8:7", "the reference does not agree"),
        (changed("[10, 26]", "[10, 26, 0]"), "8:7", "sums has shape [2], and the"),
        (changed("{sums: [10", "{result: [10"), "8:7", "result is no output"),
        (changed("{x: [[1", "{y: [[1"), "8:7", "y is no input"),
        (changed("[[1, 2, 3, 4]", "[[1, 2, 3]"), "8:7", "x is no array of numbers"),
        (changed("[[1, 2, 3, 4], [5, 6, 7, 8]]", "[1]"), "8:7", "x has rank 1"),
        (changed("x: i32", "x: int32"), "8:7", "unknown dtype int32 of x"),
        (changed("wrap", "warp"), "5:3", "unknown key `warp`"),
        (changed("$rows, $n]", "$rows, $n"), "2:34", "unexpected end"),
    ],
)  # fmt: skip
def test_what_does_not_hold(
    file: Path, capsys: pytest.CaptureFixture[str], text: str, where: str, says: str
):
    file.write_text(text)
    assert check(file) == 1
    out, err = capsys.readouterr()
    assert err.startswith(f"{file}:{where}: error: template total")
    assert says in err
    assert "1 error" in out


def test_every_mistake_is_reported(file: Path, capsys: pytest.CaptureFixture[str]):
    file.write_text(
        changed("[10, 26]", "[0, 0]") + changed("total:", "other:").replace("$n]", "$n")
    )
    assert check(file, "--issues-json") == 1
    out, err = capsys.readouterr()
    assert [issue["kind"] for issue in json.loads(err)] == ["example", "parse_error"]
    assert "2 metakernels, 1 example, 2 errors" in out


def test_an_executor_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch):
    from tapestry.runtime import numpy_executor
    from tapestry.runtime.triton import executor as triton_executor

    library = load_library()
    template = library.get("sum")
    assert check_example(template, 0, library, Depth()).partitions > 0
    for module, kind in ((numpy_executor, "NumpyExecutor"), (triton_executor, "TritonExecutor")):
        executor = getattr(module, kind)
        right = executor.run

        def wrong(self: object, *arguments: object, right: Callable[..., Result] = right):
            result = right(self, *arguments)
            return type(result)(tuple(out + 1 for out in result.outputs), result.records)

        with monkeypatch.context() as patch:
            patch.setattr(executor, "run", wrong)
            with pytest.raises(ExampleError, match="does not agree"):
                check_example(template, 0, library, Depth())


def test_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert check(tmp_path / "missing.yaml") == 2
    assert check(tmp_path) == 2
    assert "holds no *.yaml file" in capsys.readouterr().err
    (tmp_path / "bad.yaml").write_text("a: [")
    assert check(tmp_path) == 1
    assert "bad.yaml:2:1: error: this is not YAML" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[[1, 2, 3, 4]", "[[1, 2, 1.7, 4]", "x[0, 2] is 1.7, and i32 holds whole numbers"),
        ("[[1, 2, 3, 4]", "[[1, 2, .nan, 4]", "x[0, 2] is nan, and i32 holds whole numbers"),
        ("[[1, 2, 3, 4]", "[[1, 2, 4294967297, 4]", "i32 goes from -2147483648 to 2147483647"),
        ("x: i32", "x: i1", "x[0, 1] is 2, which is out of the range of i1"),
        ("[10, 26]", "[10, 26.5]", "sums[1] is 26.5, and i32 holds whole numbers"),
    ],
)
def test_numbers_that_a_dtype_does_not_hold(file, old, new, says, capsys):
    file.write_text(changed(old, new))
    assert check(file) == 1
    err = capsys.readouterr().err
    assert f"{file}:" in err
    assert says in err


def test_a_number_out_of_the_range_of_a_float(file, capsys):
    file.write_text(changed("x: i32", "x: f16").replace("[[1,", "[[1.0e+5,"))
    assert check(file) == 1
    err = capsys.readouterr().err
    assert "x[0, 0] is 100000.0, which is out of the range of f16" in err
    assert "f16 goes up to 65504; infinity is written .inf" in err


_INPUT = 'inputs: {x: {shape: "[$n]", dtype: float}}'


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ("result: {op: nope, x: x}", "step result of made: there is no metakernel @nope"),
        ("result: {op: exp, y: x}", "step result of made: exp has no input or parameter y"),
        ("result: {op: exp}", "step result of made: input x of exp is not given"),
        ("t: {op: exp, x: result}, result: {op: exp, x: t}", "result is no input and no earlier"),
        ("result: {op: concat, tensors: '[x, z...]'}", "z is no input and no earlier step"),
        ("result: {op: exp, x: 'x...'}", "`x...` names no tensor"),
        ("result: {op: concat, tensors: '[x, x'}", "`[x, x` is no list of tensors"),
        ("result: {op: made, x: x}", "made is made of itself: made -> made"),
        ("result: {op: other, x: x}", "made is made of itself: made -> other -> made"),
    ],
)
def test_steps_without_an_example(
    steps: str, says: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = f"other:\n  {_INPUT}\n  steps: {{result: {{op: made, x: x}}}}\n"
    file.write_text(f"made:\n  {_INPUT}\n  steps: {{{steps}}}\n{other if 'other' in says else ''}")
    assert check(file) == 1
    err = capsys.readouterr().err
    assert says in err
    assert f"{file}:" in err


def test_composites_of_composites_are_checked_once_each(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are 4^15 ways from the last one to the first."""
    steps = ", ".join(f"s{n}: {{op: OP, x: x}}" for n in range(3)) + ", result: {op: OP, x: x}"
    text = "".join(
        f"c{n}:\n  {_INPUT}\n  steps: {{{steps.replace('OP', f'c{n - 1}' if n else 'exp')}}}\n"
        for n in range(15)
    )
    file.write_text(text)
    asked: list[str] = []
    get = Library.get
    monkeypatch.setattr(Library, "get", lambda self, name: asked.append(name) or get(self, name))
    assert check(file) == 0
    assert len(asked) < 3000


def test_all_composites_of_the_library_are_made_of_what_there_is() -> None:
    library = load_library()
    for name in library.names:
        check_steps(library.get(name), library)

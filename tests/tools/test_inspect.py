"""`tapestry inspect` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.tools.tapestry import main

PROGRAM = """
!t = !loom.tensor<[0] : [6], f32>
func.func @main(%x: !t) -> !t {
  %y = weft.apply @relu(%x) : (!t) -> !t
  func.return %y : !t
}
"""


def test_a_table_of_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    with pytest.raises(SystemExit) as done:
        main(["inspect", str(path), "-p", "weft-apply,loom-shard{shards=3}"])
    assert done.value.code == 0
    shown = capsys.readouterr().out
    (row,) = [line for line in shown.splitlines() if "@y" in line and "│" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["@y", "[0] : [6]", "3", "24 bytes", "24 bytes", "0 bytes", "6"]
    assert "scalar operations: 6 arith.maximumf" in shown
    assert "at most 48 bytes of tensors are stored at once, at @y" in shown


def test_mistakes_are_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text(PROGRAM.replace("@relu(%x)", "@relu(%z)"))
    for arguments, code in (([str(wrong)], 1), ([str(path), "-p", "no-such-pass"], 2)):
        with pytest.raises(SystemExit) as done:
            main(["inspect", *arguments])
        assert done.value.code == code
        assert capsys.readouterr().err.count("error: ") == 1


@pytest.mark.parametrize("command", ["inspect", "explain"])
@pytest.mark.parametrize(
    ("passes", "says"),
    [
        ("loom-fuse", "p.mlir:4:3: error: weft.apply is no operation of loom"),
        ("default,loom-to-triton", "hint: end the pipeline before loom-to-triton"),
    ],
)
def test_what_is_not_in_loom_is_said(
    command: str, passes: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    with pytest.raises(SystemExit) as done:
        main([command, str(path), "-p", passes])
    assert done.value.code == 1
    assert says in capsys.readouterr().err

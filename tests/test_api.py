"""What `import tapestry` gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapestry

_TEXT = """
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = weft.apply @sum(%x) {axis = 0 : i64}
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}
"""


def test_every_public_name_is_there() -> None:
    assert all(getattr(tapestry, name) is not None for name in dir(tapestry))
    with pytest.raises(AttributeError, match="no attribute 'gone'"):
        _ = tapestry.gone  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
def test_a_program_from_text_to_outputs(on: str, tmp_path: Path) -> None:
    (tmp_path / "sum.mlir").write_text(_TEXT)
    module = tapestry.load_module(tmp_path / "sum.mlir")
    tapestry.run_pipeline(module, "weft-apply,loom-shard{shards=2}")
    result = tapestry.run(module, {"x": np.arange(4, dtype=np.float32)}, on=on)
    assert result.outputs[0] == 6
    assert result.records[0].bytes_read >= 16
    assert [argument.name for argument in tapestry.arguments(module)] == ["x"]


def test_mistakes_are_of_one_kind() -> None:
    module = tapestry.parse_module(_TEXT, "sum.mlir")
    tapestry.run_pipeline(module, "weft-apply")
    x = np.arange(4, dtype=np.float32)
    for inputs, on, message in (
        ({}, "numpy", "the input x is missing"),
        ({"x": x[:3]}, "numpy", r"must be float32 of shape \(4,\)"),
        ({"x": x, "z": x}, "numpy", "there is no argument named z"),
        ({"x": x}, "tpu", "there is no executor 'tpu'"),
    ):
        with pytest.raises(tapestry.TapestryError, match=message):
            tapestry.run(module, inputs, on=on)


def test_arguments_have_the_names_they_are_written_with() -> None:
    kind = "!loom.tensor<[0] : [2], f32>"
    arguments = ", ".join(f"%{name}: {kind}" for name in ("w_1", "w_2", "0"))
    text = f"func.func @main({arguments}) -> {kind} {{ func.return %w_2 : {kind} }}"
    module = tapestry.parse_module(text)
    assert [argument.name for argument in tapestry.arguments(module)] == ["w_1", "w_2", "0"]
    one, two = np.zeros(2, np.float32), np.ones(2, np.float32)
    (got,) = tapestry.run(module, {"w_1": one, "w_2": two, "0": one}).outputs
    assert got.tolist() == [1, 1]


def test_importing_is_light() -> None:
    heavy = ["numpy", "xdsl", "lark", "triton"]
    code = f"import sys, tapestry; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_mistyped_metakernel_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match="no attribute 'softmaxx'; did you mean softmax"):
        tapestry.softmaxx  # noqa: B018 (to look it up is the test)


def test_what_is_no_array_is_refused_by_name() -> None:
    x = tapestry.input("x", (3,))
    with pytest.raises(tapestry.TapestryError, match="the input x: str is no array of numbers"):
        tapestry.run(x + 1, x="abc")

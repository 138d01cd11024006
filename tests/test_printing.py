"""Modules as text keep the names of arguments, by which inputs are given."""

from pathlib import Path

import numpy as np
import pytest

import tapestry
from tapestry.frontend import parse_text
from tapestry.printing import text_of

VECTOR = "!loom.tensor<[0] : [2], f32>"


def program(*names: str, inner: str = "y") -> str:
    taken = ", ".join(f"%{name}: {VECTOR}" for name in names)
    first, second = names[:2]
    return (
        f"func.func @main({taken}) -> {VECTOR} {{\n"
        f"  %{inner} = weft.apply @sub(%{first}, %{second}) : ({VECTOR}, {VECTOR}) -> {VECTOR}\n"
        f"  func.return %{inner} : {VECTOR}\n"
        "}"
    )


ARGUMENTS = (("x", "y"), ("x_2", "x_1"), ("x_1", "x"), ("x", "x_1"), ("a.b_0", "_3", "a.b"))
PAIRS = [(names, inner) for names in ARGUMENTS for inner in ("z", "x", "a.b") if inner not in names]


@pytest.mark.parametrize(("names", "inner"), PAIRS)
def test_names_are_kept(names: tuple[str, ...], inner: str) -> None:
    module = parse_text(program(*names, inner=inner))
    for pipeline in ("", "weft-apply"):
        module = parse_text(text_of(module))
        assert tuple(one.name for one in tapestry.arguments(module)) == names
        tapestry.run_pipeline(module, pipeline)
    inputs = {name: np.full(2, number, "f4") for number, name in enumerate(names)}
    (made,) = tapestry.run(parse_text(text_of(module)), inputs, on="reference").outputs
    assert made.tolist() == [-1, -1]


def test_saved_programs_take_what_they_took(tmp_path: Path) -> None:
    later, first = (tapestry.input(name, (2,)) for name in ("x_2", "x_1"))
    tapestry.save(later - first, tmp_path / "model.mlir")
    ones = np.ones(2, "f4")
    assert tapestry.load(tmp_path / "model.mlir")(x_1=ones, x_2=3 * ones).tolist() == [2, 2]

"""Folds of folds are one fold, whatever is folded first, and however it lies in between."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor


def _tensor(shape: list[int], element: str) -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {shape}, {element}>"


def _program(random: Random) -> tuple[str, list[int], str]:
    """Two folds by one metakernel, and between them a scale, a transposition, a reshape, or none.

    Gives its text, the shape of what it takes, and the type.
    """
    element = random.choice(["f32", "i32"])
    fold = random.choice(["sum", "max", "min"])
    shape = [random.randint(2, 4) for _ in range(4)]
    lines: list[str] = []
    now, count = "%x", 0

    def apply(what: str, operands: str, options: str, before: list[int], after: list[int]) -> None:
        nonlocal now, count
        kinds = _tensor(before, element)
        if operands:
            kinds += f", {_tensor([], element)}"
        count += 1
        lines.append(
            f"%v{count} = weft.apply @{what}({now}{operands}) {options} : ({kinds}) -> "
            f"{_tensor(after, element)}"
        )
        now = f"%v{count}"

    def reduce(before: list[int]) -> list[int]:
        axis = random.randrange(len(before))
        after = before[:axis] + before[axis + 1 :]
        apply(fold, "", f"{{axis = [{axis}]}}", before, after)
        return after

    left = reduce(shape)
    match random.choice(["scale", "transpose", "reshape", "none"]):
        case "scale" if element == "f32" and fold == "sum":
            lines.append(f"%half = loom.constant 0.5 : {_tensor([], element)}")
            apply("mul", ", %half", "", left, left)
        case "transpose":
            perm = random.sample(range(3), 3)
            moved = [left[p] for p in perm]
            apply("transpose", "", f"{{perm = {perm}}}", left, moved)
            left = moved
        case "reshape":
            merged = [left[0] * left[1], left[2]]
            apply("reshape", "", f"{{shape = {merged}}}", left, merged)
            left = merged
        case _:
            pass
    left = reduce(left)
    body = "\n".join(lines)
    text = f"""func.func @main(%x: {_tensor(shape, element)}) -> {_tensor(left, element)} {{
      {body}
      func.return {now} : {_tensor(left, element)}
    }}"""
    return text, shape, element


@pytest.mark.parametrize("seed", range(12))
def test_values_stay(seed: int) -> None:
    text, shape, element = _program(Random(seed))
    module = parse_text(text)
    numbers = np.random.default_rng(seed).normal(scale=9, size=shape)
    given = {"x": numbers.astype("f4" if element == "f32" else "i4")}
    run_pipeline(module, "weft-apply")
    (want,) = find_executor("reference").run(module, given, NoWatch()).outputs
    run_pipeline(module, "loom-simplify,loom-fuse{cells=1}")
    verify_module(module)
    assert sum(isinstance(op, loom.OperationOp) for op in module.walk()) == 1
    for on in ("reference", "numpy"):
        (got,) = find_executor(on).run(module, given, NoWatch()).outputs
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)

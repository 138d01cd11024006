"""Programs that are linked, for tests: what they are given, and that they give what scripts do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tapestry
from tapestry.runtime.prepared import PreparedProgram

SHAPE = (48, 40)
Expression = Any
Array = np.ndarray


def inputs(count: int, dtype: Any = np.float32) -> list[Array]:
    random = np.random.default_rng(0)
    return [(4 * random.standard_normal(SHAPE)).astype(dtype) for _ in range(count)]


def prepared(results: Sequence[Expression] | Expression) -> PreparedProgram:
    return PreparedProgram(tapestry.compile(results).lowered)


def named(count: int, dtype: str = "float32") -> list[Expression]:
    return [tapestry.input(name, SHAPE, dtype) for name in "xyz"[:count]]


def by_script(program: PreparedProgram, arrays: Sequence[Array]) -> list[Array]:
    with np.errstate(all="ignore"):
        return [np.array(one) for one in program.run.script(arrays)]


def check(program: PreparedProgram, arrays: Sequence[Array], *, linked: bool = True) -> None:
    """Several calls give what the script does, the later ones by one call."""
    program(arrays)
    assert (program.run.at_once(arrays) is not None) == linked
    again = [one[::-1].copy() for one in arrays]
    for one in (arrays, again):
        for got, want in zip(program(one), by_script(program, one), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got.astype("f8"), want.astype("f8"))


def check_same(program: PreparedProgram, arrays: Sequence[Array]) -> None:
    for _ in range(3):
        for got, want in zip(program(arrays), by_script(program, arrays), strict=True):
            np.testing.assert_array_equal(got, want)
    assert program.run.linked is not None

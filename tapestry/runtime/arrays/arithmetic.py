"""Which numbers a program is run on: those that its types say, unless `using` says otherwise.

    with using(wide):                       # every float is an 80-bit one
        ReferenceExecutor().run(module, inputs, NoWatch())

An arithmetic says how cells are stored and what scalar operations do; how cells are found, folded
and moved stays the executor's. That is how one evaluator serves several kinds of numbers.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.runtime.executor import Array


class Arithmetic(Protocol):
    """Another kind of numbers than those that the types of a program say."""

    def dtype(self, element: Attribute) -> np.dtype[Any]:
        """How cells of an element type are stored."""
        ...

    def constant(self, value: float, element: Attribute) -> Array:
        """A number that a program names, as an array without dimensions."""
        ...

    def compute(self, op: Operation, operands: Sequence[Array]) -> Array:
        """What a scalar operation of a body makes of its operands, in the result's `dtype`."""
        ...


_CURRENT: ContextVar[Arithmetic | None] = ContextVar("arithmetic", default=None)


def current_arithmetic() -> Arithmetic | None:
    """The arithmetic that `using` chose here; None for what the types say."""
    return _CURRENT.get()


@contextmanager
def using(arithmetic: Arithmetic | None) -> Generator[None]:
    """Run on other numbers inside; None for what the types say."""
    token = _CURRENT.set(arithmetic)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def cell_dtype(element: Attribute) -> np.dtype[Any]:
    """How cells of an element type are stored here."""
    arithmetic = _CURRENT.get()
    return numpy_dtype(element) if arithmetic is None else arithmetic.dtype(element)


def cell_constant(value: complex, element: Attribute) -> Array:
    """A number of an element type here, as an array without dimensions."""
    arithmetic = _CURRENT.get()
    if arithmetic is None or isinstance(value, complex):  # others are of real numbers
        return np.asarray(value).astype(numpy_dtype(element))
    return arithmetic.constant(value, element)

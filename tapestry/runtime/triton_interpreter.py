"""Triton's interpreter, made right where it is wrong and fast where it is slow.

`interpreted()` is the state of the process in which `@triton.jit` functions are defined and run on
the CPU. Inside it, these differ from the interpreter as Triton 3.9 ships it:

* bfloat16 is stored as 16-bit integers, and converting to it cuts digits off, `tl.dot` multiplies
  the integers. Here conversions round to nearest even, and dots multiply the numbers.
* `tl.reduce` with a combiner of the program's own walks cell by cell. Here it combines whole
  slices, neighbours first, which is the same for any associative combiner.

Kernels that Tapestry prints do no other arithmetic in bfloat16.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from tapestry.diagnostics import TapestryError

_SWITCH = "TRITON_INTERPRET"


class InterpreterUnavailableError(TapestryError):
    """This process has loaded Triton for a GPU, so it cannot interpret."""

    kind = "interpreter_unavailable"


@contextmanager
def interpreted() -> Generator[None]:
    """Define and run Triton kernels on the CPU.

    Raises InterpreterUnavailableError when this process imported Triton for a GPU before: Triton
    decides once, when it is imported.
    """
    with _environment(_SWITCH, "1"):
        if "triton" in sys.modules and not _interprets():
            raise InterpreterUnavailableError(
                "Triton was imported for a GPU in this process, and there is none to run on",
                hint=f"start Python with {_SWITCH}=1 in the environment",
            )
        with _corrected(), np.errstate(all="ignore"):
            yield


def _interprets() -> bool:
    """Whether Triton's own functions were defined for the interpreter."""
    return type(import_module("triton.language").sum).__name__ == "InterpretedFunction"


@contextmanager
def _corrected() -> Generator[None]:
    interpreter: Any = import_module("triton.runtime.interpreter")
    language: Any = import_module("triton.language")
    bfloat16 = language.bfloat16
    builder = interpreter.InterpreterBuilder
    handle = interpreter.TensorHandle
    cast_impl: Callable[..., Any] = builder.cast_impl
    create_dot: Callable[..., Any] = builder.create_dot

    def numbers(tensor: Any) -> Any:
        """The numbers in a tile, bfloat16 as float32."""
        if tensor.dtype.scalar != bfloat16:
            return tensor.data
        return tensor.data.view(ml_dtypes.bfloat16).astype(np.float32)

    def cast(self: Any, source: Any, target: Any) -> Any:
        if bfloat16 not in (source.dtype.scalar, target.scalar):
            return cast_impl(self, source, target)
        data = np.ascontiguousarray(numbers(source))
        if target.scalar == bfloat16:
            return handle(data.astype(ml_dtypes.bfloat16).view(np.uint16), bfloat16)
        kind = interpreter._get_np_dtype(target)  # noqa: SLF001
        return handle(data.astype(kind), target.scalar)

    def dot(self: Any, a: Any, b: Any, acc: Any, *options: Any) -> Any:
        if bfloat16 not in (a.dtype.scalar, b.dtype.scalar):
            return create_dot(self, a, b, acc, *options)
        product = np.matmul(numbers(a), numbers(b))
        return handle((product + acc.data).astype(acc.data.dtype), acc.dtype.scalar)

    def reduce(self: Any, given: Any) -> list[Any]:
        tiles, axis = self.unravel(given, self.axis)
        kinds = [tile.dtype for tile in tiles]
        parts = [np.moveaxis(tile.handle.data, axis, 0) for tile in tiles]
        while len(parts[0]) > 1:
            halves = [part[side::2] for side in (0, 1) for part in parts]
            states = zip(halves, kinds * 2, strict=True)
            made = self.combine_fn.fn(*(self.to_tensor(half, kind) for half, kind in states))
            merged = list(made) if len(parts) > 1 else [made]
            parts = [
                np.broadcast_to(part.handle.data, halves[0].shape).astype(half.dtype)
                for part, half in zip(merged, halves, strict=False)
            ]
        folded = [part[0] for part in parts]
        if self.keep_dims:
            folded = [np.expand_dims(part, axis) for part in folded]
        return [self.to_tensor(part, kind) for part, kind in zip(folded, kinds, strict=True)]

    with (
        _replaced(builder, "cast_impl", cast),
        _replaced(builder, "create_dot", dot),
        _replaced(interpreter.ReduceOps, "generic_reduce", reduce),
    ):
        yield


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Generator[None]:
    """`owner.name` is `value` for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _environment(name: str, value: str) -> Generator[None]:
    """The environment variable `name` is `value` for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before

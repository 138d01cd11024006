"""Where Triton's interpreter is wrong or slow, and what it does instead while kernels run.

As shipped in Triton 3.6 to 3.9:

* bfloat16 is stored as 16-bit integers; converting to it cuts digits off, `tl.dot` multiplies the
  integers, 3.6 has no constants of it. Here conversions round to nearest even and dots multiply the
  numbers. (Kernels that Tapestry prints do no other arithmetic in bfloat16.)
* A comparison of two scalars is taken for a number of their type when it is repeated to a tile.
* `tl.reduce` and `tl.associative_scan` with a combiner of the program's own walk cell by cell. Here
  they combine whole slices, neighbours first, which is the same for any associative combiner.
* It skips assertions. Here they run, and its own checks of integer overflow do not: integers wrap.
* Maxima and minima take either zero; on a GPU 0.0 is larger than -0.0.
* 3.6 rounds `tl.fma` twice, lets NaN win in `tl.maximum` where a GPU drops it, and takes loop
  bounds that are arguments for arrays, which NumPy 2.4 no longer does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from tapestry.algebra import functions


@contextmanager
def corrected() -> Generator[None]:
    """The interpreter of this process, corrected for a while."""
    interpreter: Any = import_module("triton.runtime.interpreter")
    builder = interpreter.InterpreterBuilder
    corrections: list[tuple[Any, str, Callable[..., Any]]] = [
        (builder, "cast_impl", _cast(interpreter)),
        (builder, "create_dot", _dot(interpreter)),
        (builder, "create_splat", _splat(interpreter)),
        (builder, "create_fma", _multiply_add(interpreter)),
        (builder, "create_maximumf", _elementwise(functions.larger)),
        (builder, "create_minimumf", _elementwise(functions.smaller)),
        (builder, "create_maxnumf", _elementwise(functions.larger_number)),
        (builder, "create_minnumf", _elementwise(functions.smaller_number)),
        (builder, "get_bf16", _bfloat16_constant(interpreter)),
        (interpreter.ReduceOps, "generic_reduce", _reduce),
        (interpreter.ScanOps, "generic_scan", _scan),
        (interpreter, "_patch_lang_tensor", _bounds(interpreter)),
        (interpreter.interpreter_builder, "options", _checking(interpreter)),
    ]
    with ExitStack() as stack:
        for owner, name, value in corrections:
            stack.enter_context(_replaced(owner, name, value))
        yield


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Generator[None]:
    """`owner.name` is `value` for a while; it need not have been there."""
    missing = object()
    before = getattr(owner, name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _numbers(tile: Any, bfloat16: Any) -> Any:
    """The numbers in a tile, bfloat16 as float32."""
    if tile.dtype.scalar != bfloat16:
        return tile.data
    return tile.data.view(ml_dtypes.bfloat16).astype(np.float32)


def _cast(interpreter: Any) -> Callable[..., Any]:
    as_shipped, handle = interpreter.InterpreterBuilder.cast_impl, interpreter.TensorHandle
    bfloat16 = import_module("triton.language").bfloat16

    def cast(self: Any, source: Any, target: Any) -> Any:
        if bfloat16 not in (source.dtype.scalar, target.scalar):
            return as_shipped(self, source, target)
        data = np.ascontiguousarray(_numbers(source, bfloat16))
        if target.scalar == bfloat16:
            return handle(data.astype(ml_dtypes.bfloat16).view(np.uint16), bfloat16)
        kind = interpreter._get_np_dtype(target)  # noqa: SLF001
        return handle(data.astype(kind), target.scalar)

    return cast


def _dot(interpreter: Any) -> Callable[..., Any]:
    as_shipped, handle = interpreter.InterpreterBuilder.create_dot, interpreter.TensorHandle
    bfloat16 = import_module("triton.language").bfloat16

    def dot(self: Any, a: Any, b: Any, acc: Any, *options: Any) -> Any:
        if bfloat16 not in (a.dtype.scalar, b.dtype.scalar):
            return as_shipped(self, a, b, acc, *options)
        product = np.matmul(_numbers(a, bfloat16), _numbers(b, bfloat16))
        return handle((product + acc.data).astype(acc.data.dtype), acc.dtype.scalar)

    return dot


def _splat(interpreter: Any) -> Callable[..., Any]:
    as_shipped, handle = interpreter.InterpreterBuilder.create_splat, interpreter.TensorHandle
    truth = import_module("triton.language").int1

    def splat(self: Any, kind: Any, source: Any) -> Any:
        if source.data.dtype != np.bool_:
            return as_shipped(self, kind, source)
        return handle(np.full(kind.shape, source.data.item()), truth)

    return splat


def _multiply_add(interpreter: Any) -> Callable[..., Any]:
    def multiply_add(_self: Any, a: Any, b: Any, c: Any) -> Any:
        return interpreter.TensorHandle(
            functions.multiply_add(a.data, b.data, c.data), c.dtype.scalar
        )

    return multiply_add


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: Any, a: Any, b: Any) -> Any:
        return self.binary_op(a, b, function)

    return apply


def _bfloat16_constant(interpreter: Any) -> Callable[..., Any]:
    bfloat16 = import_module("triton.language").bfloat16

    def constant(_self: Any, value: float) -> Any:
        data = np.array([value], ml_dtypes.bfloat16).view(np.uint16)
        return interpreter.TensorHandle(data, bfloat16)

    return constant


def _bounds(interpreter: Any) -> Callable[..., Any]:
    as_shipped = interpreter._patch_lang_tensor  # noqa: SLF001

    def index(self: Any) -> int:
        return int(self.handle.data.item())

    def patch(tensor: Any, scope: Any) -> None:
        as_shipped(tensor, scope)
        scope.set_attr(tensor, "__index__", index)

    return patch


def _checking(interpreter: Any) -> Any:
    options = interpreter.interpreter_builder.options
    return replace(options, debug=True, sanitize_overflow=False)


def _reduce(self: Any, given: Any) -> list[Any]:
    """A reduction by a combiner of the program's own, slice by slice."""
    tiles, axis = self.unravel(given, self.axis)
    kinds = [tile.dtype for tile in tiles]
    parts = [np.moveaxis(tile.handle.data, axis, 0) for tile in tiles]
    while len(parts[0]) > 1:
        halves = [part[side::2] for side in (0, 1) for part in parts]
        states = zip(halves, kinds * 2, strict=True)
        parts = _combined(self, states)
    folded = [part[0] for part in parts]
    if self.keep_dims:
        folded = [np.expand_dims(part, axis) for part in folded]
    return [self.to_tensor(part, kind) for part, kind in zip(folded, kinds, strict=True)]


def _scan(self: Any, tiles: Any) -> list[Any]:
    """A scan by a combiner of the program's own: log2(n) times, every state with an earlier one."""
    kinds = [tile.dtype for tile in tiles]
    parts = [np.moveaxis(tile.handle.data, self.axis, 0) for tile in tiles]
    step = 1
    while step < len(parts[0]):
        # Whole tiles: the interpreter only takes powers of two. What wraps around is unused.
        states = [*(np.roll(part, step, 0) for part in parts), *parts]
        later = _combined(self, zip(states, kinds * 2, strict=True))
        pairs = zip(parts, later, strict=True)
        parts = [np.concatenate([part[:step], new[step:]]) for part, new in pairs]
        step *= 2
    scanned = [np.ascontiguousarray(np.moveaxis(part, 0, self.axis)) for part in parts]
    return [self.to_tensor(part, kind) for part, kind in zip(scanned, kinds, strict=True)]


def _combined(self: Any, states: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Two states combined; each is arrays with their element types, one after the other."""
    given = list(states)
    made = self.combine_fn.fn(*(self.to_tensor(array, kind) for array, kind in given))
    merged = list(made) if len(given) > 2 else [made]
    return [
        np.broadcast_to(part.handle.data, array.shape).astype(array.dtype)
        for part, (array, _) in zip(merged, given, strict=False)
    ]

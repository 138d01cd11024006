"""Random small programs of metakernels, for hypothesis: chains and diamonds on positioned tensors.

A drawn program is text, inputs, and what is known of each output: whether every executor must give
the same bits, and how large its values may be (which scales the tolerance where folds reassociate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import exp, prod

import numpy as np
from hypothesis import strategies as st

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import Array, NoWatch, find_executor

Shape = tuple[int, ...]

_DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
_EXTENTS = (1, 2, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Value:
    """A tensor of the program: `bound` limits |cells|; `exact` values have the same bits always."""

    name: str
    shape: Shape
    start: Shape
    dtype: str
    bound: float
    exact: bool

    @property
    def type(self) -> str:
        end = [s + n for s, n in zip(self.start, self.shape, strict=True)]
        return f"!loom.tensor<{list(self.start)} : {end}, {self.dtype}>"


@dataclass(repr=False)
class Program:
    """A program under construction; `values` are all tensors so far, arguments first."""

    values: list[Value] = field(default_factory=list[Value])
    arguments: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    outputs: list[Value] = field(default_factory=list[Value])
    max_cells: int = 400

    def __repr__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        arguments = ", ".join(f"%{v.name}: {v.type}" for v in self.arguments)
        types = ", ".join(v.type for v in self.outputs)
        names = ", ".join(f"%{v.name}" for v in self.outputs)
        body = "\n".join(f"  {line}" for line in self.lines)
        return (
            f"func.func @main({arguments}) -> ({types}) {{\n{body}\n"
            f"  func.return {names} : {types}\n}}\n"
        )

    def naive(self) -> tuple[Array, ...]:
        """What each operation whole, in order, gives."""
        module = parse_text(self.text)
        run_pipeline(module, "weft-apply")
        return find_executor("reference").run(module, self.inputs, NoWatch()).outputs

    def compare(self, got: Sequence[Array], want: Sequence[Array], near: float = 1e-5) -> None:
        """Assert that outputs agree: in their bits, or in f32 within `near` of the largest."""
        for value, have, expected in zip(self.outputs, got, want, strict=True):
            assert have.dtype == expected.dtype, value.name
            if value.exact:
                np.testing.assert_array_equal(have, expected, err_msg=f"%{value.name}")
            else:
                atol = (near if value.dtype == "f32" else 1e-12) * max(value.bound, 1.0)
                np.testing.assert_allclose(have, expected, rtol=0, atol=atol, err_msg=value.name)


def _start(draw: st.DrawFn, rank: int) -> Shape:
    return tuple(draw(st.lists(st.integers(-3, 5), min_size=rank, max_size=rank)))


def _argument(draw: st.DrawFn, program: Program, shape: Shape, dtype: str) -> Value:
    name = f"a{len(program.arguments)}"
    value = Value(name, shape, _start(draw, len(shape)), dtype, 3.0, exact=True)
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    if dtype == "i32":
        array = generator.integers(-3, 4, shape, dtype=np.int32)
    else:
        array = generator.uniform(-1.5, 1.5, shape).astype(_DTYPES[dtype])
    program.inputs[name] = array
    program.arguments.append(value)
    program.values.append(value)
    return value


def _apply(
    draw: st.DrawFn,
    program: Program,
    kernel: str,
    operands: list[Value],
    shape: Shape,
    *,
    dtype: str | None = None,
    bound: float,
    exact: bool,
    parameters: str = "",
) -> None:
    name = f"v{len(program.lines)}"
    dtype = dtype or operands[0].dtype
    exact = exact and all(v.exact for v in operands)
    result = Value(name, shape, _start(draw, len(shape)), dtype, bound, exact or dtype == "i32")
    values = ", ".join(f"%{v.name}" for v in operands)
    types = ", ".join(v.type for v in operands)
    program.lines.append(
        f"%{name} = weft.apply @{kernel}({values}) {parameters} : ({types}) -> {result.type}"
    )
    program.values.append(result)


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    pairs = list(zip_longest(reversed(a), reversed(b), fillvalue=1))
    if any(x != y and 1 not in (x, y) for x, y in pairs):
        return None
    return tuple(reversed([y if x == 1 else x for x, y in pairs]))


def _elementwise(draw: st.DrawFn, program: Program, x: Value) -> None:
    kernel = draw(st.sampled_from(["relu", "gelu", "exp", "neg"]))
    is_float = x.dtype != "i32"
    if kernel == "gelu" and is_float:
        _apply(draw, program, "gelu", [x], x.shape, bound=x.bound, exact=False)
    elif kernel == "exp" and is_float and x.bound <= 6:
        _apply(draw, program, "exp", [x], x.shape, bound=exp(x.bound), exact=False)
    elif kernel == "neg":
        _apply(draw, program, "neg", [x], x.shape, bound=x.bound, exact=True)
    else:
        _apply(draw, program, "relu", [x], x.shape, bound=x.bound, exact=True)


def _binary(draw: st.DrawFn, program: Program, x: Value) -> None:
    kernel = draw(st.sampled_from(["add", "mul"]))
    others = [
        v for v in program.values if v.dtype == x.dtype and _broadcast(x.shape, v.shape) is not None
    ]
    y = draw(st.sampled_from(others))
    shape = _broadcast(x.shape, y.shape)
    assert shape is not None
    bound = x.bound + y.bound if kernel == "add" else x.bound * y.bound
    if bound < 1e6 and prod(shape) <= program.max_cells:
        _apply(draw, program, kernel, [x, y], shape, bound=bound, exact=True)


def _fold(draw: st.DrawFn, program: Program, x: Value) -> None:
    if not x.shape:
        return
    axis = draw(st.integers(-len(x.shape), len(x.shape) - 1))
    n = x.shape[axis]
    kernel = draw(st.sampled_from(["sum", "max", "argmax", "softmax"]))
    place = axis % len(x.shape)
    keep = draw(st.booleans())
    folded = (*x.shape[:place], *((1,) if keep else ()), *x.shape[place + 1 :])
    parameters = f"{{axis = {axis} : i64, keepdim = {str(keep).lower()}}}"
    if kernel == "sum":
        bound = x.bound * max(n, 1)
        if bound < 1e6:
            _apply(
                draw, program, "sum", [x], folded, bound=bound, exact=False, parameters=parameters
            )
    elif n == 0:
        return
    elif kernel == "argmax" and x.exact:
        _apply(
            draw,
            program,
            "argmax",
            [x],
            folded,
            dtype="i64",
            bound=n,
            exact=True,
            parameters=parameters,
        )
    elif kernel == "softmax" and x.dtype != "i32":
        parameters = f"{{axis = {axis} : i64}}"
        _apply(draw, program, "softmax", [x], x.shape, bound=1, exact=False, parameters=parameters)
    else:
        _apply(draw, program, "max", [x], folded, bound=x.bound, exact=True, parameters=parameters)


def _contract(draw: st.DrawFn, program: Program, x: Value) -> None:
    if len(x.shape) < 2:
        return
    inner, columns = x.shape[-1], draw(st.integers(1, 5))
    bound = x.bound * 3 * max(inner, 1)
    shape = (*x.shape[:-1], columns)
    if bound > 1e6 or prod(shape) > program.max_cells:
        return
    if draw(st.booleans()) and x.dtype != "i32":
        w = _argument(draw, program, (inner, columns), x.dtype)
        b = _argument(draw, program, (columns,), x.dtype)
        _apply(draw, program, "linear", [x, w, b], shape, bound=bound + 3, exact=False)
        return
    batch = x.shape[:-2] if draw(st.booleans()) else ()
    w = _argument(draw, program, (*batch, inner, columns), x.dtype)
    _apply(draw, program, "matmul", [x, w], shape, bound=bound, exact=False)


def _move(draw: st.DrawFn, program: Program, x: Value) -> None:
    if draw(st.booleans()):
        order = draw(st.permutations(range(len(x.shape))))
        shape = tuple(x.shape[d] for d in order)
        parameters = f"{{perm = {list(order)}}}"
        _apply(
            draw, program, "transpose", [x], shape, bound=x.bound, exact=True, parameters=parameters
        )
        return
    shape = draw(st.sampled_from(_reshapes(x.shape)))
    parameters = f"{{shape = {list(shape)}}}"
    _apply(draw, program, "reshape", [x], shape, bound=x.bound, exact=True, parameters=parameters)


def _reshapes(shape: Shape) -> list[Shape]:
    """Some shapes with as many cells: merged, split, and regrouped."""
    cells = prod(shape)
    found = {shape, (cells,)}
    if len(shape) > 1:
        found.add((shape[0] * shape[1], *shape[2:]))
        found.add((*shape[:-2], shape[-2] * shape[-1]))
    for factor in (2, 3):
        if cells and cells % factor == 0:
            found.add((factor, cells // factor))
    for dim, n in enumerate(shape):
        if n and n % 2 == 0:
            found.add((*shape[:dim], n // 2, 2, *shape[dim + 1 :]))
    return sorted(found)


_STEPS = (_elementwise, _binary, _fold, _contract, _move)


@st.composite
def programs(draw: st.DrawFn, extents: tuple[int, ...] = _EXTENTS, max_cells: int = 400) -> Program:
    """A program of one to six applications; several of its values are returned."""
    program = Program(max_cells=max_cells)
    dtype = draw(st.sampled_from(sorted(_DTYPES)))
    rank = draw(st.integers(1, 3))
    extent = st.sampled_from(extents)
    _argument(draw, program, tuple(draw(extent) for _ in range(rank)), dtype)
    for _ in range(draw(st.integers(1, 6))):
        candidates = [v for v in program.values if v.dtype == dtype]
        # Mostly the newest value, which makes chains; older ones make diamonds.
        x = candidates[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(candidates))
        draw(st.sampled_from(_STEPS))(draw, program, x)
    read = "\n".join(line.split(" = ", 1)[1] for line in program.lines)
    unread = [v for v in program.values if f"%{v.name}" not in read and v not in program.arguments]
    extra = draw(st.lists(st.sampled_from(program.values), max_size=1))
    program.outputs = list(dict.fromkeys([*unread, *extra])) or [program.values[-1]]
    return program

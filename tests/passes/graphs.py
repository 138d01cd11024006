"""Random graphs for passes: what a graph is, and how far floats may be from the reference.

    graph = random_graph(Random(7))
    graph.text                      # @main of weft.apply, loom.operation, views, assemblies, ...
    graph.inputs                    # an array per argument
    graph.outputs                   # values with their bounds and the errors that are allowed

Every value carries `bound`, which limits its cells, and `error`, which limits how far a schedule
that reassociates folds, or an executor whose `exp` is another, may be from the reference: the
rounding of each step, and what a step makes of the errors of what it reads, to first order. What
jumps where its argument moves (a comparison, an argmax) is applied only where `error` is 0. So the
tolerance of a test is derived, not tuned; integers are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

import ml_dtypes
import numpy as np

from tapestry.attributes import attribute_of
from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.runtime.executor import Array

Shape = tuple[int, ...]

DTYPES: dict[str, np.dtype] = {
    "f64": np.dtype("f8"),
    "f32": np.dtype("f4"),
    "f16": np.dtype("f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i64": np.dtype("i8"),
    "i32": np.dtype("i4"),
    "i8": np.dtype("i1"),
    "i1": np.dtype("?"),
}

ROUNDING = {"f64": 2.3e-16, "f32": 1.2e-7, "f16": 1e-3, "bf16": 8e-3}
"""How much a rounded number may differ, relative to its size."""

MOST_CELLS = 300
MOST_POINTS = 2500


@dataclass(frozen=True)
class Value:
    """A tensor of the graph: where it stands, and what is known of its cells."""

    name: str
    start: Shape
    shape: Shape
    dtype: str
    bound: float
    error: float = 0.0

    @property
    def type(self) -> str:
        end = [s + n for s, n in zip(self.start, self.shape, strict=True)]
        return f"!loom.tensor<{list(self.start)} : {end}, {self.dtype}>"

    @property
    def is_float(self) -> bool:
        return self.dtype in ROUNDING

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def cells(self) -> int:
        return prod(self.shape)


@dataclass(repr=False)
class Graph:
    """A program under construction."""

    random: Random
    scale: int = 1
    """How many times as large an axis may be."""
    values: list[Value] = field(default_factory=list[Value])
    arguments: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    monoids: dict[str, str] = field(default_factory=dict[str, str])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    outputs: list[Value] = field(default_factory=list[Value])
    steps: list[str] = field(default_factory=list[str])

    def __repr__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        arguments = ", ".join(f"%{v.name}: {v.type}" for v in self.arguments)
        types = ", ".join(v.type for v in self.outputs)
        names = ", ".join(f"%{v.name}" for v in self.outputs)
        body = "\n".join(f"  {line}" for line in self.lines)
        return (
            "\n".join(self.monoids.values())
            + f"\nfunc.func @main({arguments}) -> ({types}) {{\n{body}\n"
            f"  func.return {names} : {types}\n}}\n"
        )

    def start(self, rank: int) -> Shape:
        """Where a tensor starts: at zero as often as not."""
        if self.random.random() < 0.5:
            return (0,) * rank
        return tuple(self.random.randint(-3, 4) for _ in range(rank))

    @property
    def most_cells(self) -> int:
        """Cells of the largest tensor."""
        return MOST_CELLS * self.scale**2

    @property
    def most_points(self) -> int:
        """Points of the largest index space."""
        return MOST_POINTS * self.scale**2

    def has_room(self, value: Value) -> bool:
        """Whether a tensor is small enough for what makes it larger."""
        return value.cells <= self.most_cells // 4

    def extent(self, most: int = 6) -> int:
        small = self.random.choice([n for n in (1, 2, 3, 4, 4, 5, 6, 8) if n <= most])
        if self.scale == 1 or self.random.random() < 0.4:
            return small
        return small * self.scale - self.random.choice([0, 0, 1, self.scale // 2])

    def shape(self, rank: int, most: int = 6) -> Shape:
        return tuple(self.extent(most) for _ in range(rank))

    def argument(
        self, shape: Shape, dtype: str, low: float | None = None, high: float | None = None
    ) -> Value:
        """A new argument; integers from `low` to `high`, floats in eighths."""
        name = f"a{len(self.arguments)}"
        low = (-3 if low is None else low) if dtype != "i1" else 0
        high = (3 if high is None else high) if dtype != "i1" else 1
        numbers = np.random.default_rng(self.random.randrange(1 << 20))
        scale = 8 if dtype in ROUNDING else 1
        array = numbers.integers(round(low * scale), round(high * scale) + 1, shape) / scale
        value = Value(name, self.start(len(shape)), shape, dtype, max(abs(low), abs(high), 1))
        self.inputs[name] = array.astype(DTYPES[dtype])
        self.arguments.append(value)
        self.values.append(value)
        return value

    def pick(
        self, test: Callable[[Value], bool] = lambda _: True, *, newest: float = 0.6
    ) -> Value | None:
        """A value that fits: the newest one often, which makes chains."""
        fitting = [v for v in self.values if conditioned(v) and test(v)]
        if not fitting:
            return None
        return fitting[-1] if self.random.random() < newest else self.random.choice(fitting)

    def add(
        self, text: str, kinds: Sequence[tuple[Shape, Shape, str]], bound: float, error: float
    ) -> list[Value]:
        """A line whose results are on boxes of starts and shapes; RESULTS stands for their types.

        `error` is of what is computed; rounding it to the dtype of the results is added here.
        """
        first = len(self.lines)
        if error:
            error += bound * max(ROUNDING.get(dtype, 0.0) for *_, dtype in kinds)
        made = [
            Value(
                f"v{first}" if len(kinds) == 1 else f"v{first}_{n}",
                start,
                shape,
                dtype,
                bound,
                error if dtype in ROUNDING else 0.0,
            )
            for n, (start, shape, dtype) in enumerate(kinds)
        ]
        names = ", ".join(f"%{v.name}" for v in made)
        types = ", ".join(v.type for v in made)
        if len(made) != 1:
            types = f"({types})"
        self.lines.append(f"{names} = {text.replace('RESULTS', types)}")
        self.values += made
        return made

    def apply(
        self,
        name: str,
        operands: Sequence[Value | list[Value]],
        /,
        *,
        bound: float,
        error: float,
        **parameters: object,
    ) -> list[Value]:
        """A metakernel applied; nothing where it does not apply, or would be too large.

        `error` is of what is computed, before it is rounded to the dtype of the results.
        """
        library = load_library()
        try:
            expansion = expand(library.get(name), _specs(operands), parameters, library)
        except WeftError:
            return []
        kinds = [
            (self.start(len(out.spec.shape)), tuple(out.spec.shape), str(out.spec.dtype))
            for out in expansion.outputs
        ]
        if any(prod(shape) > self.most_cells or len(shape) > 5 for _, shape, _ in kinds):
            return []
        names = ", ".join(
            f"[{', '.join(f'%{v.name}' for v in one)}]" if isinstance(one, list) else f"%{one.name}"
            for one in operands
        )
        flat = [v for one in operands for v in (one if isinstance(one, list) else [one])]
        types = ", ".join(v.type for v in flat)
        written = ", ".join(f"{key} = {attribute_of(v)}" for key, v in parameters.items())
        text = f"weft.apply @{name}({names}) {{{written}}} : ({types}) -> RESULTS"
        return self.add(text, kinds, bound, error)


def _specs(operands: Sequence[Value | list[Value]]) -> list[TensorSpec | list[TensorSpec]]:
    return [
        [TensorSpec(v.shape, v.dtype) for v in one]
        if isinstance(one, list)
        else TensorSpec(one.shape, one.dtype)
        for one in operands
    ]


def conditioned(value: Value) -> bool:
    """Whether the error of a value is small beside it, so that comparing it says something."""
    if not value.is_float:
        return True
    return value.error <= 1e-2 * max(value.bound, 1.0) and value.bound < 1e6


def rounded(value: Value, steps: int = 1) -> float:
    """What `steps` roundings of numbers as large as a value's cells may come to."""
    return ROUNDING.get(value.dtype, 0.0) * value.bound * steps


def reshapes(shape: Shape) -> list[Shape]:
    """Some shapes with as many cells: merged, split, and regrouped."""
    cells = prod(shape)
    found = {shape, (cells,)}
    if len(shape) > 1:
        found.add((shape[0] * shape[1], *shape[2:]))
        found.add((*shape[:-2], shape[-2] * shape[-1]))
    for factor in (2, 3):
        if cells % factor == 0:
            found.add((factor, cells // factor))
    for dim, n in enumerate(shape):
        if n % 2 == 0:
            found.add((*shape[:dim], n // 2, 2, *shape[dim + 1 :]))
    return sorted(found)

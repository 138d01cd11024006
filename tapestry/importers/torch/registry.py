"""The table of PyTorch's operators: what weft applications each of them becomes.

    @lowering("aten.relu.default")
    def relu(ctx: Context, x: SSAValue) -> SSAValue:
        return ctx.apply("relu", x)

    @lowering("aten.add.Tensor", "aten.add.Scalar")
    def add(ctx: Context, x: Operand, y: Operand, alpha: Number = 1) -> SSAValue:
        return ctx.apply("add", *ctx.operands(x, y), alpha=alpha)

An operator is named as PyTorch prints an overload. A lowering takes what the operator takes, in
order, and keyword-only arguments by name: tensors are values (lists of tensors lists of values),
dtypes are their names (`f32`), and `device`, `layout`, `pin_memory` and `memory_format` are left
out. It returns a value, or one per result of the operator, with None for what is not computed.

What it returns has the shape that PyTorch says, or the importer is wrong; of another dtype, it is
cast. A lowering that cannot do what its arguments ask for raises `Unsupported` with the reason.

Nothing here imports torch.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TypeAlias, TypeVar

import numpy.typing as npt
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import SSAValue

from tapestry.algebra.dtypes import (
    accumulation_type,
    is_complex,
    is_float,
    is_narrow,
    promote,
    type_named,
)
from tapestry.dialects.loom import tensor_type
from tapestry.importers.building import Given, ProgramBuilder
from tapestry.importers.torch.errors import Unsupported as Unsupported

Number: TypeAlias = "int | float | bool"
"""A Python scalar of a program."""

Operand: TypeAlias = "SSAValue | int | float | bool"
"""A tensor or a scalar."""

Lowered: TypeAlias = "SSAValue | Sequence[SSAValue | None]"
"""What stands for the results of an operator."""

Lowering: TypeAlias = Callable[..., Lowered]

_Lowers = TypeVar("_Lowers", bound=Lowering)


@dataclass(frozen=True)
class ResultKind:
    """The shape and dtype (`f32`) that PyTorch gives a result."""

    shape: tuple[int, ...]
    dtype: str


def _nowhere() -> tuple[tuple[int, ...], int]:
    raise Unsupported("where its operand lies in memory is not known")


@dataclass(frozen=True)
class Context:
    """One operator of a graph, and the program that it is added to.

    `results` are the kinds of its results (None: a result that is no tensor). Everything that is
    added through a context has its `location`, the user's line. `seeds` are the arguments of the
    program that seed random numbers, so far. `lies` says where the cells of its first operand lie
    where PyTorch runs it: the strides, and how many cells come before the first in its memory.
    `replayed` is the seed of a number where the operator runs again with what it was given before.
    """

    build: ProgramBuilder
    operator: str
    results: tuple[ResultKind | None, ...]
    location: LocationAttr = UNKNOWN_LOC
    seeds: list[SSAValue] = field(default_factory=list[SSAValue])
    lies: Callable[[], tuple[tuple[int, ...], int]] = _nowhere
    replayed: Callable[[int], SSAValue] | None = None

    @property
    def result(self) -> ResultKind:
        """The kind of the first result."""
        kind = self.results[0] if self.results else None
        if kind is None:
            raise Unsupported("its result is no tensor")
        return kind

    def apply(self, metakernel: str, /, *inputs: Given, **parameters: object) -> SSAValue:
        """Apply a metakernel that has one result."""
        (made,) = self.apply_all(metakernel, *inputs, **parameters)
        return made

    def apply_all(
        self, metakernel: str, /, *inputs: Given, **parameters: object
    ) -> tuple[SSAValue, ...]:
        """Apply a metakernel; all its results."""
        return self.build.apply(metakernel, *inputs, parameters=parameters, location=self.location)

    def constant(
        self,
        cells: npt.ArrayLike,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
    ) -> SSAValue:
        """A tensor of known cells; one cell stands for all of `shape`."""
        return self.build.constant(cells, dtype, shape, self.location)

    def scalar(self, value: Number, like: SSAValue | str) -> SSAValue:
        """A tensor without dimensions, of a dtype or of that of a tensor."""
        return self.constant(value, like if isinstance(like, str) else self.dtype(like), ())

    def shape(self, x: SSAValue) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return tuple(tensor_type(x).box.shape)

    def rank(self, x: SSAValue) -> int:
        """How many dimensions a tensor has."""
        return len(self.shape(x))

    def axis(self, axis: int, x: SSAValue) -> int:
        """An axis counted from the front; a tensor without dimensions counts as having one."""
        return axis % max(1, self.rank(x))

    def dtype(self, x: SSAValue) -> str:
        """The dtype of a tensor by name."""
        return str(tensor_type(x).element_type)

    def cast(self, x: SSAValue, dtype: str) -> SSAValue:
        """`x` in another dtype; itself where it has that."""
        return x if self.dtype(x) == dtype else self.apply("cast", x, dtype=dtype)

    def seed(self) -> SSAValue:
        """A new seed for random numbers: an i64 that is drawn from PyTorch's generator each run."""
        number = len(self.seeds)
        self.seeds.append(
            self.build.argument(f"seed_{number}", (), "i64", self.location)
            if self.replayed is None
            else self.replayed(number)
        )
        return self.seeds[-1]

    def operands(self, *values: Operand, dtype: str | None = None) -> list[SSAValue]:
        """Tensors of one dtype: `dtype`, or what PyTorch promotes the values to.

        Beside half floats a scalar stays f32: PyTorch rounds the result, and not the scalar.
        """
        common = self.promoted(*values) if dtype is None else dtype
        element = type_named(common)
        assert element is not None
        wide = str(accumulation_type(element)) if is_narrow(element) else common
        return [
            self.cast(value, common) if isinstance(value, SSAValue) else self.scalar(value, wide)
            for value in values
        ]

    def promoted(self, *values: Operand) -> str:
        """The dtype that PyTorch computes on these values in (`torch.result_type`).

        Tensors without dimensions count only where they are of a higher category (truth value,
        integer, float, complex) than those with some, and scalars where than all tensors.
        """
        tiers: list[str | None] = [None, None, None]
        for value in values:
            if isinstance(value, SSAValue):
                tier, dtype = (0 if self.shape(value) else 1), self.dtype(value)
            else:
                tier, dtype = 2, _dtype_of_scalar(value)
            before = tiers[tier]
            tiers[tier] = dtype if before is None else _met(before, dtype)
        found = _over(tiers[0], _over(tiers[1], tiers[2]))
        if found is None:
            raise ValueError("there is no value to promote")
        return found


def _dtype_of_scalar(value: Number) -> str:
    if isinstance(value, bool):
        return "i1"
    return "i64" if isinstance(value, int) else "f32"


def _met(left: str, right: str) -> str:
    first, second = type_named(left), type_named(right)
    assert first is not None
    assert second is not None
    return str(promote(first, second))


def _over(high: str | None, low: str | None) -> str | None:
    """What a tier's dtype becomes beside that of the next one, which counts by its category."""
    if high is None or low is None:
        return high or low
    return high if _category(high) >= _category(low) else _met(high, low)


def _category(dtype: str) -> int:
    """0 for truth values, 1 for integers, 2 for floats, 3 for complex numbers."""
    element = type_named(dtype)
    assert element is not None
    if is_complex(element):
        return 3
    if is_float(element):
        return 2
    return 0 if dtype == "i1" else 1


_lowerings: dict[str, Lowering] = {}


def lowering(*operators: str) -> Callable[[_Lowers], _Lowers]:
    """Make a function the lowering of operators, named as PyTorch prints their overloads."""

    def decorate(function: _Lowers) -> _Lowers:
        for operator in operators:
            if operator in _lowerings:
                raise ValueError(f"{operator} has a lowering already")
            _lowerings[operator] = function
        return function

    return decorate


def find_lowering(operator: str) -> Lowering | None:
    """The lowering of an operator, or None."""
    _load()
    return _lowerings.get(operator)


def lowered_operators() -> list[str]:
    """Every operator that has a lowering."""
    _load()
    return sorted(_lowerings)


@cache
def _load() -> None:
    """Import the modules of `operators`, which fill the table."""
    package = import_module("tapestry.importers.torch.operators")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        import_module(module.name)

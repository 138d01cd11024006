"""Applies templates to sizes that are not known yet.

    >>> from tapestry.metakernels import load_library
    >>> library = load_library()
    >>> matmul = library.get("matmul")
    >>> found = expand_symbolically(matmul, [(["N", "K"], "f32"), (["M", "P"], "f32")], {}, library)
    >>> found.expansion.space.extents, found.assumptions
    ((N, P, K), ('K == M',))

A template runs once, on symbols that have examples (`symbols`): where the examples do not fit it,
an assumption made on the way was wrong, and the run is tried again with examples for which it is
different. The first run that gives an expansion is it. Then the expansion is compared with what the
template gives for other numbers, so that nothing in it is an example in disguise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from heapq import heappop, heappush
from itertools import count
from math import isclose
from typing import Any, Final, TypeAlias, cast

from tapestry.metakernels.application import expand
from tapestry.metakernels.composition import Resolver
from tapestry.metakernels.errors import SymbolicSizeError, WeftError
from tapestry.metakernels.examples import find_examples
from tapestry.metakernels.expansion import Expansion, TensorSpec
from tapestry.metakernels.sizes import evaluate_size, parse_size, symbols_of
from tapestry.metakernels.symbols import Quantity, Size
from tapestry.metakernels.syntax import Expr
from tapestry.metakernels.templates import Template
from tapestry.metakernels.traces import Decision, Trace

_MOST_RUNS: Final = 60
"""How many runs are tried before the first one's error stands."""

_COMPARISONS: Final = 2
"""With how many other sizes an expansion is compared."""

_Path: TypeAlias = tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class SymbolicExpansion:
    """An expansion whose integers may be `Size`s, and what was assumed about its symbols."""

    expansion: Expansion
    assumptions: tuple[str, ...]
    trace: Trace


def expand_symbolically(
    template: Template,
    tensors: Sequence[tuple[Sequence[int | str], str]],
    parameters: Mapping[str, object],
    library: Resolver,
) -> SymbolicExpansion:
    """What `template` computes for operands with these shapes and dtypes.

    A size is an integer or text such as `N` or `2 * N`; names stand for nonnegative integers.
    Raises the WeftError of a template that fits no sizes that were tried, and SymbolicSizeError
    where what is built (a rank, how many operations) depends on a symbol.
    """
    shapes = [tuple(parse_size(size) for size in shape) for shape, _ in tensors]
    dtypes = tuple(dtype for _, dtype in tensors)
    run = _Runs(template, tuple(shapes), dtypes, parameters, library)
    trace, expansion = run.first_that_fits()
    run.compare_with_numbers(expansion, trace)
    return SymbolicExpansion(expansion, trace.assumptions(), trace)


@dataclass(frozen=True)
class _Runs:
    """One template on one list of shapes, for whatever sizes."""

    template: Template
    shapes: tuple[tuple[Expr, ...], ...]
    dtypes: tuple[str, ...]
    parameters: Mapping[str, object]
    library: Resolver
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = (name for shape in self.shapes for size in shape for name in symbols_of(size))
        object.__setattr__(self, "names", tuple(dict.fromkeys(names)))

    def expand(self, sizes: Mapping[str, int]) -> Expansion:
        """The expansion for sizes, numbers or symbols."""
        specs = [
            TensorSpec(tuple(evaluate_size(size, sizes) for size in shape), dtype)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]
        return expand(self.template, specs, self.parameters, self.library)

    def first_that_fits(self) -> tuple[Trace, Expansion]:
        """The first run without an error; otherwise the first error is raised."""
        order = count()
        queue: list[tuple[int, int, _Path]] = [(0, next(order), ())]
        seen: set[_Path] = set()
        first: WeftError | None = None
        for _ in range(_MOST_RUNS):
            if not queue:
                break
            cost, _, path = heappop(queue)
            examples = next(find_examples(self.names, path), None)
            if examples is None:
                continue
            trace = Trace(examples)
            try:
                return trace, self.expand({name: trace.symbol(name) for name in self.names})
            except SymbolicSizeError:
                raise
            except WeftError as error:
                first = first or error
            for extra, other in _alternatives(trace.decisions):
                if other not in seen:
                    seen.add(other)
                    heappush(queue, (cost + extra, next(order), other))
        assert first is not None
        raise first

    def compare_with_numbers(self, expansion: Expansion, trace: Trace) -> None:
        """Raise SymbolicSizeError unless `expansion` is right for other sizes, too."""
        compared = 0
        for sizes in find_examples(self.names, trace.decisions):
            if sizes == trace.examples:
                continue
            try:
                right = is_instance(expansion, self.expand(sizes), trace.values(sizes))
            except WeftError:
                right = False
            if not right:
                shown = ", ".join(f"{name} = {size}" for name, size in sizes.items())
                raise SymbolicSizeError(
                    f"@{self.template.name} builds something else for other sizes ({shown})",
                    hint="give numbers for some of the symbols",
                )
            compared += 1
            if compared == _COMPARISONS:
                return


def _alternatives(decisions: Sequence[Decision]) -> list[tuple[int, _Path]]:
    """Where the run could have gone elsewhere, and how far-fetched that is.

    Two sizes that have to be equal come first, then the decisions nearest to the error.
    """
    found: list[tuple[int, _Path]] = []
    for position, decision in enumerate(decisions):
        path = (*decisions[:position], decision.negated())
        found.append((0 if decision.parts_sizes else len(decisions) - position, path))
    return found


def is_instance(symbolic: Any, numbers: Any, values: Mapping[Any, Any]) -> bool:
    """Whether an expansion (or a part of it), at these values of its symbols, is `numbers`."""
    if isinstance(symbolic, Size):
        return type(numbers) is int and int(symbolic.expression.xreplace(values)) == numbers
    if isinstance(symbolic, Quantity):
        value = float(symbolic.at(values))
        return isinstance(numbers, float) and isclose(value, numbers, rel_tol=1e-12)
    if type(symbolic) is not type(numbers):
        return False
    if isinstance(symbolic, tuple):
        items = cast("tuple[Any, ...]", symbolic)
        pairs = zip(items, numbers, strict=False)
        return len(items) == len(numbers) and all(is_instance(a, b, values) for a, b in pairs)
    if is_dataclass(symbolic):
        names = [one.name for one in fields(symbolic)]
        return all(
            is_instance(getattr(symbolic, name), getattr(numbers, name), values) for name in names
        )
    return symbolic == numbers

"""Draws places where a rule applies: shapes, dtypes and parameters that its match allows.

Sizes are drawn from what `types` says of the inputs; then each matched application is given
parameters and expanded, which says what its results are. What does not fit together, or does not
meet the conditions, is drawn again. Each draw has few different sizes, so that sizes which have to
be equal often are; one of them is 1, the others are primes.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from math import prod
from typing import Final

from tapestry.metakernels import TensorSpec, WeftError
from tapestry.metakernels.composition import evaluate_argument
from tapestry.metakernels.dtypes import DTYPES, UNSIGNED, allowed
from tapestry.metakernels.evaluation import Scope, evaluate, fill_count
from tapestry.metakernels.parameters import Parameter
from tapestry.metakernels.syntax import (
    Anything,
    Dimension,
    Exactly,
    Expr,
    Group,
    PatternItem,
    Sequence,
    variables,
)
from tapestry.metakernels.values import Value as Known
from tapestry.metakernels.values import integer
from tapestry.rewriting.binding import DoesNotApplyError, Expansions, Situation, bindings
from tapestry.rewriting.checking import bound_by
from tapestry.rewriting.numbers import cell, evaluate_number
from tapestry.rewriting.rules import Application, Number, Rule, Typed, Value
from tapestry.rewriting.samples import Sample

_DRAWN: Final = tuple(dtype for dtype in DTYPES if dtype not in UNSIGNED[1:])
"""The dtypes that are drawn. Bytes are the unsigned integers among them: at the wider ones, values
are not compared, so no rule is used."""
_SMALL: Final = (1, 2, 3)
_PRIMES: Final = (5, 7, 11, 13, 17, 19, 23, 29)
_RANKS: Final = (0, 1, 1, 2, 2, 3)


def draw_samples(
    rule: Rule, expansions: Expansions, attempts: int, seed: int = 0
) -> Iterator[Sample]:
    """Places where `rule` applies, from that many attempts: small sizes, and sizes of all ones."""
    source = random.Random(seed)
    for attempt in range(attempts):
        dtype = _DRAWN[attempt % len(_DRAWN)]
        if attempt % 4 == 0:
            sizes = (1,)
        elif attempt % 4 == 1:
            sizes = (1, *source.sample(_PRIMES, 2))
        else:
            sizes = _SMALL
        try:
            yield from _Draw(rule, expansions, source, sizes, dtype).samples()
        except WeftError:
            continue


class _Draw:
    """One attempt."""

    def __init__(
        self,
        rule: Rule,
        expansions: Expansions,
        source: random.Random,
        sizes: tuple[int, ...],
        dtype: str,
    ) -> None:
        self.rule = rule
        self.expansions = expansions
        self.source = source
        self.sizes = sizes
        self.dtype = dtype
        self.names: dict[str, Known] = {}
        self.specs: dict[str, TensorSpec] = {}
        self.operands: dict[str, tuple[TensorSpec, ...]] = {}
        self.arguments: dict[str, dict[str, object]] = {}
        self.fitting = _fitting_dtypes(rule)
        self.stretched = tuple(self.size() for _ in range(source.choice(_RANKS)))

    def size(self) -> int:
        return self.source.choice(self.sizes)

    def samples(self) -> Iterator[Sample]:
        typed = {entry.name: entry for entry in self.rule.types}
        self._draw_pins()
        for name in self.rule.inputs:
            self.specs[name] = self._input(name, typed.get(name))
        for application in self.rule.matched:
            self._apply(application)
        situation = Situation(self.specs, self.operands, self.arguments)
        for names in bindings(self.rule, situation):
            yield Sample(situation, names, _numbers(self.rule, self.operands, names))

    # Inputs.

    def _draw_pins(self) -> None:
        """Parameters that say how long a sequence is."""
        for typed in self.rule.types:
            for item in typed.shape.tree.items:
                if isinstance(item, Sequence) and item.pin is not None:
                    for name in variables(item.pin):
                        self.names.setdefault(name, self.source.randrange(3))

    def _input(self, name: str, typed: Typed | None) -> TensorSpec:
        taken = self.fitting[name]
        if typed is None:
            return TensorSpec(self._stretching(), self._dtype(taken))
        binding = typed.dtype.tree
        dtype = self._dtype(taken & set(allowed(binding.constraint)))
        if binding.name is not None:
            known = self.names.setdefault(binding.name, dtype)
            assert isinstance(known, str)
            dtype = known
        return TensorSpec(tuple(self._items(typed.shape.tree.items)), dtype)

    def _dtype(self, fitting: Collection[str]) -> str:
        """This attempt's dtype mostly, where it fits."""
        drawn = {*fitting} & {*_DRAWN}
        if not drawn:
            raise DoesNotApplyError("no dtype fits")
        if self.dtype in drawn and self.source.random() < 0.85:
            return self.dtype
        return self.source.choice(sorted(drawn))

    def _stretching(self) -> tuple[int, ...]:
        """A shape that stretches to this attempt's."""
        rank = len(self.stretched)
        kept = rank if self.source.random() < 0.6 else self.source.randint(0, rank)
        return tuple(
            size if self.source.random() < 0.8 else 1 for size in self.stretched[rank - kept :]
        )

    def _items(self, items: tuple[PatternItem, ...]) -> Iterator[int]:
        for item in items:
            match item:
                case Dimension(name):
                    known = self.names.setdefault(name, self.size())
                    yield integer(known, name)
                case Sequence(name, _, pin):
                    yield from self._sequence(name, pin)
                case Group(name, inner):
                    sizes = tuple(self._items(inner))
                    self.names.setdefault(name, sizes)
                    yield from sizes
                case Exactly(size):
                    yield integer(evaluate(size, Scope(self.names)), "a size")
                case Anything():
                    yield self.size()

    def _sequence(self, name: str | None, pin: Expr | None) -> Iterator[int]:
        if name is not None and name in self.names:
            known = self.names[name]
            assert isinstance(known, tuple)
            yield from (integer(size, name) for size in known)
            return
        if pin is not None:
            count = fill_count(pin, Scope(self.names))
            sizes = tuple(self.size() for _ in range(count))
        elif self.source.random() < 0.7:
            sizes = self._stretching()
        else:
            sizes = tuple(self.size() for _ in range(self.source.choice(_RANKS)))
        if name is not None:
            self.names[name] = sizes
        yield from sizes

    # Applications.

    def _apply(self, application: Application) -> None:
        template = application.template
        specs = tuple(
            self.specs[operand.name]
            if isinstance(operand, Value)
            else self._number(application, set(allowed(entry.dtype.tree.constraint)))
            for operand, entry in zip(application.operands, application.entries, strict=True)
        )
        self.operands[application.name] = specs
        by_name = {entry.name: spec for entry, spec in zip(application.entries, specs, strict=True)}
        given: dict[str, object] = {}
        for parameter in template.parameters:
            text = application.arguments.get(parameter.name)
            if text is None:
                continue
            names = bound_by(text.text)
            if isinstance(names, str):
                if names not in self.names:
                    self.names[names] = self._parameter(parameter, by_name)
                given[parameter.name] = self.names[names]
            elif names is not None:
                rank = max((len(spec.shape) for spec in specs), default=0)
                for name in names:
                    self.names.setdefault(name, self.source.randrange(max(rank, 1)))
                given[parameter.name] = tuple(self.names[name] for name in names)
            else:
                given[parameter.name] = evaluate_argument(parameter, text, self.names)
            if parameter.kind == "bool":
                given[parameter.name] = bool(given[parameter.name])
        self.arguments[application.name] = given
        expansion = self.expansions.applied(application, specs, given)
        if len(expansion.outputs) != len(application.results):
            raise DoesNotApplyError(f"{application.name} has {len(expansion.outputs)} results")
        for name, output in zip(application.results, expansion.outputs, strict=True):
            self.specs[name] = output.spec

    def _number(self, application: Application, fitting: set[str]) -> TensorSpec:
        """A tensor of one number: of rank 0, or of a shape that stretches, mostly of one dtype."""
        dtypes = [self.specs[name].dtype for name in application.values]
        likely = dtypes and dtypes[0] in fitting and self.source.random() < 0.8
        dtype = dtypes[0] if likely else self._dtype(fitting)
        return TensorSpec(() if self.source.random() < 0.5 else self._stretching(), dtype)

    def _parameter(self, parameter: Parameter, specs: Mapping[str, TensorSpec]) -> Known:
        source = self.source
        ranks = [len(spec.shape) for spec in specs.values()]
        rank = ranks[0] if ranks else 0
        if parameter.axis_of is not None:
            rank = len(specs[parameter.axis_of].shape)
        if parameter.default is not None and source.random() < 0.4:
            return parameter.default
        match parameter.kind:
            case "int[]" if parameter.axis_of is not None:
                return tuple(sorted(source.sample(range(rank), source.randint(0, rank))))
            case "bool":
                return source.random() < 0.5
            case "enum":
                return source.choice(parameter.values)
            case "dtype":
                return source.choice(_DRAWN)
            case "float":
                return source.choice((0.0, 0.25, 0.5, 1.0, 2.0))
            case "int" if parameter.axis_of is not None:
                return source.randrange(max(rank, 1))
            case "int":
                return source.randrange(5)
            case "int[]":
                return self._list(parameter, rank, specs)
            case "equation":
                raise DoesNotApplyError("which equation it is, is for the rule to say")

    def _list(self, parameter: Parameter, rank: int, specs: Mapping[str, TensorSpec]) -> Known:
        """A permutation, a shape of as many cells, a shape that stretches, or small numbers."""
        source = self.source
        length = rank if parameter.length is None else parameter.length
        shape = next(iter(specs.values())).shape if specs else ()
        kind = source.randrange(4)
        if kind == 0:
            return tuple(source.sample(range(length), length))
        if kind == 1 and parameter.length is None:
            return _factors(prod(shape), source)
        if kind == 2 and parameter.length is None:
            return self.stretched
        return tuple(source.randrange(4) for _ in range(length))


def _fitting_dtypes(rule: Rule) -> dict[str, set[str]]:
    """The dtypes of each input that the metakernels it is given to take."""
    fitting: dict[str, set[str]] = {name: {*DTYPES} for name in rule.inputs}
    for application in rule.matched:
        for operand, entry in zip(application.operands, application.entries, strict=True):
            if isinstance(operand, Value) and operand.name in fitting:
                fitting[operand.name] &= set(allowed(entry.dtype.tree.constraint))
    return fitting


def _factors(cells: int, source: random.Random) -> tuple[int, ...]:
    """A shape of that many cells."""
    sizes: list[int] = []
    for factor in (2, 3, 5, 7):
        while cells % factor == 0 and cells and source.random() < 0.7:
            sizes.append(factor)
            cells //= factor
    return (*sizes, cells)


def _numbers(
    rule: Rule, operands: Mapping[str, tuple[TensorSpec, ...]], names: Mapping[str, Known]
) -> Mapping[str, Mapping[int, float]]:
    """The numbers that each matched application is applied to, by position."""
    found: dict[str, dict[int, float]] = {}
    for application in rule.matched:
        for position, operand in enumerate(application.operands):
            if isinstance(operand, Number):
                dtype = operands[application.name][position].dtype
                value = cell(evaluate_number(operand.source, names), dtype)
                if value is None:
                    raise DoesNotApplyError(f"{dtype} cannot hold {operand.source.text}")
                found.setdefault(application.name, {})[position] = value
    return found

"""Where rules apply in a program of applications.

    matcher = RuleMatcher(rules, expansions)
    for found in matcher.matches(op):           # rules whose last application is `op`
        found.rule, found.values["x"], found.production

Rules are looked up by the metakernel of their last application, so the time for a program is linear
in its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
from xdsl.ir import SSAValue

from tapestry.dialects import loom, weft
from tapestry.locations import location_of
from tapestry.metakernels import Expansion, TensorSpec, WeftError
from tapestry.metakernels.expansion import MapFold
from tapestry.metakernels.scalars import Constant
from tapestry.passes.weft.apply import spec_of
from tapestry.passes.weft.recipes.parameters import parameter_values
from tapestry.passes.weft.rules.searching import Found, search
from tapestry.rewriting.binding import (
    Combination,
    DoesNotApplyError,
    Expansions,
    Production,
    Situation,
    bind,
    combination_of,
    produce,
)
from tapestry.rewriting.rules import Number, Rule, RuleError

MAX_CELLS: Final = 1 << 12
"""Cells of a constant that are compared to see whether they are one number."""


@dataclass(frozen=True)
class Match:
    """A rule, and where it applies: its applications, its tensors, and what it produces."""

    rule: Rule
    ops: Mapping[str, weft.ApplyOp]
    values: Mapping[str, SSAValue]
    production: Production

    @property
    def replaced(self) -> tuple[weft.ApplyOp, ...]:
        """The applications whose results are outputs."""
        outputs = set(self.rule.outputs)
        return tuple(
            self.ops[application.name]
            for application in self.rule.matched
            if outputs & set(application.results)
        )


class RuleMatcher:
    """Rules by the metakernel of their root.

    `admits` says whether a rule may be used for the dtypes of a match, and raises a RuleError for
    one that may not be used at all; `chosen` fixes choices that rules leave, by name.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        expansions: Expansions,
        admits: Callable[[Rule, Combination], bool],
        chosen: Mapping[str, int],
    ) -> None:
        self._expansions = expansions
        self._admits = admits
        self._chosen = chosen
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.matched[-1].template.name, []).append(rule)

    def matches(self, op: weft.ApplyOp) -> Iterator[Match]:
        """Where rules apply with `op` as their root, in the order of the rules."""
        for rule in self._rules.get(op.metakernel_name, ()):
            for found in search(rule, op, self._expansions):
                match = self._match(rule, found)
                if match is not None:
                    yield match

    def _match(self, rule: Rule, found: Found) -> Match | None:
        """The match, when types and conditions hold; RuleError when it would change a type."""
        specs = {name: _spec(value) for name, value in found.values.items()}
        try:
            situation = self._situation(found, specs)
            if situation is None or not self._is_typed(rule, situation):
                return None
            names = bind(rule, situation, self._chosen)
        except WeftError:
            return None
        if not self._admits(rule, combination_of(rule, situation)):
            return None
        try:
            production = produce(rule, names, specs, self._expansions)
        except DoesNotApplyError:
            return None
        except WeftError as error:
            raise self._wrong(error.message, found, rule) from None
        for name in rule.outputs:
            if production.specs[name] != specs[name]:
                message = f"rule {rule.name} gives {production.specs[name]} for {specs[name]}"
                raise self._wrong(message, found, rule)
        return Match(rule, found.ops, found.values, production)

    def _situation(self, found: Found, specs: Mapping[str, TensorSpec]) -> Situation | None:
        """What was found, as rules see it; None where a number is wanted and there is none."""
        numbers: list[tuple[Number, float, str]] = []
        for number, value in found.numbers:
            cell = self._number_of(value)
            if cell is None:
                return None
            numbers.append((number, *cell))
        return Situation(
            specs,
            {name: [_spec(value) for value in values] for name, values in found.operands.items()},
            {name: parameter_values(op.parameters) for name, op in found.ops.items()},
            numbers,
            lambda name: found.values[name].has_one_use(),
        )

    def _wrong(self, message: str, found: Found, rule: Rule) -> RuleError:
        place = location_of(found.ops[rule.matched[-1].name])
        return RuleError(f"{message} (rule at {rule.location})", location=place)

    def _is_typed(self, rule: Rule, situation: Situation) -> bool:
        """Whether the matched applications are well formed: `weft-apply` says what is wrong."""
        for application in rule.matched:
            expansion = self._expansions.applied(
                application,
                situation.operands[application.name],
                situation.parameters[application.name],
            )
            declared = [situation.specs[name] for name in application.results]
            if declared != [output.spec for output in expansion.outputs]:
                return False
        return True

    def _number_of(self, value: SSAValue) -> tuple[float, str] | None:
        """The number that every cell of `value` is, and its dtype; None where there is none."""
        spec = _spec(value)
        match value.owner:
            case loom.ConstantOp() as op:
                cell = op.splat
                if cell is None and 0 < op.result.type.box.size <= MAX_CELLS:
                    cells = op.cells
                    if cells is not None and bool((cells == cells.flat[0]).all()):
                        cell = np.asarray(cells.flat[0])
                return None if cell is None else (cell.item(), spec.dtype)
            case weft.ApplyOp() as op if not op.operands:
                parameters = parameter_values(op.parameters)
                return _constant(self._expansions.named(op.metakernel_name, parameters))
            case _:
                return None


def _constant(expansion: Expansion) -> tuple[float, str] | None:
    match expansion.body:
        case MapFold(None, (), (), (Constant(value, dtype),), None):
            return value, dtype
        case _:
            return None


def _spec(value: SSAValue) -> TensorSpec:
    return spec_of(cast(loom.TensorType, value.type))

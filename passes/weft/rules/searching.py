"""Finds the applications of a rule's match in a program, by their metakernels and operands.

    for found in search(rule, op, expansions):  # `op` is the last application of the match
        found.ops["y"], found.values["x"]

From there operands lead to the others. An application that no operand leads to (a second output,
say) is looked for among the uses of a tensor that is known, at most `MAX_USES` of them. Two
operands are tried in either order where that is the same. The time for one root is bounded by the
rule alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from xdsl.ir import OpResult, SSAValue

from tapestry.dialects import weft
from tapestry.dialects.loom import TensorType
from tapestry.metakernels import Template, WeftError
from tapestry.passes.weft.apply import spec_of
from tapestry.passes.weft.recipes.parameters import parameter_values
from tapestry.rewriting.binding import Expansions
from tapestry.rewriting.rules import SINGLE, Application, Number, Operand, Rule, Value
from tapestry.rewriting.symmetry import commutes

MAX_USES: Final = 32
"""Uses of a tensor among which an application is looked for."""


MAX_TRIED: Final = 1 << 12
"""Applications that are tried for one root: orders of operands multiply."""


@dataclass(frozen=True)
class Found:
    """The applications of a match, each with its operands in the order of the rule."""

    ops: Mapping[str, weft.ApplyOp] = field(default_factory=dict[str, weft.ApplyOp])
    operands: Mapping[str, Sequence[SSAValue]] = field(
        default_factory=dict[str, Sequence[SSAValue]]
    )
    values: Mapping[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    numbers: tuple[tuple[Number, SSAValue], ...] = ()


def search(rule: Rule, root: weft.ApplyOp, expansions: Expansions) -> Iterator[Found]:
    """Every way to find the match of `rule` with `root` as its last application."""
    return _Search(rule, expansions).run(root)


class _Search:
    def __init__(self, rule: Rule, expansions: Expansions) -> None:
        self.rule = rule
        self.expansions = expansions
        self.tried = 0
        self.makers = {
            name: (application, position)
            for application in rule.matched
            for position, name in enumerate(application.results)
        }

    def run(self, root: weft.ApplyOp) -> Iterator[Found]:
        self.tried = 0
        for found in self._application(self.rule.matched[-1], root, Found()):
            yield from self._others(found)

    def _others(self, found: Found) -> Iterator[Found]:
        """Add the applications that operands did not lead to."""
        missing = [a for a in self.rule.matched if a.name not in found.ops]
        if not missing:
            yield found
            return
        near = next(a for a in missing if any(name in found.values for name in a.values))
        shared = next(name for name in near.values if name in found.values)
        taken = set(found.ops.values())
        for count, use in enumerate(found.values[shared].uses):
            if count == MAX_USES:
                break
            op = use.operation
            if isinstance(op, weft.ApplyOp) and op not in taken:
                for more in self._application(near, op, found):
                    yield from self._others(more)

    def _application(
        self, application: Application, op: weft.ApplyOp, found: Found
    ) -> Iterator[Found]:
        """`application` is `op`."""
        self.tried += 1
        if self.tried > MAX_TRIED:
            return
        template = application.template
        if (
            op.metakernel_name != template.name
            or _sizes(op, template) != _trimmed(application.sizes)
            or len(op.results) != len(application.results)
        ):
            return
        values = dict(zip(application.results, op.results, strict=True))
        for operands in self._orders(template, op):
            yield from self._operands(
                application.operands,
                operands,
                replace(
                    found,
                    ops={**found.ops, application.name: op},
                    operands={**found.operands, application.name: operands},
                    values={**found.values, **values},
                ),
            )

    def _orders(self, template: Template, op: weft.ApplyOp) -> Iterator[Sequence[SSAValue]]:
        """The operands as they are; and exchanged, where that is the same."""
        operands = tuple(op.operands)
        yield operands
        if len(operands) != 2 or op.groups is not None or operands[0] is operands[1]:
            return
        pair = [spec_of(cast(TensorType, operand.type)) for operand in operands]
        try:
            parameters = parameter_values(op.parameters)
            one = self.expansions.of(template, pair, parameters)
            other = self.expansions.of(template, pair[::-1], parameters)
        except WeftError:
            return
        if commutes(one, other):
            yield operands[::-1]

    def _operands(
        self, operands: Sequence[Operand], values: Sequence[SSAValue], found: Found
    ) -> Iterator[Found]:
        if not operands:
            yield found
            return
        for more in self._operand(operands[0], values[0], found):
            yield from self._operands(operands[1:], values[1:], more)

    def _operand(self, operand: Operand, value: SSAValue, found: Found) -> Iterator[Found]:
        if not isinstance(operand, Value):
            yield replace(found, numbers=(*found.numbers, (operand, value)))
            return
        name = operand.name
        if name in found.values:
            if found.values[name] is value:
                yield found
        elif name not in self.makers:
            yield replace(found, values={**found.values, name: value})
        elif isinstance(value, OpResult) and isinstance(value.owner, weft.ApplyOp):
            application, position = self.makers[name]
            if value.index == position:
                yield from self._application(application, value.owner, found)


def _sizes(op: weft.ApplyOp, template: Template) -> tuple[int, ...]:
    """Per input, the length of its list; `SINGLE` is one tensor."""
    lists = [place for place, entry in enumerate(template.inputs) if entry.each is not None]
    if op.groups is None and len(lists) == 1:
        # The tensors of the one list may be given one by one.
        sizes = [SINGLE] * len(template.inputs)
        sizes[lists[0]] = max(len(op.args) - len(sizes) + 1, 0)
        return tuple(sizes)
    return _trimmed(
        tuple(len(value) if isinstance(value, list) else SINGLE for value in op.per_input)
    )


def _trimmed(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes without what is left out at the end: that may be said or not."""
    while sizes and sizes[-1] == 0:
        sizes = sizes[:-1]
    return sizes

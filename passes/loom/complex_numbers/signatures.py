"""Map-folds, groups, kernels and monoids over complex numbers, on the parts.

    loom.operation @f over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) ...

reads `%x_re` and `%x_im` where it read `%x`, each through the projection and with the part of the
fill that `%x` had; a result and a part of a state become two alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, SymbolRefAttr
from xdsl.dialects.complex import ComplexNumberAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.dialects._loom_blocks import element_of
from tapestry.dialects._loom_bodies import yielded_types
from tapestry.dialects._loom_syntax import segments
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.complex_numbers.bodies import (
    flat,
    flat_types,
    is_split,
    part_type,
    rejoined,
    split_arguments,
)


def _number_parts(value: Attribute) -> list[Attribute]:
    """The parts of a number as numbers; of a real one itself."""
    if not isinstance(value, ComplexNumberAttr):
        return [value]
    number = cast("ComplexNumberAttr[AnyFloat]", value)
    part = part_type(number.type)
    assert part is not None
    return [number_attr(number.real.data, part), number_attr(number.imag.data, part)]


def _repeated(recorded: Attribute | None, elements: Sequence[Attribute]) -> Attribute | None:
    """What is recorded per tensor, twice for those of complex cells; of a fill, its parts."""
    if recorded is None:
        return None
    found: list[Attribute] = []
    for entry, element in zip(cast(ArrayAttr[Attribute], recorded), elements, strict=True):
        parts = _number_parts(entry)
        twice = part_type(element) is not None and len(parts) == 1
        found += parts * 2 if twice else parts
    return ArrayAttr(found)


def _replace(
    op: Operation,
    rewriter: PatternRewriter,
    properties: Mapping[str, Attribute | None] | None = None,
    groups: Sequence[Sequence[SSAValue]] = (),
) -> None:
    """Put the operation over parts in the place of `op`.

    `properties` are those that change, `groups` the operands where they are in groups of any size.
    """
    changed = {**op.properties, **(properties or {})}
    if groups:
        changed["operandSegmentSizes"] = segments(*(len(flat(group)) for group in groups))
    regions = [op.detach_region(region) for region in list(op.regions)]
    for region in regions:
        for block in region.blocks:
            split_arguments(block, rewriter)
    new = type(op).create(
        operands=flat(op.operands),
        result_types=flat_types(op.result_types),
        properties={name: value for name, value in changed.items() if value is not None},
        attributes=op.attributes,
        regions=regions,
    )
    new.location = op.location
    casts, results = rejoined(op.results, new.results)
    rewriter.replace(op, [new, *casts], results)


@dataclass(frozen=True)
class SplitSignature(RewritePattern):
    """A map-fold takes, folds and makes both parts where it had a complex number.

    Always legal: both parts are at the same cells, so they have the same projections, domain and
    shards; a state of more parts merges as its monoid says, and `monoids` has one for each built-in
    monoid of complex numbers.
    """

    monoids: Mapping[tuple[str, str], str]

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: loom.OperationOp | loom.KernelOp, rewriter: PatternRewriter
    ) -> None:
        wrap, unwrap = op.wrap_block, op.unwrap_block
        ins = [element_of(argument.type) for argument in wrap.args]
        state, outs = yielded_types(wrap), yielded_types(unwrap or wrap)
        after = () if unwrap is None else unwrap.args[len(state) :]
        extras = [element_of(argument.type) for argument in after]
        if all(part_type(kind) is None for kind in (*ins, *state, *outs, *extras)):
            return
        recorded = op.properties.get
        properties = {
            "in_projections": _repeated(recorded("in_projections"), ins),
            "in_clips": _repeated(recorded("in_clips"), ins),
            "extra_projections": _repeated(recorded("extra_projections"), extras),
            "extra_clips": _repeated(recorded("extra_clips"), extras),
            "out_projections": _repeated(recorded("out_projections"), outs),
            "part_projections": _repeated(recorded("part_projections"), state),
        }
        name = op.monoid_name
        if name is not None:
            split = self.monoids.get((name, str(state[0])), name)
            properties["monoid"] = SymbolRefAttr(split)
        groups = (op.ins, op.extras) if isinstance(op, loom.OperationOp) else ()
        _replace(op, rewriter, properties, groups)


class SplitMonoid(RewritePattern):
    """A complex part of a state is two parts, and so is its zero.

    Always legal: the merge is the same function of states, written on the parts.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.MonoidOp, rewriter: PatternRewriter) -> None:
        if any(part_type(kind) is not None for kind in op.state_types):
            zero = [part for value in op.zero for part in _number_parts(value)]
            _replace(op, rewriter, {"zero": ArrayAttr(zero)})


class SplitApplication(RewritePattern):
    """An application takes both parts over the selection of the whole. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ApplicationOp, rewriter: PatternRewriter) -> None:
        if any(map(is_split, (*op.args, *op.outs))):
            elements = [tensor_type(value).element_type for value in op.args]
            _replace(op, rewriter, {"selections": _repeated(op.selections, elements)})


class SplitMerge(RewritePattern):
    """A merge takes two parts of a state where it took a complex one. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.MergeOp, rewriter: PatternRewriter) -> None:
        if any(map(is_split, (*op.operands, *op.outs))):
            _replace(op, rewriter, groups=(op.states, op.extras))


class SplitGroup(RewritePattern):
    """A group takes and yields both parts; its members are split one by one. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        if any(map(is_split, (*op.ins, *op.outs))):
            _replace(op, rewriter)

"""A group that is no one kernel, cut into groups that are.

    loom.fused @o {scores; weights; mix; out}     // `out` folds what the rows of `scores` are

becomes

    %a = loom.fused @mix {scores; weights; mix}
    %o = loom.operation @out ... ins(%a ...)

Of members that follow one another, those become a group whose kernel spares most traffic: what it
keeps inside, it neither stores nor loads, and what several members read, it loads once. Then the
members before them and those behind them are cut alike, so that a member is a kernel of its own
only where it is one kernel with neither neighbour. A group is named after its last member, whose
schedule it takes: so schedules are given by labels that the program has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import Rewriter

from tapestry.dialects import loom
from tapestry.dialects._loom_group_rules import member_dim
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.grouping.one_kernel import Limits, why_not_one_kernel
from tapestry.passes.loom.grouping.plan import (
    Plan,
    make_group,
    put_group,
    read_outside,
    why_not_split,
)
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.ungroup import name_inside, names_inside, take_apart
from tapestry.passes.triton.groups.lowering import why_several_kernels
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.zspace import AffineMap, Partition, Range

Aligned = Sequence[tuple[loom.OperationOp, AffineMap]]
"""Members in program order, and their index points as functions of a group's."""

IsOneKernel = Callable[[loom.FusedOp], bool]
"""Whether a group is one kernel."""

_MEMBER = "member"
"""The attribute by which members of one group are known."""


def cut(
    op: loom.FusedOp, rewriter: PatternRewriter, is_one_kernel: IsOneKernel
) -> list[loom.FusedOp]:
    """Put members of a group where it stands, those together that are one kernel; these groups.

    Legal as `loom-ungroup` is: members are whole operations in an order that runs, of which any
    that follow one another may run as one.
    """
    places, names = [place for _, place in op.aligned], names_inside(op)
    cutting = _Cutting(op.index, op.partition, is_one_kernel)
    members = list(zip(take_apart(op, rewriter), places, strict=True))
    groups = [_put(piece, rewriter) for piece in list(cutting.pieces(members))]
    for group in groups:
        name_inside(group, names)
    return groups


def kernels_of(op: loom.FusedOp) -> list[tuple[str, ...]]:
    """The labels of what is in each kernel of a group that is no one kernel; it stays as it is."""
    module = op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    copy = module.clone()
    pairs = zip(module.walk(), copy.walk(), strict=True)
    group = next(other for one, other in pairs if one is op)
    assert isinstance(group, loom.FusedOp)
    for member in group.members:
        member.attributes[_MEMBER] = UnitAttr()
    pieces = cut(group, PatternRewriter(group), lambda piece: why_several_kernels(piece) is None)
    found: list[tuple[str, ...]] = []
    for one in copy.walk():
        if one in pieces and isinstance(one, loom.FusedOp):
            found.append(tuple(member.label.data for member in one.members))
        elif isinstance(one, loom.OperationOp) and _MEMBER in one.attributes and not in_group(one):
            found.append((one.label.data,))
    return found


def _put(plan: Plan, rewriter: PatternRewriter) -> loom.FusedOp:
    """The group of a plan, put in the place of its members."""
    schedule = plan.members[-1].attributes.pop(SCHEDULE, None)
    group = put_group(plan, plan.members[-1].label.data, rewriter)
    if schedule is not None:
        group.attributes[SCHEDULE] = schedule
    return group


@dataclass(frozen=True)
class _Cutting:
    """How a group over an index space is cut, of which some members may be one kernel."""

    index: Range
    partition: Partition | None
    is_one_kernel: IsOneKernel

    def pieces(self, members: Aligned) -> Iterator[Plan]:
        """The groups that members become, which are not one of all."""
        count = len(members)
        runs = [
            (first, last)
            for first in range(count)
            for last in range(first + 2, count + 1)
            if last - first < count
        ]
        spared = {run: _spared([member for member, _ in members[slice(*run)]]) for run in runs}
        for first, last in sorted(runs, key=lambda run: -spared[run]):
            piece = self._plan(members[first:last])
            if self._is_good(piece):
                yield from self._pieces_of_rest(members[:first])
                yield piece
                yield from self._pieces_of_rest(members[last:])
                return

    def _pieces_of_rest(self, members: Aligned) -> Iterator[Plan]:
        """The groups that members become, which may be one of all."""
        if len(members) > 1 and self._is_good(whole := self._plan(members)):
            yield whole
        else:
            yield from self.pieces(members)

    def _plan(self, members: Aligned) -> Plan:
        """Some members of the group as one, over the dimensions that they have."""
        dims = [
            dim
            for dim in range(self.index.rank)
            if any(member_dim(place, dim) is not None for _, place in members)
        ]
        operations = tuple(member for member, _ in members)
        grid = self.partition if self.partition and self.partition.cuts else None
        return Plan(
            operations,
            self.index.select(dims),
            tuple((member, place.select_inputs(dims)) for member, place in members),
            read_outside(operations),
            None if grid is None else grid.select(dims),
        )

    def _is_good(self, plan: Plan) -> bool:
        """Whether members make one kernel, which `loom-group` would make of them, too."""
        if why_not_one_kernel(plan, Limits()) is not None or why_not_split(plan) is not None:
            return False
        last = plan.members[-1]
        group, _ = make_group(plan, last.label.data)
        # Monoids are looked up from where it stands.
        assert last.parent is not None
        last.parent.insert_op_before(group, last)
        is_one = self.is_one_kernel(group)
        Rewriter.erase_op(group)
        return is_one


def _spared(members: Sequence[loom.OperationOp]) -> int:
    """The bytes that a kernel of members moves less than a kernel of each."""
    apart = sum(_size({*member.operands, *member.outs}) for member in members)
    written = {out for member in members for out in member.outs}
    read = {value for member in members for value in member.operands} - written
    return apart - _size({*read, *read_outside(members)})


def _size(values: Iterable[SSAValue]) -> int:
    """The bytes of tensors."""
    return sum(tensor_type(value).byte_size for value in values)

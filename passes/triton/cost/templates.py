"""A kernel that is built, with tiles of other sizes: so others need not be built to be counted.

    template = Template.of(made)                                # of tiles of 128 x 64 x 32
    template.counts(Schedule({"M": 256, "N": 64, "K": 32}))     # as of a kernel that is built so

Two schedules of a kernel that say the same besides sizes have the same operations, on tiles of
other types, where these sizes answer alike what was asked of them (`TileBuilder.holds`): whether
blocks are full, say. Where two sizes become one, a kernel that is built writes shapes of the same
cells once; they take no time. Counting takes a tenth of what building does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule, ScheduleAttr, element_of, shape_of, tile_type
from tapestry.passes.triton.cost.counting import Counts, counts_of
from tapestry.passes.triton.cost.predicting import Calls, Made
from tapestry.passes.triton.tiles.builder import Answers

SIZES = ("tile", "warps", "stages")
"""What a schedule says besides how a kernel walks its points."""


@dataclass(frozen=True, eq=False)
class Template:
    """A copy of a kernel, whose tiles have the sizes that were counted last."""

    schedule: Schedule
    name: str
    _kernel: triton.KernelOp
    _calls: Calls
    _answers: Answers
    _types: Sequence[Attribute]
    """The types of the tiles of the copy, in order, as it was made."""

    @staticmethod
    def of(made: Made) -> Template | None:
        """The template of a kernel; None where it isn't known what of it its sizes decide."""
        if made.answers is None:
            return None
        kernel = made.kernel.clone()
        types = [tile.type for tile in _tiles(kernel)]
        own = kernel.schedule.data, kernel.sym_name.data
        return Template(*own, kernel, made.calls, made.answers, types)

    def counts(self, schedule: Schedule) -> list[tuple[Counts, int]] | None:
        """What launches of the kernel with another schedule do, and how often; None if unknown."""
        changed = self._changed(schedule)
        if changed is None:
            return None
        types = {kind: _resized(kind, changed) for kind in self._types}
        for tile, kind in zip(list(_tiles(self._kernel)), self._types, strict=True):
            if tile.type != types[kind]:
                Rewriter.replace_value_with_new_type(tile, types[kind])
        own = replace(schedule, warps=1, stages=1)
        self._kernel.properties["schedule"] = ScheduleAttr(own)
        return [(counts_of(self._kernel, call), count) for call, count in self._calls]

    def _changed(self, schedule: Schedule) -> Mapping[int, int] | None:
        """The new size by each that differs; None where the kernel is not the same besides.

        A type tells by its sizes which blocks its tiles have: no other block has one that changes.
        """
        if schedule.besides(*SIZES) != self.schedule.besides(*SIZES):
            return None
        before, after = self.schedule.blocks, schedule.blocks
        changed = {size: after[name] for name, size in before.items() if after[name] != size}
        found = Counter(before.values())
        if any(min(pair) == 1 or found[pair[0]] > 1 for pair in changed.items()):
            return None
        alike = all(question(after) == answer for question, answer in self._answers)
        return changed if alike else None


def _tiles(kernel: triton.KernelOp) -> Iterator[SSAValue]:
    """The tiles of a kernel's body, in order."""
    for op in kernel.walk():
        blocks = (block for region in op.regions for block in region.blocks)
        for values in (op.results, *(block.args for block in blocks)):
            yield from (value for value in values if shape_of(value))


def _resized(kind: Attribute, changed: Mapping[int, int]) -> Attribute:
    """The type of tiles of other sizes."""
    return tile_type(element_of(kind), [changed.get(size, size) for size in shape_of(kind)])

"""Which operations of a block become groups: neighbours joined as long as one kernel can be made.

Operations are visited in program order; each joins what its operands come from, one after another,
where the two together can be a group (`why_apart` has nothing against it) and no way leads out of
them and back in. So a group grows along a chain, and what it reads of itself does not leave it.
Each also joins the one before it that reads a tensor alike (`beside`), as the greatest cell of a
row and its place do: the tensor is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation

from tapestry.dialects import loom

Cluster = frozenset[Operation]

WhyApart = Callable[[Sequence[loom.OperationOp]], str | None]
"""Why operations cannot be a group of one kernel, None when they can."""

Beside = Callable[[loom.OperationOp, loom.OperationOp], bool]
"""Whether two operations do something to the same cells, point by point."""


@dataclass
class Clusters:
    """The operations of a block that have been put together so far."""

    order: dict[Operation, int]
    of: dict[Operation, Cluster] = field(default_factory=dict[Operation, Cluster])

    def at(self, op: Operation) -> Cluster:
        """What an operation is put together with, itself alone if nothing."""
        return self.of.get(op, frozenset((op,)))

    def join(self, ops: Cluster) -> None:
        """Put operations together."""
        self.of.update(dict.fromkeys(ops, ops))

    def before(self, op: Operation) -> list[Operation]:
        """What the operations that one is together with read from, last first."""
        together = self.at(op)
        owners = {value.owner for member in together for value in member.operands}
        found = [
            owner for owner in owners if isinstance(owner, loom.OperationOp) and owner in self.order
        ]
        return [other for other in reversed(self.sorted(found)) if other not in together]

    def sorted(self, ops: Iterable[Operation]) -> list[Operation]:
        """Operations in program order."""
        return sorted(ops, key=self.order.__getitem__)

    def leads_back(self, ops: Cluster) -> bool:
        """Whether something outside reads what these write, and they need what it makes of it."""
        last = max(map(self.order.__getitem__, ops))
        seen: set[Cluster] = set()
        waiting = [reader for reader in _readers(ops) if reader not in ops]
        while waiting:
            reader = waiting.pop()
            if reader in ops:
                return True
            outside = self.at(reader)
            if outside not in seen and min(map(self.order.__getitem__, outside)) < last:
                seen.add(outside)
                waiting += _readers(outside)
        return False


def find_clusters(
    block: Block,
    why_apart: WhyApart,
    beside: Beside,
    start: Mapping[Operation, Cluster] | None = None,
) -> list[tuple[loom.OperationOp, ...]]:
    """The groups that a block's operations form, members and groups in program order.

    What is together from the `start` stays together.
    """
    found = Clusters({op: place for place, op in enumerate(block.ops)}, dict(start or {}))
    readers: dict[Hashable, loom.OperationOp] = {}
    for op in block.ops:
        if not isinstance(op, loom.OperationOp):
            continue
        reads = [(op.index, op.kinds, read.value, read.projection) for read in op.in_reads]
        alike = dict.fromkeys(readers[read] for read in reads if read in readers)
        beside_it = [other for other in alike if beside(other, op)]
        # What one join makes possible: a tensor that is read by all that are together now.
        while any(_join(found, op, other, why_apart) for other in (*found.before(op), *beside_it)):
            pass
        readers |= dict.fromkeys(reads, op)
    clusters = dict.fromkeys(found.of[op] for op in found.sorted(found.of))
    return [tuple(_operations(found.sorted(cluster))) for cluster in clusters]


def _join(found: Clusters, op: Operation, other: Operation, why_apart: WhyApart) -> bool:
    """Put what two operations are in together, if that makes a kernel; whether it was done."""
    together = found.at(op) | found.at(other)
    if together == found.at(op) or found.leads_back(together):
        return False
    if why_apart(_operations(found.sorted(together))) is not None:
        return False
    found.join(together)
    return True


def _operations(ops: Iterable[Operation]) -> list[loom.OperationOp]:
    return [op for op in ops if isinstance(op, loom.OperationOp)]


def _readers(ops: Iterable[Operation]) -> Iterator[Operation]:
    for op in ops:
        for result in op.results:
            for use in result.uses:
                reader = use.operation
                while reader.parent is not op.parent:
                    above = reader.parent_op()
                    assert above is not None
                    reader = above
                yield reader

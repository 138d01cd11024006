"""Operations copied for each group that reads them, where what they write is too large to store.

    %s = loom.operation @scores over <[0, 0, 0] : [4096, 4096, 64]> [map, map, fold] ...
    %dq = loom.operation @dq over ... [map, map, fold] ins(%s : (i, c, j) -> (i, j), ...)
    %dk = loom.operation @dk over ... [map, map, fold] ins(%s : (j, c, i) -> (i, j), ...)

becomes

    %s0 = loom.operation @scores ...        %dq = loom.operation @dq ... ins(%s0 ...)
    %s1 = loom.operation @scores ...        %dk = loom.operation @dk ... ins(%s1 ...)

of which two kernels are made, which take scores piece by piece and store none. One kernel it could
not be: `@dq` folds what `@dk` maps. The backward pass of attention is such a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.grouping.clusters import Cluster, Clusters, WhyApart
from tapestry.passes.loom.rebuilding.bodies import in_group


@dataclass
class Family:
    """A copy of an operation, and those of its readers that are one kernel with it."""

    copy: loom.OperationOp
    readers: Cluster

    @property
    def ops(self) -> Cluster:
        """All of them."""
        return self.readers | {self.copy}


@dataclass
class RecomputeForReaders(RewritePattern):
    """An operation is copied for each kernel that its readers form with it.

    Legal because operations are pure: a copy computes the same. Done where the tensor is larger
    than all that it is computed of, all that read it are operations, and each of them is in one
    kernel with a copy, which is all that reads that copy; not where one kernel has all of them.
    `clusters` are the kernels found so far: readers come before what they read.
    """

    why_apart: WhyApart
    clusters: dict[Operation, Cluster] = field(default_factory=dict[Operation, Cluster])
    _large: dict[Block, set[Operation]] = field(default_factory=dict[Block, set[Operation]])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op) or len(op.outs) != 1 or op.partition is not None or op.parent is None:
            return
        # Nothing before an operation has changed when it is visited, from the end on.
        if op.parent not in self._large:
            self._large[op.parent] = large_operations(op.parent)
        if op not in self._large[op.parent]:
            return
        readers = list(dict.fromkeys(use.operation for use in op.outs[0].uses))
        if not readers or not all(_may_read(reader, op) for reader in readers):
            return
        families = self._families(op, readers)
        if families is None:
            return
        for family in families:
            self.clusters.update(dict.fromkeys(family.ops, family.ops))
        for family in families:
            rewriter.notify_op_modified(family.copy)
        rewriter.erase(op)

    def _families(self, op: loom.OperationOp, readers: Sequence[Operation]) -> list[Family] | None:
        """A copy per kernel; None, and nothing changed, where some reader is in none."""
        families: list[Family] = []
        for cluster in dict.fromkeys(self._cluster(reader) for reader in readers):
            if any(self._joins(op, family, cluster) for family in families):
                continue
            copy = op.clone()
            copy.outs[0].name_hint = op.outs[0].name_hint
            assert op.parent is not None
            op.parent.insert_op_after(copy, op)
            family = Family(copy, frozenset())
            families.append(family)
            if not self._joins(op, family, cluster):
                for one in families:
                    one.copy.outs[0].replace_all_uses_with(op.outs[0])
                    one.copy.detach()
                    one.copy.erase()
                return None
        return families

    def _joins(self, op: loom.OperationOp, family: Family, cluster: Cluster) -> bool:
        """Let a kernel's readers read a copy, if they are one kernel with its other readers."""
        before, after = op.outs[0], family.copy.outs[0]
        uses = [use for use in before.uses if use.operation in cluster]
        for use in uses:
            use.operation.operands[use.index] = after
        assert op.parent is not None
        together = family.ops | cluster
        found = self._found(op.parent)
        members = [m for m in found.sorted(together) if isinstance(m, loom.OperationOp)]
        if not found.leads_back(together) and self.why_apart(members) is None:
            family.readers |= cluster
            return True
        for use in uses:
            use.operation.operands[use.index] = before
        return False

    def _found(self, block: Block) -> Clusters:
        return Clusters({op: place for place, op in enumerate(block.ops)}, dict(self.clusters))

    def _cluster(self, op: Operation) -> Cluster:
        return self.clusters.get(op, frozenset((op,)))


def large_operations(block: Block) -> set[Operation]:
    """The operations that write more than all that they are computed of.

    Instead of what is large, and computed again itself, what that is made of counts.
    """
    made_of: dict[Operation, set[SSAValue]] = {}
    for op in block.ops:
        if not isinstance(op, loom.OperationOp):
            continue
        sources: set[SSAValue] = set()
        for value in op.operands:
            known = made_of.get(value.owner) if isinstance(value.owner, Operation) else None
            sources |= {value} if known is None else known
        written = sum(tensor_type(out).byte_size for out in op.outs)
        if written > sum(tensor_type(source).byte_size for source in sources):
            made_of[op] = sources
    return set(made_of)


def _may_read(reader: Operation, op: loom.OperationOp) -> bool:
    """Whether a reader could be of one kernel with an operation."""
    return isinstance(reader, loom.OperationOp) and reader.parent is op.parent

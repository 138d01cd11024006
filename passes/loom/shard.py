"""`loom-shard`: how operations are split, recorded as an attribute.

    %y = loom.operation @linear over <[0, 0, 0] : [64, 32, 784]> [map, map, fold] by @add ...

becomes, under `loom-shard{grid=2,1,2 op=linear}`,

    %y = loom.operation @linear over <[0, 0, 0] : [64, 32, 784]> [map, map, fold] by @add ...
           shards <grid [[0, 32, 64], [0, 32], [0, 392, 784]]> ...

Options: `op` names the operations by label (all without it), and one of
  `grid=2,1,2`                            that many balanced parts per index dimension;
  `partition="grid [[0, 3, 8], [0, 4]]"`  exact cuts per dimension;
  `partition="ranges [[0] : [3], ...]"`   any ranges that tile the index space;
  `shards=4`                              about that many parts, balanced: map dimensions first,
                                          fold dimensions (whose states merge) or the scan (whose
                                          states go on) when those run out;
  `bytes=65536`                           as few balanced parts as make what each reads and writes
                                          at most that, as far as operations can be split.

Input and output: any verified loom program; only the attribute changes, so values do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.utils.exceptions import ParseError

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects.zspace import PartitionAttr, parse_partition
from tapestry.locations import location_of
from tapestry.movement import Splittable, part_bytes, whole
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.zspace import Partition, ZSpaceError

Choose = Callable[[Splittable], Partition]


class IllegalShardingError(InvalidProgramError):
    """A partition that an operation cannot be split by."""

    kind = "illegal_sharding"


_MOST_SHARDS = 1 << 24
"""A grid of more parts than this along one dimension would be too long to hold."""


@dataclass
class ShardOperation(RewritePattern):
    """Record a partition on an operation.

    Legal when the ranges tile the index space exactly and shards that differ in a map dimension
    write disjoint boxes of every output. Shards that differ in fold dimensions only are merged by
    the operation's monoid; one that does not commute needs them in row-major order. Shards along a
    scan go on from one another, so they must be listed from first to last. A group is split as one,
    along dimensions that its members map.
    """

    chosen: Mapping[Splittable, Partition]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Splittable, rewriter: PatternRewriter) -> None:
        partition = self.chosen.get(op)
        if partition is not None and partition != op.partition:
            op.shards = PartitionAttr(partition)
            rewriter.notify_op_modified(op)


def _checked(op: Splittable, partition: Partition) -> Partition:
    problems = op.sharding_problems(partition)
    if problems:
        raise IllegalShardingError(
            f"{op.subject} cannot be split so: {'; '.join(p.message for p in problems)}",
            location=location_of(op),
        )
    return partition


def grid_partition(op: Splittable, counts: tuple[int, ...]) -> Partition:
    """That many balanced parts per index dimension."""
    if len(counts) != op.index.rank:
        raise IllegalShardingError(
            f"{op.subject} has {op.index.rank} index dimensions, but the grid has "
            f"{len(counts)} counts",
            location=location_of(op),
        )
    try:
        return Partition.balanced(op.index, counts)
    except ZSpaceError as error:
        raise IllegalShardingError(
            f"{op.subject} cannot be split so: {error}", location=location_of(op)
        ) from None


def balanced_partition(op: Splittable, shards: int) -> Partition:
    """About `shards` parts: each prime factor, largest first, splits the longest dimension left.

    Map dimensions come before a fold's or a scan's. A dimension that no split of suits (one that a
    row of an output mixes with a slower one) is left whole; when nothing can be split further, the
    remaining factors are dropped, so there are never more than `shards` parts. An index space with
    fewer points is split into as many parts as it has points.
    """
    counts = [1] * op.index.rank
    for prime in _prime_factors(min(shards, max(1, op.index.size))):
        for dims in (op.map_dims, op.merged_dims):
            room = [d for d in dims if op.index.shape[d] >= counts[d] * prime]
            room.sort(key=lambda d: -(op.index.shape[d] // counts[d]))
            chosen = next((d for d in room if _splits(op, counts, d, prime)), None)
            if chosen is not None:
                counts[chosen] *= prime
                break
    return Partition.balanced(op.index, counts)


def budget_partition(op: Splittable, budget: int) -> Partition:
    """Balanced parts that each read and write at most `budget` bytes, as far as that can be.

    Until the largest part fits, a dimension is halved: the map dimension that leaves the fewest
    bytes, a fold's or the scan's where none helps. Where no split makes a part smaller, it stays.
    """
    partition, held = whole(op), part_bytes(op, op.index)
    counts = [1] * op.index.rank
    while held > budget:
        halves: list[tuple[int, list[int], Partition]] = []
        for dims in (op.map_dims, op.merged_dims):
            found = [_halved(op, counts, dim) for dim in dims]
            halves = [half for half in found if half is not None and half[0] < held]
            if halves:
                break
        if not halves:
            break
        held, counts, partition = min(halves, key=lambda found: found[0])
    return partition


def _halved(
    op: Splittable, counts: Sequence[int], dim: int
) -> tuple[int, list[int], Partition] | None:
    """The bytes of the largest part with twice as many parts along `dim`, if that is legal."""
    trial = list(counts)
    trial[dim] = min(2 * trial[dim], op.index.shape[dim])
    if trial[dim] <= counts[dim] or trial[dim] > _MOST_SHARDS:
        return None
    partition = Partition.balanced(op.index, trial)
    if op.sharding_problems(partition):
        return None
    return part_bytes(op, partition.part(0)), trial, partition


def _splits(op: Splittable, counts: Iterable[int], dim: int, factor: int) -> bool:
    trial = list(counts)
    trial[dim] *= factor
    return not op.sharding_problems(Partition.balanced(op.index, trial))


@lru_cache(maxsize=64)
def _prime_factors(n: int) -> list[int]:
    """The prime factors of n, largest first.

    >>> _prime_factors(12)
    [3, 2, 2]
    """
    factors: list[int] = []
    candidate = 2
    while candidate * candidate <= n:
        while n % candidate == 0:
            factors.append(candidate)
            n //= candidate
        candidate += 1
    if n > 1:
        factors.append(n)
    return factors[::-1]


def read_partition(text: str) -> Partition:
    """The partition that an option's text says; UsageError with what would be right."""
    parser = Parser(Context(), text, "partition")
    try:
        partition = parse_partition(parser)
    except ParseError as error:
        raise UsageError(
            f"the partition {text!r} is not well formed: {error.msg}",
            hint='write "grid [[0, 3, 8], [0, 4]]" or "ranges [[0] : [3], [3] : [8]]"',
        ) from None
    return partition


@dataclass(frozen=True)
class LoomShard(ModulePass):
    """Record partitions on operations."""

    name = "loom-shard"

    shards: int | None = None
    grid: tuple[int, ...] | None = None
    partition: str | None = None
    bytes: int | None = None
    op: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        choose = self._chooser()
        with collection_paused():
            targets = [
                target
                for target in op.walk()
                if isinstance(target, Splittable)
                and not in_group(target)
                and (self.op is None or target.subject == f"@{self.op}")
            ]
            if self.op is not None and not targets:
                raise UsageError(f"loom-shard: there is no operation or group @{self.op}")
            # All is checked before anything changes: a refused pass leaves the program alone.
            pattern = ShardOperation({t: _checked(t, choose(t)) for t in targets})
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)

    def _chooser(self) -> Choose:
        given = [
            n for n in ("shards", "grid", "partition", "bytes") if getattr(self, n) is not None
        ]
        if len(given) != 1:
            raise UsageError("loom-shard takes exactly one of shards, grid, partition and bytes")
        if self.shards is not None:
            shards = self.shards
            if not 1 <= shards <= _MOST_SHARDS:
                message = f"loom-shard: shards must be from 1 to {_MOST_SHARDS}, not {shards}"
                raise UsageError(message)
            return lambda op: balanced_partition(op, shards)
        if self.bytes is not None:
            budget = self.bytes
            if budget < 1:
                raise UsageError(f"loom-shard: bytes must be at least 1, not {budget}")
            return lambda op: budget_partition(op, budget)
        if self.grid is not None:
            grid = self.grid
            return lambda op: grid_partition(op, grid)
        partition = read_partition(self.partition or "")
        return lambda _: partition

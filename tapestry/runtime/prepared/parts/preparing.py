"""Large groups and operations: parts that fit the cache, on all threads.

    run = in_parts(group)
    (y,) = run([x])             # each part is read from x and written to its place in y

A part runs all members, in memory of its thread that stays in cache; no inner tensor is ever whole.
Parts are cut along what all members map. What folds alone may be cut along that as well
(`folded_parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue

from tapestry.algebra.bodies import dependences, moving_dims, needed_operations
from tapestry.algebra.complements import find_merged_at_once
from tapestry.algebra.contraction import Contraction, find_contractions
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.algebra.scalars import scalar_of
from tapestry.codegen.loops import is_known, kind_of
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_reads, member_writes
from tapestry.dialects._loom_group_rules import inner_edges, why_whole
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.cpu.threads import thread_count
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.folds.halves import merging_of
from tapestry.runtime.prepared.loops.looping import ONCE, Loops
from tapestry.runtime.prepared.loops.merging import staying
from tapestry.runtime.prepared.memory import CACHE
from tapestry.runtime.prepared.parts.alone import Alone
from tapestry.runtime.prepared.parts.cuts import Access, Cuts
from tapestry.runtime.prepared.parts.folded_parts import folded_in_parts
from tapestry.runtime.prepared.parts.inside import Insides
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.prepared.tapes.members import (
    is_reduction,
    moves_products,
    record_member,
    values_between,
)
from tapestry.runtime.prepared.tapes.pieces import placed_reads
from tapestry.runtime.prepared.tapes.recording import Recorder, Slots, output_of, recorded
from tapestry.runtime.prepared.tapes.regions import Regions
from tapestry.runtime.prepared.views import writes_in_order
from tapestry.zspace import AffineMap, Projection

Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]

InParts: TypeAlias = Callable[[loom.FusedOp | loom.OperationOp], Run | None]

Members: TypeAlias = Sequence[tuple[loom.OperationOp, AffineMap]]

SMALL = 1 << 23
"""Bytes that a computation touches up to which parts are not worth it."""

_WOKEN = 1 << 21
"""Scalar operations of a thread from which it is worth to wake it for what a cache holds: to wake
it, and to have both cores look at the same lines, took a tenth of a millisecond on a Zen 3.
"""

_SHARE = 1 << 20
"""Those of a thread of the host's, which is awake: a call that shares parts takes some tens of
microseconds more than one that computes them alone.
"""

_SHARED_BESIDE = 1 << 25
"""Bytes from which to wake threads where another library's wait for work by spinning."""

_LONG = 512
"""Terms of a sum of products from which what is done with a sum afterwards costs little."""

_BETWEEN = 4
"""Bytes of a value in between."""

_CALL = 1 << 11
"""Scalar operations that take as long as it does to call a function of cells."""

_FOLD = 1 << 13
"""Those that take as long as to call what folds, and to arrange what it takes and makes."""

_READ = 1 << 14
"""Those that take as long as to see that computed places are inside, and to find how they lie."""

_PRODUCTS = 16
"""How many products BLAS computes in the time of a scalar operation."""

_MOVED = 4
"""Operations for each cell that is made on the way to a state whose parts move as products."""

_ONE_LOOP = 40
"""Operations up to which maps surely are one loop."""

_BY_BLAS = "fdFD"
"""The types of numbers that BLAS multiplies: floats and complex ones of 32 and 64 bits each."""

_LARGEST = 1 << 24
"""Bytes that a part may touch; above, members run for themselves."""


_LOOPS = Loops(ONCE)


def in_parts(
    op: loom.FusedOp | loom.OperationOp,
    *,
    small: int = SMALL,
    threads: int | None = None,
    cache: int | None = None,
    products: bool = True,
    loops: Loops | None = _LOOPS,
) -> Run | None:
    """What a group or an operation does, in parts; None where it is small, or of another form.

    `threads` are all there are, and `cache` the bytes that a part should fit, unless given. Without
    `products`, what is one product of matrices is another library's to compute, which has threads
    of its own; what folds cells as they are is not worth parts for one thread: sums are products.
    `loops` are what scalar operations are compiled to, where that pays: unless given, for one call.
    """
    if op.partition is not None or op.index.is_empty or op.index.rank == 0:
        return None
    members = _members(op)
    count = _operations(members)
    factors = _gathered_factors(op) if isinstance(op, loom.OperationOp) else 0
    if factors:
        count = factors
    elif any(moves_products(member, accumulating_monoid_of(member)) for member, _ in members):
        # What comes before a state that is moved by products is in between, part by part.
        count = sum(operations_of_numpy(member) for member, _ in members)
    looped = loops is not None and loops.pay(count)
    most = 8 * op.index.size * sum(len(member.operands) + 4 for member, _ in members)
    if most < small and not looped:
        return None  # whatever is touched: the index space is small
    matrices = _vectors(members) if products and cache is None else 0
    if matrices == 1:
        # BLAS reads it once, with threads of its own, which are awake sooner than ours.
        return None
    accesses = _accesses(members, between=not looped)
    whole = sum(access.bytes(op.index) for access in accesses)
    if whole < small:
        if not looped:
            return None
        alone = loops is not None and loops.team is None
        most = (count - _left_out(members)) // _WOKEN if alone else 1
        threads = max(1, min(thread_count() if threads is None else threads, most))
    if looped and loops is not None:
        loops = replace(loops, least=1)  # they pay, all that there are
    if threads is None:
        threads = thread_count() if products or whole >= _SHARED_BESIDE else 1
    reduces = isinstance(op, loom.OperationOp) and is_reduction(op)
    product = isinstance(op, loom.OperationOp) and _is_product(op)
    long = isinstance(op, loom.OperationOp) and product and _is_left_to_blas(op)
    # What is read once, and reduced as it is, need not stay in cache; BLAS has blocks of its own,
    # and packs what parts of a product have in common again for each.
    # Nor need what is one loop: nothing is between its operations.
    once = matrices > 0 or (looped and _is_one_loop(members))
    any_size = cache is None and (reduces or long or once)
    cache = CACHE if cache is None else cache
    most = threads
    folds = isinstance(op, loom.OperationOp) and bool(op.fold_dims) and not product
    if looped and loops is not None and loops.team is not None:
        # The host's threads are awake: they share what is small, too, where loops compute it.
        most = max(threads, min(loops.team.count(), count // _SHARE))
    each = 1 if most == 1 else 2 if whole < small else 4
    cuts = Cuts(op.index, accesses, most, cache, each=each, any_size=any_size)
    dims = _apart(op)
    left = (product and not (factors and looped)) or (threads == 1 and reduces and not looped)
    if not products and left:
        return None
    if isinstance(op, loom.OperationOp) and folds:
        steps = cuts.steps([*dims, *op.fold_dims])
        if not steps.keys().isdisjoint(op.fold_dims):
            return folded_in_parts(op, cuts, steps, loops)
    return _mapped(op, members, cuts, cuts.steps(dims), loops, threads)


def operations_of_numpy(op: loom.OperationOp) -> int:
    """How many scalar operations take as long as NumPy does to compute an operation."""
    if _is_product(op):
        return _CALL + op.index.size // _PRODUCTS + _unwrapped(op)
    if moves_products(op, accumulating_monoid_of(op)):
        cells = sum(prod(op.index.shape[dim] for dim in dims) for dims in values_between(op))
        return _FOLD + op.index.size // _PRODUCTS + _MOVED * cells + _unwrapped(op)
    return _operations(_members(op))


def _gathered_factors(op: loom.OperationOp) -> int:
    """How many scalar operations there are for a product's factors, and for what comes after.

    0 where it is no product, or no factor is read at computed places.
    """
    if not any(isinstance(one, loom.ReadOp) for one in op.wrap_block.ops) or not _is_product(op):
        return 0
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    found = find_contractions(op, accumulating_monoid_of(op)) or ()
    needed = needed_operations([side for one in found for side in (one.left, one.right)])
    cells = [prod(op.index.shape[d] for d in varies[one.results[0]]) for one in needed]
    return sum(cells) + _CALL * len(cells) + _unwrapped(op)


def _members(op: loom.FusedOp | loom.OperationOp) -> Members:
    if isinstance(op, loom.FusedOp):
        return op.aligned
    return ((op, AffineMap.identity(op.index.rank)),)


def _apart(op: loom.FusedOp | loom.OperationOp) -> list[int]:
    """The dimensions along which parts have nothing to do with each other."""
    if isinstance(op, loom.FusedOp):
        shared = [dim for dim, kind in enumerate(op.dim_classes) if kind == "shared"]
        edges = inner_edges(op)
        return [dim for dim in shared if why_whole(op, dim, edges) is None]
    written = [moving_dims(p) for _, p in _written(_members(op))]
    return [dim for dim in op.map_dims if all(dim in moving for moving in written)]


def _written(members: Members) -> list[tuple[SSAValue, Projection]]:
    return [pair for member, place in members for pair in member_writes(member, place)]


def _is_left_to_blas(op: loom.OperationOp) -> bool:
    """Whether little but multiplying is done in a product."""
    if op.fold_range(op.index).size >= _LONG:
        return True
    found = find_contractions(op, accumulating_monoid_of(op)) or ()
    return op.unwrap_block is None and all(map(_reads_factors, found))


def _operations(members: Members) -> int:
    """What NumPy would do, as scalar operations: for each call, those that take as long as it does.

    0 where there are products, whatever is done beside.
    """
    count = 0
    for member, _ in members:
        if _is_product(member):
            return 0
        points, kept = member.index.size, member.kept_range(member.index).size
        count += (len(member.wrap_block.ops) - 1) * (points + _CALL)
        count += _READ * sum(isinstance(inner, loom.ReadOp) for inner in member.wrap_block.ops)
        count += sum(fill is not None for fill in member.in_fills) * (points + _FOLD)
        monoid = accumulating_monoid_of(member)
        if monoid is not None:
            scan, times = member.scan_dim, 1
            if monoid.primitive is None or scan is not None:  # neighbours merge, again and again
                along = points // max(1, kept) if scan is None else member.index.shape[scan]
                times = max(1, (along - 1).bit_length())
            count += max(len(monoid.merge.ops) - 1, 1) * (points + times * _FOLD)
        count += _unwrapped(member)
    return count


def _left_out(members: Members) -> int:
    """Those of NumPy's operations that a loop leaves out: where one part of a state says which of
    two is chosen, that of all points is compared, and that is all for most.
    """
    (member, _), *others = members
    is_fold = not others and member.scan_dim is None
    monoid = accumulating_monoid_of(member) if is_fold else None
    merging = None if monoid is None else merging_of(monoid)
    stays = None if merging is None else staying(merging)
    if monoid is None or stays is None:
        return 0
    part = loom.yielded(member.wrap_block)[stays.part]
    rest = len(member.wrap_block.ops) - 1 - len(needed_operations([part]))
    merged = len(monoid.merge.ops) - 2  # but for one comparison
    return (rest + merged) * member.index.size


def _unwrapped(op: loom.OperationOp) -> int:
    """The same of what is computed of states."""
    if op.unwrap_block is None:
        return 0
    return (len(op.unwrap_block.ops) - 1) * (op.kept_range(op.index).size + _CALL)


def _is_one_loop(members: Members) -> bool:
    """Whether members are maps of what loops know, of cells as they are, or one fold of that.

    The fold's states merge by a merge of its own: what is reduced part by part is a loop for each.
    """
    ops = [op for member, _ in members for op in member.wrap_block.ops]
    monoids = [accumulating_monoid_of(member) for member, _ in members]
    if any(monoids) and len(members) > 1:
        return False
    for monoid in filter(None, monoids):
        merged = merging_of(monoid) is not None and find_merged_at_once(monoid) is None
        if not merged or any(kind_of(numpy_dtype(kind)) is None for kind in monoid.state):
            return False
        ops += monoid.merge.ops
    if len(ops) > _ONE_LOOP:
        return False
    for member, _ in members:
        fours = zip(member.ins, member.in_maps, member.in_fills, strict=True)
        for value, projection, fill in fours:
            read = projection.apply_range(member.index)
            if fill is not None and not tensor_type(value).box.contains_range(read):
                return False
    plain = (arith.ConstantOp, loom.IndexOp, loom.ReadOp, loom.YieldOp)
    scalars = [scalar_of(op) for op in ops if not isinstance(op, plain)]
    return all(scalar is not None and is_known(scalar) for scalar in scalars)


def _is_product(op: loom.OperationOp) -> bool:
    return bool(find_contractions(op, accumulating_monoid_of(op)))


def _vectors(members: Members) -> int:
    """How many matrices members multiply, each by a vector and as it lies, where all else is small.

    0 where they do something else.
    """
    most = 0
    for member, _ in members:
        found = find_contractions(member, accumulating_monoid_of(member)) or ()
        if not found and 8 * member.index.size >= SMALL:
            return 0
        for one in found:
            batch, rows, columns = (
                prod(member.index.shape[dim] for dim in dims)
                for dims in (one.batch, one.rows, one.columns)
            )
            if min(rows, columns) > 1 or not _reads_factors(one):
                return 0
            most = max(most, batch)
    return most


def _reads_factors(product: Contraction) -> bool:
    """Whether factors are cells of operands, of a type that BLAS takes."""
    sides = (product.left, product.right)
    if not all(isinstance(one, BlockArgument) for one in sides):
        return False
    return all(numpy_dtype(one.type).char in _BY_BLAS for one in sides)


def _accesses(members: Members, *, between: bool) -> list[Access]:
    """What the members touch: operands, what they write, and values in between.

    Loops have values in between in registers, but for what members write.
    """
    found: dict[object, Access] = {}
    inner = {value for value, _ in _written(members)}
    for member, place in members:
        reads = [(r.value, r.projection) for r in member_reads(member, place)]
        for value, projection in [*reads, *member_writes(member, place)]:
            kind = tensor_type(value)
            size = numpy_dtype(kind.element_type).itemsize
            again = value not in inner
            key = value if value in inner else (value, projection)
            found[key] = Access.of(projection, kind.box.shape, size, again=again)
        for dims in values_between(member) if between else ():
            points = Projection.cells(place.select_outputs(sorted(dims)))
            found[points] = Access(points, (0,) * points.outputs, _BETWEEN)
    return list(found.values())


def _mapped(
    op: loom.FusedOp | loom.OperationOp,
    members: Members,
    cuts: Cuts,
    steps: dict[int, int],
    loops: Loops | None,
    threads: int,
) -> Run | None:
    """Parts that have nothing to do with each other."""
    inputs, yielded = _ends(op)
    insides = Insides.of(op.index, members, yielded)
    reads = (read for member, place in members for read in member_reads(member, place))
    outer = [read for read in reads if read.value in inputs]
    regions = Regions.of(op.index, outer, _apart(op), placed_reads(members, inputs, op.index))
    boxes = (part for box in regions.boxes for part in replace(cuts, index=box).parts(steps))
    parts = [insides.shrunk(part) for part in boxes]
    largest = max(parts, key=lambda part: part.size)
    if cuts.bytes(largest) > max(_LARGEST, 4 * cuts.cache) and isinstance(op, loom.FusedOp):
        return None

    def record(recorder: Recorder) -> Slots | None:
        slots: dict[SSAValue, int] = {}
        for member, place in members:
            made = record_member(recorder, member, place)
            if made is None:
                return None
            slots |= zip(member.outs, made, strict=True)
        return [recorder.stored(slots[value], written[value]) for value in yielded]

    written = dict(_written(members))
    tapes = recorded(op.index, parts, inputs, record, insides.kind, loops, regions)
    if tapes is None:
        return None
    outs = tuple(output_of(value, written[value], op.index) for value in yielded)
    mapped = Mapped(tapes, outs, min(threads, len(parts)))
    in_order = all(writes_in_order(out.projection, out.box, op.index) for out in outs)
    return Alone(mapped) if parts == [op.index] and in_order else mapped


def _ends(op: loom.FusedOp | loom.OperationOp) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """What members read from outside, and what they write there."""
    if isinstance(op, loom.FusedOp):
        return op.body.block.args, op.yielded
    return op.operands, op.outs

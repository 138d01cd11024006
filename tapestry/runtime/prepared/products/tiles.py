"""Which operations are sums of products by loops in tiles (`tiled`).

    run = tiled_operation(op, monoid, library, plain)       # None where it has another form

It follows from projections and bodies: convolutions with any strides, groups and padding are such
sums, with what is done before and after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.contraction import Contraction, find_contractions
from tapestry.algebra.dtypes import is_element_type, numpy_dtype
from tapestry.algebra.literals import number_in
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.named import Scalar
from tapestry.algebra.scalars import compute, scalar_of
from tapestry.codegen.loops import is_known, kind_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Fill, tensor_type
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import some_of
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.products.tiled import Computed, Moved, TiledProduct
from tapestry.runtime.prepared.script import Finished, Run, Script
from tapestry.zspace import Projection, Range

_EACH = 16
"""How many scalar operations a product counts for: otherwise windows are copied, or PyTorch is
called, which takes as long as thousands of products.
"""

_FAR = 1 << 30
"""Coordinates that are no places of an array of which less than all is read."""


def tiled_operation(
    op: loom.OperationOp, monoid: Monoid | None, library: Library, plain: Run
) -> TiledProduct | Finished | None:
    """The operation by loops; `plain` does the same otherwise.

    It is contractions in float32 at all points, of factors that are computed of different
    inputs, which are zero where they are read outside; all of it is for loops. Of several sums each
    result takes one.
    """
    loops, products = library.loops, find_contractions(op, monoid)
    if loops is None or not products or monoid is None:
        return None
    if op.inside is not None and not op.inside.covers(op.index):
        return None
    if {*monoid.state, *op.state_types} != {f32} or not loops.pay(_EACH * op.index.size):
        return None
    if len(products) == 1:
        return _tiled(op, products[0], 0, range(len(op.outs)), library, plain)
    owners = _owners(op)
    if None in owners:
        return None
    script, made = Script(), dict[int, int]()
    given = [script.argument() for _ in op.operands]
    for number, product in enumerate(products):
        outs = [n for n, owner in enumerate(owners) if owner == number]
        run = _tiled(op, product, number, outs, library, partial(some_of, plain, tuple(outs)))
        if run is None:
            return None
        made |= zip(outs, script.calls(run, given, len(outs)), strict=True)
    return script.finish([made[n] for n in range(len(op.outs))])


def _owners(op: loom.OperationOp) -> list[int | None]:
    """The part of the state that each result is computed of, None for several or none."""
    if op.unwrap_block is None:
        return [*range(len(op.outs))]
    parts = op.unwrap_block.args[: len(op.state_types)]
    found: list[int | None] = []
    for end in loom.yielded(op.unwrap_block):
        taken = {end}.union(*(one.operands for one in needed_operations([end])))
        own = [n for n, part in enumerate(parts) if part in taken]
        found.append(own[0] if len(own) == 1 else None)
    return found


def _tiled(
    op: loom.OperationOp,
    product: Contraction,
    number: int,
    results: Sequence[int],
    library: Library,
    plain: Run,
) -> TiledProduct | None:
    """Some results, of one part of the state."""
    factors = (product.left, product.right)
    wrap = _computed(op.wrap_block, op.wrap_block.args, factors)
    unwrap = _unwrapped(op, number, results)
    outs = [tensor_type(op.outs[n]) for n in results]
    if wrap is None or wrap[2] or unwrap is None or any(factor.type != f32 for factor in factors):
        return None
    sides = [wrap[1].needs(slot, len(wrap[0])) for slot in wrap[1].wanted]
    if sides[0] & sides[1] or not all(sides):
        return None
    kept, every = op.kept_range(op.index), tuple(range(op.index.rank))
    reads = [_read(n, op.ins[n], op.in_maps[n], op.in_fills[n], op.index, every) for n in wrap[0]]
    for n in unwrap[0]:
        fill, projection = op.extra_fills[n], op.extra_maps[n]
        reads.append(_read(len(op.ins) + n, op.extras[n], projection, fill, kept, op.kept_dims))
    places: list[Array] = []
    for dim in unwrap[2]:
        places.append(np.arange(op.index.start[dim], op.index.end[dim]))
        reads.append(Moved(len(op.operands) + len(places) - 1, ((0, ((dim, 1),)),), (None,)))
    found = [read for read in reads if read is not None]
    if len(found) < len(reads):
        return None
    writes = [
        _moved(n, op.out_maps[n], kind.box, kept, op.kept_dims)
        for n, kind in zip(results, outs, strict=True)
    ]
    return TiledProduct(
        plain,
        op.index.shape,
        tuple(op.fold_dims),
        tuple(found),
        wrap[1],
        unwrap[1],
        tuple(writes),
        tuple(kind.box.shape for kind in outs),
        tuple(numpy_dtype(kind.element_type) for kind in outs),
        (_work(factors[0]), _work(factors[1])),
        len(wrap[0]),
        library.team,
        tuple(places),
    )


def _unwrapped(
    op: loom.OperationOp, number: int, results: Sequence[int]
) -> tuple[list[int], Computed, list[int]] | None:
    """What is computed of a sum, as `_computed`; None for results of another type than stored."""
    kinds = [tensor_type(op.outs[n]).element_type for n in results]
    if op.unwrap_block is None:
        return ([], Computed((), (), (0,)), []) if kinds == [f32] else None
    ends = [loom.yielded(op.unwrap_block)[n] for n in results]
    if [value.type for value in ends] != kinds:
        return None
    count, block = len(op.state_types), op.unwrap_block
    return _computed(block, block.args[count:], ends, [block.args[number]])


_QUICK = ("add", "sub", "mul", "max", "min", "cmp", "neg", "select", "abs")
"""What the names of operations have in them that take as long as an addition."""

_SLOW = 12
"""How many of these another one takes, as a quotient or an exponential does."""


def _work(factor: SSAValue) -> int:
    """About how many additions it takes to compute a factor."""
    ops = [one for one in needed_operations([factor]) if not isinstance(one, arith.ConstantOp)]
    return sum(1 if any(name in one.name for name in _QUICK) else _SLOW for one in ops)


def _read(
    operand: int,
    value: SSAValue,
    projection: Projection,
    fill: Fill | None,
    index: Range,
    dims: Sequence[int],
) -> Moved | None:
    """How an operand is read; None where it is in blocks, or another number than 0 outside."""
    if not projection.is_unit:
        return None
    box = tensor_type(value).box
    moved, read = _moved(operand, projection, box, index, dims), projection.apply_range(index)
    if box.contains_range(read):
        return moved
    # Loops compare 32-bit integers to know what is outside.
    near = all(abs(n) < _FAR for one in (box, read) for n in (*one.start, *one.end))
    return moved if near and fill is not None and number_in(fill) == 0 else None


def _moved(
    operand: int, projection: Projection, box: Range, index: Range, dims: Sequence[int]
) -> Moved:
    """How an operand goes along a range, whose dimensions are those of the operation."""
    low, read = projection.map.apply(index.start), projection.apply_range(index)
    axes = zip(projection.map.terms, low, box.start, strict=True)
    ends = zip(box.start, read.start, read.end, box.end, strict=True)
    return Moved(
        operand,
        tuple(
            (first - start, tuple((dims[dim], factor) for factor, dim in terms))
            for terms, first, start in axes
        ),
        tuple(
            None if start <= first and last <= end else end - start
            for start, first, last, end in ends
        ),
    )


def _computed(
    block: Block,
    arguments: Sequence[SSAValue],
    wanted: Sequence[SSAValue],
    before: Sequence[SSAValue] = (),
) -> tuple[list[int], Computed, list[int]] | None:
    """Values of a body: the numbers of the arguments that they take, how they are computed, and the
    dimensions whose coordinates they take.

    Slots are other arguments, `before` those, these, coordinates, and what comes after. None where
    some of it is not for loops.
    """
    needed = needed_operations(wanted)
    ordered = [one for one in block.ops if one in needed]
    constants = [one for one in ordered if isinstance(one, arith.ConstantOp)]
    indices = [one for one in ordered if isinstance(one, loom.IndexOp)]
    computed = [one for one in ordered if not isinstance(one, arith.ConstantOp | loom.IndexOp)]
    taken = {value for one in computed for value in one.operands}.union(wanted)
    own = [n for n, value in enumerate(arguments) if value in taken]
    if any(not _is_number(arguments[n]) for n in own):
        return None
    given = [*before, *(arguments[n] for n in own)]
    values = [*given, *(one.result for one in (*indices, *constants))]
    slots: dict[SSAValue, int] = {value: n for n, value in enumerate(values)}
    cells: list[tuple[Scalar, tuple[int, ...]]] = []
    for one in computed:
        scalar = scalar_of(one)
        if scalar is None or not is_known(scalar):
            return None
        cells.append((scalar, tuple(slots[value] for value in one.operands)))
        slots[one.results[0]] = len(slots)
    numbers = tuple(compute(one, ()) for one in constants)
    ends = tuple(slots[value] for value in wanted)
    return own, Computed(numbers, tuple(cells), ends), [one.dimension for one in indices]


def _is_number(value: SSAValue) -> bool:
    """Whether an argument is a number that loops read, not a block."""
    return is_element_type(value.type) and kind_of(numpy_dtype(value.type)) is not None

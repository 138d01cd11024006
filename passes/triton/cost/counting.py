"""What a kernel does, counted from its IR: operations, bytes, products, tiles that are alive.

    for k in range(0, 1024, 64):        16 steps
      load 128 x 64, load 64 x 128      16 times 16 KB each, staged in shared memory
      dot 128 x 64 x 128                16 products
    store 128 x 128                     32 KB

Loops count by the bounds that programs find (`programs.py`), so a causal mask that ends a walk
earlier halves what is counted. No operation of the program is known by name here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2, prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, math, scf
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.dtypes import name_of
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.cost.accesses import Accesses
from tapestry.passes.triton.cost.addressing import cells_at_once
from tapestry.passes.triton.cost.calls import Call
from tapestry.passes.triton.cost.factors import Factors, tile_bytes
from tapestry.passes.triton.cost.kinds import Kinds
from tapestry.passes.triton.cost.lives import live_bytes, unrolled
from tapestry.passes.triton.cost.neighbours import VECTOR, Neighbours
from tapestry.passes.triton.cost.programs import Columns, Indices
from tapestry.passes.triton.cost.surroundings import (
    feeds_product,
    is_carried,
    is_shared_out,
)
from tapestry.passes.triton.cost.work import WARP_ROWS, Product, Stream, Work

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_FREE = Kinds(
    arith.ConstantOp,
    scf.ForOp,
    scf.IfOp,
    scf.YieldOp,
    triton.ArangeOp,
    triton.BlockSizeOp,
    triton.BroadcastOp,
    triton.CoverOp,
    triton.DescribeOp,
    triton.ExpandDimsOp,
    triton.FullOp,
    triton.ProgramIdOp,
    triton.TransposeOp,
)
_COUNTED = Kinds(
    scf.ForOp,
    scf.IfOp,
    triton.CombineOp,
    triton.CoverOp,
    triton.DescribeOp,
    triton.DotOp,
    triton.LoadBlockOp,
    triton.LoadOp,
    triton.StoreBlockOp,
    triton.StoreOp,
)
"""What is not done cell by cell."""
_SPECIALS = Kinds(
    arith.DivfOp,
    math.CosOp,
    math.ErfOp,
    math.ExpOp,
    math.Exp2Op,
    math.LogOp,
    math.Log2Op,
    math.PowFOp,
    math.RsqrtOp,
    math.SinOp,
    math.SqrtOp,
    math.TanhOp,
    triton.ErfcOp,
)
_EXPONENTIALS = Kinds(math.ExpOp, math.Exp2Op)
_SPLIT, _PARTS = 14, 6
"""Operations that take a cell of float32 apart (twice its first bits, within bounds, and the rest;
most are done at half the rate of sums), and the bytes of its parts."""
_CORRECTED = 6
"""Ordinary operations that go with a function that the hardware has only roughly."""


def split_lanes(m: int, n: int, k: int, warps: int) -> float:
    """Operations of lanes that take the factors of a product apart, and sum the product up."""
    # Warps that share rows take these apart each.
    rows = max(m, WARP_ROWS * warps)
    return _SPLIT * k * (rows + n) + m * n


def work_of(kernel: triton.KernelOp, call: Call) -> Work:
    """What a launch of a kernel does."""
    return _Counter(kernel, call).count()


@dataclass(frozen=True, eq=False)
class _Times:
    """How often something is done, per column of `programs.py`, and how often on the mean."""

    numbers: Numbers
    mean: float


@dataclass
class _Counter:
    kernel: triton.KernelOp
    call: Call
    streams: list[Stream] = field(default_factory=list[Stream])
    products: list[Product] = field(default_factory=list[Product])
    kept: dict[str, float] = field(default_factory=dict[str, float])
    lanes: float = 0.0
    each: dict[Operation, float] = field(default_factory=dict[Operation, float])
    """Operations of lanes, cell by cell, by the elementwise operation of the kernel."""
    moved: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The cells that a lane moves at once, by load and store."""
    waiting_lanes: float = 0.0
    specials: float = 0.0
    steps: float = 0.0
    factors: Factors = field(default_factory=Factors)
    descriptors: int = 0
    held: int = 0
    parted: int = 0
    late: float = 0.0
    walked: bool = False
    """Whether a loop has ended."""
    loops: int = 0
    """The loops that are gone into."""
    addresses: int = 0
    after: set[SSAValue] = field(default_factory=set[SSAValue])
    repeats: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """How many warps each compute what is computed of a product that another one waits for."""

    def __post_init__(self) -> None:
        sizes = self.kernel.constants
        self.threads = 32 * self.kernel.warps
        self.programs = 1
        for axis, length in zip(self.call.grid, self.call.lengths(), strict=True):
            size = 1 if axis.block is None else sizes[axis.block]
            self.programs *= -(-length // size)
            if axis.block is not None:
                self.kept[axis.block] = length / (-(-length // size) * size)
        # Persistent programs share the blocks.
        self.programs = min(self.programs, sizes.get("PROGRAMS", self.programs))
        self.columns = Columns(self.programs, list(sizes))
        self.walks = np.zeros(len(self.columns.pids))
        self.indices = Indices(self.columns, sizes)
        arguments = self.kernel.body.block.args
        count = len(self.call.buffers)
        places: dict[SSAValue, int] = dict(zip(arguments[:count], self.call.buffers, strict=True))
        neighbours = Neighbours(self.indices, sizes)
        self.accesses = Accesses(places, sizes, self.columns, self.indices, neighbours)
        numbers = [bound for bounds in self.call.bounds.values() for bound in bounds]
        for argument, number in zip(arguments[count:], numbers, strict=True):
            self.indices.place(argument, number)

    def count(self) -> Work:
        """Count everything."""
        self._block(self.kernel.body.block, self._times(np.ones(len(self.columns.pids))))
        for op, cells in cells_at_once(self.kernel, self.moved).items():
            self.lanes -= self.each.get(op, 0.0) * (1 - 1 / cells)
        stored = [s.cells * s.cell for s in self.streams if s.writes and self._is_exchanged(s)]
        staging = self.factors.largest()
        return Work(
            programs=self.programs,
            warps=self.kernel.warps,
            stages=self.kernel.stages,
            steps=self.steps,
            streams=tuple(self.streams),
            products=tuple(self.products),
            lanes=self.lanes,
            waiting_lanes=self.waiting_lanes,
            specials=self.specials,
            live=live_bytes(self.kernel, self.factors.elsewhere) + self.factors.registers,
            staged=staging.staged,
            passing=staging.passing,
            direct=staging.direct,
            rows=staging.rows,
            descriptors=self.descriptors,
            held=self.held + self.factors.held + self.parted,
            exchanged=max(stored, default=0),
            late=self.late,
            addresses=self.addresses,
            buffers=self.call.sizes,
            walks=self._walks(),
        )

    def _walks(self) -> tuple[float, ...]:
        """The steps of the last programs, where not all have as many, relative to the mean."""
        last, mean = self.walks[self.columns.last], self._mean(self.walks)
        uneven = mean > 0 and float(np.ptp(last)) > 0
        return tuple((last / mean).tolist()) if uneven else ()

    def _is_exchanged(self, stored: Stream) -> bool:
        """Whether threads exchange what is stored: of products, or read along another block."""
        read = {stream.along for stream in self.streams if not stream.writes} - {None}
        return bool(self.products) or bool(read - {stored.along})

    def _mean(self, numbers: Numbers) -> float:
        return float(np.mean(numbers[self.columns.spread]))

    def _times(self, numbers: Numbers) -> _Times:
        return _Times(numbers, self._mean(numbers))

    def _block(self, block: Block, times: _Times) -> None:
        for op in block.ops:
            kind = type(op)
            if _COUNTED[kind]:
                self._op(op, times)
            elif not _FREE[kind]:
                self._elementwise(op, times)
            multiplies = kind is triton.DotOp
            if multiplies or not self.after.isdisjoint(op.operands):
                self.after.update(op.results)
            if not multiplies and (repeats := self._repeated(op)) > 1:
                self.repeats.update(dict.fromkeys(op.results, repeats))
            self.walked |= kind is scf.ForOp
            self.indices.visit(op)

    def _op(self, op: Operation, times: _Times) -> None:
        """Count an operation that is not done cell by cell."""
        match op:
            case scf.ForOp():
                self._loop(op, times)
            case scf.IfOp():
                taken, walked = self.indices.of(op.cond).numbers, self.walked
                self._block(op.true_region.block, self._times(times.numbers * taken))
                self.walked = walked
                self._block(op.false_region.block, self._times(times.numbers * (1 - taken)))
                for region in op.regions:
                    end = region.block.last_op
                    assert end is not None
                    for result, value in zip(op.results, end.operands, strict=True):
                        if value in self.after:
                            self.after.add(result)
                        if value in self.repeats:
                            self.repeats[result] = self.repeats[value]
            case triton.LoadOp() | triton.StoreOp():
                stream = self.accesses.of_cells(op, times.mean, self.kept)
                self.streams.append(stream)
                self.moved[op] = max(1, stream.vector // stream.cell)
                self._end(stream)
                if isinstance(op.parent_op(), scf.ForOp):
                    pieces = stream.cells * stream.cell // stream.vector
                    self.addresses += 2 * -(-pieces // self.threads)
                if isinstance(op, triton.LoadOp):
                    self.factors.vectors[op.result] = 1 if is_carried(op, stream) else stream.vector
                    self.factors.runs[op.result] = stream.run
            case triton.LoadBlockOp() | triton.StoreBlockOp():
                self.streams.append(self.accesses.of_block(op, times.mean))
                self._end(self.streams[-1])
                if isinstance(op, triton.LoadBlockOp):
                    self.factors.vectors[op.result] = VECTOR
                    if is_shared_out(op):
                        # What an epilogue reads comes beside the steps of the next block.
                        self.held += tile_bytes(op.result)
                elif is_shared_out(op):
                    # One block is stored while the next one is loaded.
                    self.held += tile_bytes(op.value)
            case triton.DescribeOp():
                self.descriptors += 1
            case triton.CoverOp():
                self.kept[op.block.data] = (
                    op.length.value.data / self.kernel.constants[op.block.data]
                )
            case triton.DotOp():
                self._product(op, times)
            case triton.CombineOp():
                inner = [one for one in op.combiner.block.ops if not _FREE[type(one)]]
                depth = 1.0
                if isinstance(op, triton.ScanOp):
                    depth = max(1.0, log2(shape_of(op.tiles[0])[op.axis.value.data]))
                count = depth * len(inner) * self._cells(op.tiles[0]) * self._repeated(op)
                self._lanes(op, count * times.mean)
            case _:
                pass

    def _end(self, stream: Stream) -> None:
        """Count what is loaded when a loop has ended."""
        if self.walked and not self.loops and not stream.writes:
            self.late += stream.bytes

    def _elementwise(self, op: Operation, times: _Times) -> None:
        cells = max((self._cells(value) for value in (*op.results, *op.operands)), default=0)
        count = cells * times.mean * self._repeated(op)
        self._lanes(op, count)
        self.each[op] = self.each.get(op, 0.0) + count
        if _SPECIALS[type(op)]:
            self.specials += count
            if not _EXPONENTIALS[type(op)]:
                self._lanes(op, _CORRECTED * count)

    def _lanes(self, op: Operation, count: float) -> None:
        """Count operations of lanes; those need products that read what needs them."""
        self.lanes += count
        if not self.after.isdisjoint(op.operands):
            self.waiting_lanes += count

    def _repeated(self, op: Operation) -> int:
        """How many warps compute the same cells for an operation."""
        if not self.repeats:
            return 1
        return max((self.repeats.get(value, 1) for value in op.operands), default=1)

    def _cells(self, value: SSAValue) -> int:
        """The lanes that compute a tile: at least all of a program's, which do the same."""
        shape = shape_of(value)
        return max(prod(shape), self.threads) if shape else 0

    def _loop(self, op: scf.ForOp, times: _Times) -> None:
        start, end, step = (self.indices.of(value) for value in (op.lb, op.ub, op.step))
        size = np.maximum(step.numbers, 1)
        trips = np.maximum(0, -(-(end.numbers - start.numbers) // size))
        body = op.body.block
        self.indices.follow(body.args[0], op.lb)
        for argument, value in zip(body.args[1:], op.iter_args, strict=True):
            self.indices.follow(argument, value)
        if isinstance(op.step.owner, triton.BlockSizeOp):
            walked = self._mean(trips * size)
            points = self._mean(np.maximum(0, end.numbers - start.numbers))
            self.kept[op.step.owner.block.data] = points / walked if walked else 1.0
        if any(isinstance(one, triton.LoadOp | triton.LoadBlockOp) for one in body.ops):
            self.steps += self._mean(times.numbers * -(-trips // unrolled(op)))
            self.walks += times.numbers * trips
        self.loops += 1
        self._block(body, self._times(times.numbers * trips))
        self.loops -= 1
        self.factors.end_loop(op)
        last = body.last_op
        assert last is not None
        for result, value, carried in zip(op.results, op.iter_args, last.operands, strict=True):
            self.indices.follow(result, value)
            if carried in self.after:
                self.after.add(result)

    def _product(self, op: triton.DotOp, times: _Times) -> None:
        (m, k), (_, n) = shape_of(op.a), shape_of(op.b)
        kind = name_of(element_of(op.a))
        if kind == "f32":
            kind = "lanes" if op.precision.data == "ieee" else op.precision.data
        repeats = 1
        if feeds_product(op):
            # Warps lie along rows alone then, so that each has whole rows of what it reduces, and
            # does what others do; where a branch hides what follows, they exchange parts of rows,
            # which takes as long: 64 rows by 8 warps 601 us on an H100, by 4 warps 353.
            repeats = self.repeats[op.result] = max(1, WARP_ROWS * self.kernel.warps // m)
        self.products.append(Product(m, n, k, kind, times.mean * repeats))
        for factor, by_registers in ((op.a, True), (op.b, False)):
            for one in self.factors.place(op, factor, by_registers=by_registers):
                if _FREE[type(one)] or any(value in self.after for value in one.operands):
                    continue
                cells = max(map(self._cells, (*one.results, *one.operands)))
                self.waiting_lanes += cells * times.mean
        if self.products[-1].is_split:
            # Products wait for the parts of their factors, and their sum for the products.
            waiting = split_lanes(m, n, k, self.kernel.warps) * times.mean
            self.lanes += waiting
            self.waiting_lanes += waiting
            # Where the parts of one product were, those of the next one are.
            self.parted = max(self.parted, _PARTS * k * n)

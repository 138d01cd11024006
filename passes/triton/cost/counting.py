"""What a kernel does, counted from its IR: operations, bytes, products, tiles that are alive.

    for k in range(0, 1024, 64):        16 steps
      load 128 x 64, load 64 x 128      16 times 16 KB each, staged in shared memory
      dot 128 x 64 x 128                16 products
    store 128 x 128                     32 KB

Loops count by the bounds that programs find (`programs.py`), so a causal mask that ends a walk
earlier halves what is counted. No operation of the program is known by name here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
from tapestry.passes.triton.cost.lanes import Cells, Lanes, repeats, split_lanes
from tapestry.passes.triton.cost.lives import Lives, scan_bytes, unrolled
from tapestry.passes.triton.cost.matching import expected_matches
from tapestry.passes.triton.cost.neighbours import VECTOR, Neighbours
from tapestry.passes.triton.cost.programs import Columns, Indices
from tapestry.passes.triton.cost.surroundings import (
    feeds_product,
    is_carried,
    is_shared_out,
)
from tapestry.passes.triton.cost.work import SPLIT, Product, Stream, Work
from tapestry.passes.triton.cost.written_out import free_in_steps
from tapestry.passes.triton.rewrites.exact_products import is_joined

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
_PARTS = 6
"""Bytes of the parts that a cell of float32 is taken apart to."""
_CORRECTED = 6
"""Ordinary operations that go with a function that the hardware has only roughly."""


def work_of(kernel: triton.KernelOp, call: Call) -> Work:
    """What a launch of a kernel does."""
    return counts_of(kernel, call).work(kernel.warps, kernel.stages)


def counts_of(kernel: triton.KernelOp, call: Call) -> Counts:
    """What a launch of a kernel does, whatever its warps and stages."""
    return _Counter(kernel, call).count()


@dataclass(frozen=True, eq=False)
class Counts:
    """What a launch of a kernel does, by warps and stages, which its body has no part in.

    `one` has all that does not depend on these. Of each product it is known whether another one
    waits for it.
    """

    one: Work
    products: tuple[tuple[Product, bool], ...]
    lanes: Lanes
    waiting_lanes: Lanes
    specials: Lanes
    requests: Lanes
    lives: Lives
    registers: int
    pieces: tuple[int, ...]
    scanned: int
    """The most cells that are scanned at once."""

    def work(self, warps: int, stages: int) -> Work:
        """What it does with so many warps and stages."""
        threads = 32 * warps
        products = tuple(
            replace(one, count=one.count * repeats(one.m, warps)) if feeds else one
            for one, feeds in self.products
        )
        # Products wait for the parts of their factors, and their sum for the products.
        parting = sum(
            split_lanes(one.m, one.n, one.k, warps) * one.count
            for one, _ in self.products
            if one.is_split
        )
        scanning = scan_bytes(self.scanned, warps)
        return replace(
            self.one,
            warps=warps,
            stages=stages,
            products=products,
            lanes=self.lanes.of(warps) + parting,
            waiting_lanes=self.waiting_lanes.of(warps) + parting,
            specials=self.specials.of(warps),
            requests=self.requests.of(warps),
            live=self.lives.bytes(threads) + self.registers + scanning,
            walking=self.lives.walking(threads) + self.registers + scanning,
            addresses=sum(2 * -(-pieces // threads) for pieces in self.pieces),
        )


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
    products: list[tuple[Product, bool]] = field(default_factory=list["tuple[Product, bool]"])
    """Products for one warp, and whether another one waits for each."""
    kept: dict[str, float] = field(default_factory=dict[str, float])
    lanes: Lanes = field(default_factory=Lanes)
    each: dict[Operation, tuple[Cells, float]] = field(
        default_factory=dict[Operation, "tuple[Cells, float]"]
    )
    """The cells of each elementwise operation of the kernel, and how often it is done."""
    moved: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The cells that a lane moves at once, by load and store."""
    waiting_lanes: Lanes = field(default_factory=Lanes)
    """Of `lanes`, but for what takes factors apart, those that products need, or that need them."""
    specials: Lanes = field(default_factory=Lanes)
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
    addresses: list[int] = field(default_factory=list[int])
    """The pieces that loads and stores of loops move."""
    after: set[SSAValue] = field(default_factory=set[SSAValue])
    shared: set[Operation] = field(default_factory=set[Operation])
    """What loops that are written out do not do in each step."""
    requests: Lanes = field(default_factory=Lanes)
    """The pieces of up to 4 bytes that lanes load and store, where nothing is multiplied."""
    scanned: int = 0
    rows: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The rows of a product that another one waits for, by what is computed of it."""

    def __post_init__(self) -> None:
        sizes = self.kernel.constants
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
        bounds = [bound for bounds in self.call.bounds.values() for bound in bounds]
        given: dict[SSAValue, int] = dict(zip(arguments[count:], bounds, strict=True))
        for argument, number in given.items():
            self.indices.place(argument, number)
        multiplies = any(isinstance(op, triton.DotOp) for op in self.kernel.walk())
        known = (self.columns, self.indices, neighbours, given, multiplies)
        self.accesses = Accesses(places, sizes, *known)

    def count(self) -> Counts:
        """Count everything."""
        self._block(self.kernel.body.block, self._times(np.ones(len(self.columns.pids))))
        for op, at_once in cells_at_once(self.kernel, self.moved).items():
            if op in self.each:
                cells, count = self.each[op]
                self.lanes.add(cells, -count * (1 - 1 / at_once))
        stored = [s.cells * s.cell for s in self.streams if s.writes and self._is_exchanged(s)]
        staging = self.factors.largest()
        one = Work(
            programs=self.programs,
            warps=1,
            stages=1,
            steps=self.steps,
            streams=tuple(self.streams),
            products=(),
            lanes=0.0,
            waiting_lanes=0.0,
            specials=0.0,
            requests=0.0,
            live=0,
            walking=0,
            staged=staging.staged,
            passing=staging.passing,
            direct=staging.direct,
            rows=staging.rows,
            descriptors=self.descriptors,
            held=self.held + self.factors.held + self.parted,
            exchanged=max(stored, default=0),
            late=self.late,
            addresses=0,
            buffers=self.call.sizes,
            walks=self._walks(),
        )
        lives = Lives.of(self.kernel, self.factors.elsewhere)
        lanes = (self.lanes, self.waiting_lanes, self.specials, self.requests)
        counted = (tuple(self.products), *lanes, lives, self.factors.registers)
        return Counts(one, *counted, tuple(self.addresses), self.scanned)

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
            elif not _FREE[kind] and op not in self.shared and not is_joined(op):
                self._elementwise(op, times)
            multiplies = kind is triton.DotOp
            if multiplies or not self.after.isdisjoint(op.operands):
                self.after.update(op.results)
            if not multiplies and (rows := self._rows(op)):
                self.rows.update(dict.fromkeys(op.results, rows))
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
                        if value in self.rows:
                            self.rows[result] = self.rows[value]
            case triton.LoadOp() | triton.StoreOp():
                stream = self.accesses.of_cells(op, times.mean, self.kept)
                self.streams.append(stream)
                self.moved[op] = max(1, stream.vector // stream.cell)
                self._end(stream)
                if isinstance(op.parent_op(), scf.ForOp):
                    self.addresses.append(stream.cells * stream.cell // stream.vector)
                if not self.accesses.multiplies:
                    pieces = self._cells(op.offsets) // self.moved[op]
                    self.requests.add(Cells(max(1, pieces)), times.mean * max(1, stream.vector / 4))
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
                    self.scanned = max(self.scanned, self._cells(op.tiles[0]))
                cells = Cells(self._cells(op.tiles[0]), self._rows(op))
                self._lanes(op, cells, depth * len(inner) * times.mean)
            case _:
                pass

    def _end(self, stream: Stream) -> None:
        """Count what is loaded when a loop has ended."""
        if self.walked and not self.loops and not stream.writes:
            self.late += stream.bytes

    def _elementwise(self, op: Operation, times: _Times) -> None:
        most = max((self._cells(value) for value in (*op.results, *op.operands)), default=0)
        cells, count = Cells(most, self._rows(op)), times.mean
        self._lanes(op, cells, count)
        _, before = self.each.get(op, (cells, 0.0))
        self.each[op] = cells, before + count
        if _SPECIALS[type(op)]:
            self.specials.add(cells, count)
            if not _EXPONENTIALS[type(op)]:
                self._lanes(op, cells, _CORRECTED * count)

    def _lanes(self, op: Operation, cells: Cells, count: float) -> None:
        """Count operations of lanes; those need products that read what needs them."""
        self.lanes.add(cells, count)
        if not self.after.isdisjoint(op.operands):
            self.waiting_lanes.add(cells, count)

    def _rows(self, op: Operation) -> int:
        """The fewest rows of a product that an operation computes with, 0 where there are none."""
        if not self.rows:
            return 0
        found = (self.rows[value] for value in op.operands if value in self.rows)
        return min(found, default=0)

    def _cells(self, value: SSAValue) -> int:
        """The cells of a tile; 0 of a number."""
        shape = shape_of(value)
        return prod(shape) if shape else 0

    def _loop(self, op: scf.ForOp, times: _Times) -> None:
        start, end, step = (self.indices.of(value) for value in (op.lb, op.ub, op.step))
        size = np.maximum(step.numbers, 1)
        trips = np.maximum(0, -(-(end.numbers - start.numbers) // size))
        if triton.MATCHES in op.attributes:
            trips = np.full(len(trips), expected_matches(op, self.kernel.constants))
        body = op.body.block
        self.indices.follow(body.args[0], op.lb)
        for argument, value in zip(body.args[1:], op.iter_args, strict=True):
            self.indices.follow(argument, value)
        if isinstance(op.step.owner, triton.BlockSizeOp):
            walked = self._mean(trips * size)
            points = self._mean(np.maximum(0, end.numbers - start.numbers))
            self.kept[op.step.owner.block.data] = points / walked if walked else 1.0
        if any(isinstance(one, triton.LoadOp | triton.LoadBlockOp) for one in body.ops):
            together = unrolled(op)
            steps = trips if together == 1 else -(-trips // together)
            self.steps += self._mean(times.numbers * steps)
            self.walks += times.numbers * trips
        self.loops += 1
        if triton.WRITTEN_OUT in op.attributes:
            self.shared |= free_in_steps(op)
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
        feeds = feeds_product(op)
        if feeds:
            # Warps lie along rows alone then, so that each has whole rows of what it reduces, and
            # does what others do; where a branch hides what follows, they exchange parts of rows,
            # which takes as long: 64 rows by 8 warps 601 us on an H100, by 4 warps 353.
            self.rows[op.result] = m
        self.products.append((Product(m, n, k, kind, times.mean), feeds))
        for factor, by_registers in ((op.a, True), (op.b, False)):
            for one in self.factors.place(op, factor, by_registers=by_registers):
                if _FREE[type(one)] or any(value in self.after for value in one.operands):
                    continue
                cells = max(map(self._cells, (*one.results, *one.operands)))
                self.waiting_lanes.add(Cells(cells), times.mean)
        if kind == SPLIT:
            # Where the parts of one product were, those of the next one are.
            self.parted = max(self.parted, _PARTS * k * n)

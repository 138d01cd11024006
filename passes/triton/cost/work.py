"""What a kernel does: the cost model (`roofline.py`) knows nothing else of it.

    work = work_of(kernel, launch)  # see `counting.py`
    work.programs, work.steps       how many programs, and how many steps of loops each waits for
    work.streams                    the cells that each load and store touches, by program
    work.products                   the matrix products: m, n, k, how often
    work.lanes, work.specials       other operations of a program, cell by cell
    work.live                       bytes of tiles that are alive at once

Bytes and operations are those of the kernel as it was written, so a schedule's effect shows in all
of them: padding, tiles that neighbours read again, operations that are done in every program.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tapestry.passes.triton.cost.programs import Numbers

WARP_ROWS = 16
"""The rows that a warp multiplies at least."""

SECTOR = 32
"""Bytes that memory moves at least."""

SPLIT = "bf16x6"
"""How float32 is multiplied where threads take factors apart."""

_BASE_REGISTERS = 24
"""What a thread that multiplies matrices needs besides tiles."""

_LEAST_REGISTERS = 32
_OWN_REGISTERS = 16
"""What any thread has, and what it needs besides tiles."""

_FACTOR_REGISTERS = 32
"""What a thread holds of the factors that it multiplies itself."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The cells of a buffer that a load or a store touches.

    `accesses` is how often a program does it (a mean), `kept` the share of lanes that are points.
    `run` has the bytes of neighbouring cells, which lie `along` a block, `vector` those that are
    moved at once. `starts` says where programs that run side by side begin.
    """

    buffer: int
    writes: bool
    cells: int
    cell: int
    accesses: float
    kept: float
    run: int
    vector: int
    starts: Numbers
    scattered: bool
    along: str | None = None
    leaves: str = ""
    """When its cells leave the L2: `first` or `last`, as the load or the store asks for."""
    backward: bool = False
    """Whether it comes from the end, where a walk before it ended."""

    @cached_property
    def bytes(self) -> float:
        """What a program moves."""
        return self.cells * self.cell * self.accesses * self.kept

    @cached_property
    def moved(self) -> float:
        """What a program moves, in whole sectors."""
        return self.bytes * max(1.0, SECTOR / self.run)

    def apart(self, programs: int) -> int:
        """How many of some programs that run side by side touch different cells."""
        if self.scattered:
            return programs
        seen = min(programs, len(self.starts))
        different = bisect_left(self._firsts, seen)
        return max(1, round(different * programs / max(1, seen)))

    @cached_property
    def _firsts(self) -> list[int]:
        """The programs that begin where none before them does, in order."""
        return sorted(np.unique(self.starts, return_index=True)[1].tolist())


@dataclass(frozen=True)
class Product:
    """Matrix products of m x k by k x n, `count` times in a program (a mean).

    `kind` is the rate at which they are done: a type's name, `lanes` without tensor cores, or
    `bf16x6`, whose factors threads take apart into three that are multiplied six times.
    """

    m: int
    n: int
    k: int
    kind: str
    count: float

    @property
    def is_split(self) -> bool:
        """Whether threads split the factors before tensor cores have them."""
        return self.kind == SPLIT

    @property
    def flops(self) -> float:
        """Multiplications and additions of a program."""
        return 2.0 * self.m * self.n * self.k * self.count


@dataclass(frozen=True, eq=False)
class Work:
    """What the programs of a launch do; numbers are those of one program, on the mean."""

    programs: int
    warps: int
    stages: int
    steps: float
    streams: tuple[Stream, ...]
    products: tuple[Product, ...]
    lanes: float
    waiting_lanes: float
    """Of `lanes`, those that need what products made before, or that products need."""
    specials: float
    requests: float
    """Pieces of up to 4 bytes that lanes load and store, also from the L1; none beside products."""
    live: int
    """Bytes of tiles that registers hold at once."""
    walking: int
    """Of these, what they hold while a loop runs; the most before or after it where none does."""
    staged: int
    """Bytes of tiles that a step of a loop brings to shared memory, once per stage."""
    passing: int
    """Of `staged`, what threads read themselves to compute factors of products."""
    direct: int
    """Bytes of tiles that a step of a loop multiplies, and that it loads when it needs them."""
    rows: float
    """Rows besides the first that warps copy at once, of what a step stages."""
    descriptors: int
    """What a program describes before it can move blocks."""
    held: int
    """Bytes of other tiles in shared memory."""
    exchanged: int
    """Bytes of a tile that threads exchange before it is stored."""
    late: float
    """Bytes of tiles that a program asks for when its loop has ended, and waits for."""
    addresses: int
    """Registers of a thread that hold where a loop reads and writes."""
    buffers: tuple[int, ...]
    """Bytes of each buffer."""
    walks: tuple[float, ...] = ()
    """Steps of the last programs, in order, relative to the mean; none where all are as long."""

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return 32 * self.warps

    @property
    def tile_registers(self) -> int:
        """Registers of a thread that hold tiles."""
        return -(-self.live // (4 * self.threads))

    @property
    def registers(self) -> int:
        """Registers that a thread is likely to need."""
        return self._registers(self.tile_registers)

    @property
    def walking_registers(self) -> int:
        """Registers that a thread is likely to need while a loop runs."""
        return self._registers(-(-self.walking // (4 * self.threads)))

    def _registers(self, tiles: int) -> int:
        if not self.products:
            return max(_LEAST_REGISTERS, _OWN_REGISTERS + tiles)
        if any(product.is_split for product in self.products):
            # Addresses make way for parts of factors: they are computed again.
            return _BASE_REGISTERS + tiles
        factors = any(product.kind == "lanes" for product in self.products)
        return _BASE_REGISTERS + tiles + self.addresses + factors * _FACTOR_REGISTERS

    @property
    def flops(self) -> float:
        """Operations of all programs, as they are done."""
        return self.programs * (self.lanes + sum(product.flops for product in self.products))

    @property
    def summary(self) -> Hashable:
        """What equal works have in common."""
        streams = tuple(
            (s.buffer, s.writes, s.cells, s.cell, s.accesses, s.run) for s in self.streams
        )
        own = (self.programs, self.warps, self.stages, self.steps, self.lanes, self.specials)
        return (
            *own,
            self.requests,
            self.live,
            self.walking,
            self.staged,
            self.direct,
            self.held,
            self.late,
            streams,
            self.products,
            self.buffers,
        )

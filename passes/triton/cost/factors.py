"""Where the factors of products lie: in shared memory, for each stage or once, or in registers.

    for k in range(0, 1024, 64):
      a = load 128 x 64                  staged: copied ahead of the step that multiplies it
      b = load 64 x 128 * scale          loaded by threads, and put there when it is computed
      acc = dot a, b

What is staged is copied where it comes in pieces of 4 bytes at least; threads load the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.cost.lives import defining
from tapestry.passes.triton.cost.surroundings import LOADS, computing

_COPIED = 512
"""The bytes that a warp copies at once."""

ASYNCHRONOUS = 4
"""The least bytes that a lane copies to shared memory without waiting."""


@dataclass
class Staging:
    """What a step of a loop brings to shared memory, in bytes: see `Work`."""

    staged: int = 0
    passing: int = 0
    direct: int = 0
    rows: float = 0.0


@dataclass
class Factors:
    """The bytes of factors of a kernel that is gone through, operation by operation."""

    staging: Staging = field(default_factory=Staging)
    stagings: list[Staging] = field(default_factory=list[Staging])
    """That of the loop which is gone through, and of those before it."""
    registers: int = 0
    held: int = 0
    elsewhere: set[SSAValue] = field(default_factory=set[SSAValue])
    """What is loaded for products alone, and in no register."""
    vectors: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    runs: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The bytes that a lane loads at once, and those that lie side by side, by what is loaded."""
    _seen: set[Operation] = field(default_factory=set[Operation])

    def end_loop(self, op: scf.ForOp) -> None:
        """Count what else a loop copies ahead, once its steps are gone through."""
        if triton.PIPELINED in op.attributes:
            self._stage_all(op.body.block)
        self.stagings.append(self.staging)
        self.staging = Staging()

    def largest(self) -> Staging:
        """The staging of all: loops one after another use the same shared memory."""
        return max((self.staging, *self.stagings), key=lambda one: one.staged)

    def _stage_all(self, body: Block) -> None:
        """Count what a loop copies to shared memory, where it comes in pieces that can be."""
        for op in body.ops:
            if isinstance(op, triton.LoadOp) and self.vectors[op.result] >= ASYNCHRONOUS:
                self.staging.staged += tile_bytes(op.result)

    def place(
        self, op: triton.DotOp, factor: SSAValue, *, by_registers: bool
    ) -> Iterator[Operation]:
        """Count where a factor lies, and give what computes it in the step, each once.

        What a loop loads for its product is staged: what factors are computed from as well, which
        threads read themselves. The product waits for what they compute.
        """
        source, here = defining(factor), op.parent_block()
        if isinstance(source, LOADS):
            if not self._stage(op, source):
                self.held += tile_bytes(factor)
            self.elsewhere.add(source.result)
            return
        if not by_registers or (source is not None and source.parent_block() is not here):
            # Warpgroups take a left factor from registers only where a step makes it of products.
            self.held += tile_bytes(factor)
        elif byte_size(element_of(factor)) <= 2:
            self.registers = max(self.registers, tile_bytes(factor))
        for one in computing(op, factor):
            if isinstance(one, LOADS):
                self.staging.passing += self._stage(op, one)
            elif one not in self._seen:
                self._seen.add(one)
                yield one

    def _stage(self, op: triton.DotOp, load: triton.LoadOp | triton.LoadBlockOp) -> int:
        """Count what a product's loop brings to shared memory by a load: its bytes, 0 for none."""
        if load.parent_block() is not op.parent_block() or load in self._seen:
            return 0
        size = tile_bytes(load.result)
        if not isinstance(op.parent_op(), scf.ForOp):
            return 0
        self._seen.add(load)
        if self.vectors[load.result] < ASYNCHRONOUS:
            self.staging.direct += size
            return 0
        self.staging.staged += size
        if isinstance(load, triton.LoadOp):
            self.staging.rows += size / _COPIED * max(0.0, _COPIED / self.runs[load.result] - 1)
        return size


def tile_bytes(value: SSAValue) -> int:
    """The bytes of all cells of a tile."""
    return prod(shape_of(value)) * byte_size(element_of(value))

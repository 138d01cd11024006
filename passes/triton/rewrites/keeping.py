"""Rows that several walks read: kept in the L2 until the last one, which may go back over them.

    for k_start in range(0, 65536, BLOCK_K):
        x = tl.load(x_ptr + row + k_start + k, eviction_policy="evict_last")
        acc += x * x
    for k_start_back in range(0, 65536, BLOCK_K):
        k_start = (tl.cdiv(65536, BLOCK_K) - 1) * BLOCK_K - k_start_back
        x = tl.load(x_ptr + row + k_start + k, eviction_policy="evict_first")
        tl.store(y_ptr + row + k_start + k, x * s, eviction_policy="evict_first")

A program reads its row again when what passed meanwhile has pushed much of it out of the L2: so
what nobody reads again leaves first, and what was read last is read first. The schedule's `again`
says whether: `kept`, or `backward`. It changes no number: the policies are hints, and a loop that
carries nothing makes the same in any order.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import AGAIN, BACKWARD, shape_of

_PLAIN, _, _BACKWARD = AGAIN


def keep_rows(kernel: triton.KernelOp) -> None:
    """Mark what the walks of a kernel read again, by its schedule.

    The walks are the loops of the kernel, one after another. A tile is read again where walks read
    a buffer at places that differ from program to program: what all programs read, as weights,
    stays by itself. The last walk is taken backward where it carries nothing.
    """
    again = kernel.schedule.data.again
    walks = [op for op in kernel.body.block.ops if isinstance(op, scf.ForOp)]
    if again == _PLAIN or len(walks) < 2:
        return
    *before, last = walks
    shared = set(_rows(last)) & {pointer for walk in before for pointer in _rows(walk)}
    if not shared:
        return
    for walk in walks:
        kept = StringAttr("first" if walk is last else "last")
        for pointer, loads in _rows(walk).items():
            for load in loads if pointer in shared else ():
                load.properties["evict"] = kept
    for op in last.body.block.ops:
        if isinstance(op, triton.StoreOp) and op.atomic is None:
            op.properties["evict"] = StringAttr("first")
    if again == _BACKWARD and not last.iter_args:
        last.attributes[BACKWARD] = UnitAttr()


def _rows(walk: scf.ForOp) -> dict[SSAValue, list[triton.LoadOp]]:
    """The loads of a walk by buffer: of tiles whose place depends on step and program."""
    found: dict[SSAValue, list[triton.LoadOp]] = {}
    for op in walk.body.block.ops:
        if isinstance(op, triton.LoadOp) and shape_of(op.offsets):
            sources = _sources(op.offsets)
            steps = walk.body.block.args[0] in sources
            if steps and any(isinstance(one.owner, triton.ProgramIdOp) for one in sources):
                found.setdefault(op.pointer, []).append(op)
    return found


def _sources(value: SSAValue) -> set[SSAValue]:
    """All that a value is computed of, itself included."""
    seen: set[SSAValue] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += one.owner.operands if isinstance(one.owner, Operation) else ()
    return seen

"""What stands around an operation of a kernel: the loop that it is in, the products that it meets.

for k in range(0, 1024, 64):
  scores = dot(q, load)             feeds_product: another one needs it in the same step
  sums = dot(exp2(scores), load)    computing its first factor: exp2
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import triton
from tapestry.passes.triton.cost.work import Stream

LOADS = (triton.LoadOp, triton.LoadBlockOp)


def feeds_product(op: triton.DotOp) -> bool:
    """Whether another product of the same step needs what a product makes."""
    block = op.parent_block()
    waiting, seen = [*op.result.uses], set[Operation]()
    while waiting:
        user: Operation | None = waiting.pop().operation
        while user is not None and user.parent_block() is not block:
            user = user.parent_op()
        if user is None or user in seen:
            continue
        seen.add(user)
        if isinstance(user, triton.DotOp):
            return True
        waiting += [use for result in user.results for use in result.uses]
    return False


def is_shared_out(op: Operation) -> bool:
    """Whether an operation is in a loop over blocks and steps at once."""
    loop = op.parent_op()
    return isinstance(loop, scf.ForOp) and triton.FLATTEN in loop.attributes


def is_backward(op: Operation) -> bool:
    """Whether an operation is in a loop that takes its last step first."""
    loop = op.parent_op()
    return isinstance(loop, scf.ForOp) and triton.BACKWARD in loop.attributes


def computing(op: triton.DotOp, factor: SSAValue) -> Iterator[Operation]:
    """What a product's factor is computed by, in its block and after other products, loads too."""
    seen: set[Operation] = set()
    waiting = [factor]
    while waiting:
        one = waiting.pop().owner
        if (
            not isinstance(one, Operation)
            or one in seen
            or one.parent_block() is not op.parent_block()
        ):
            continue
        seen.add(one)
        if isinstance(one, triton.DotOp | scf.ForOp):
            continue
        yield one
        if not isinstance(one, LOADS):
            waiting += one.operands


def is_carried(op: triton.LoadOp, stream: Stream) -> bool:
    """Whether a loop over blocks and steps at once loses sight of a load's neighbours.

    It carries what was computed per block from step to step, and a compiler knows neighbours along
    the steps only.
    """
    loop = op.parent_op()
    if not isinstance(loop, scf.ForOp) or not isinstance(loop.step.owner, triton.BlockSizeOp):
        return False
    return is_shared_out(loop) and stream.along != loop.step.owner.block.data

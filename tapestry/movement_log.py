"""What moves between the operations of a program, for who follows it by `TAPESTRY_LOGS=plan`.

tapestry.plan: @matmul over <[0, 0, 0] : [8, 8, 8]>: 4 shards, 512 bytes move
"""

from __future__ import annotations

from logging import INFO

from xdsl.dialects.builtin import ModuleOp

from tapestry.logs import channel
from tapestry.movement import edges, moved_bytes, splittables


def log_plan(module: ModuleOp) -> None:
    """Say each operation's shards, and what moves, on the channel `plan` of `tapestry.logs`."""
    log = channel("plan")
    if not log.isEnabledFor(INFO):
        return
    for op in splittables(module):
        shards = 1 if op.partition is None else op.partition.count
        moved = sum(map(moved_bytes, edges(op)))
        log.info("%s over <%s>: %d shards, %d bytes move", op.subject, op.index, shards, moved)

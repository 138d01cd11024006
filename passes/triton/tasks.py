"""The tasks of a program: for each kernel that it becomes, what a schedule of it is chosen for.

for task in tasks(module):
    for schedule in candidates(task): ...
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules import candidates as legal
from tapestry.passes.triton.schedules.task import SCHEDULE, Task


def tasks(module: ModuleOp, lowering: LoomToTriton | None = None) -> tuple[Task, ...]:
    """The tasks of a program in loom, each once, by the label of its operation; it stays as it is.

    Raises a TapestryError, located, for what has no kernel.
    """
    found: list[Task] = []
    (lowering or LoomToTriton()).lower(Context(), module.clone(), found.append)
    return tuple(dict.fromkeys(found))


def task_of(op: loom.OperationOp | loom.FusedOp) -> Task | None:
    """The task of an operation's kernel; None for a group that is several kernels."""
    module = op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    found = [task for task in tasks(module) if task.name == op.label.data]
    return found[-1] if found else None


def candidates(op: loom.OperationOp | loom.FusedOp) -> Iterator[Schedule]:
    """Legal schedules of an operation's kernel that may be fast, the default first."""
    task = task_of(op)
    if task is not None:
        yield from legal.candidates(task)


def give(op: loom.OperationOp | loom.FusedOp, schedule: Schedule) -> None:
    """Have an operation's kernel use a schedule."""
    op.attributes[SCHEDULE] = ScheduleAttr(schedule)

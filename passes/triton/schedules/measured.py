"""Schedules that were measured to be faster than those that are chosen, kept with their program.

    keep_measured(module, "h200", {place: schedule})    # an attribute of the module
    give_measured(module, "h200")                       # in `loom-to-triton`, before the kernels

An operation with a schedule is left as it is by what looks for other ways to compute it
(`alternatives`). So measured schedules are not given to the operations of a program, but to those
that it has become when all such ways are taken: by what they compute (`place_of`), on the device
that they were measured for alone. Kernels are those of the program without them, but for schedules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.passes.triton.alternatives.alone import Scheduled, alone, canonical
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.store import key_of

MEASURED: Final = "measured"
"""The attribute of a module that says the device, and schedules by place."""


def operations(module: ModuleOp) -> Iterator[Scheduled]:
    """The operations of a program's functions, not those inside of groups."""
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp):
            for op in function.walk():
                inside = isinstance(op.parent_op(), loom.FusedOp)
                if isinstance(op, loom.OperationOp | loom.FusedOp) and not inside:
                    yield op


def labels(op: Operation) -> list[str]:
    """The labels of an operation and of what is in it, or of all that a module has, in order."""
    found = (one for one in op.walk() if isinstance(one, loom.OperationOp | loom.FusedOp))
    return [one.label.data for one in found]


def place_of(text: str, number: int) -> str:
    """What a kernel is found by: its operation's canonical text, and the place of its label."""
    return f"{key_of({'operation': text})[:32]}.{number}"


def give(root: Operation, number: int, schedule: Schedule) -> None:
    """Have what has a label, in an operation or a module, use a schedule: by its place in `labels`.

    A group has the label of its last member, so labels do not tell them apart.
    """
    found = [op for op in root.walk() if isinstance(op, loom.OperationOp | loom.FusedOp)]
    found[number].attributes[SCHEDULE] = ScheduleAttr(schedule)


def keep_measured(module: ModuleOp, device: str, schedules: Mapping[str, Schedule]) -> None:
    """Keep schedules by place with a program, for a device; they take the place of others."""
    module.attributes.pop(MEASURED, None)
    if schedules:
        known = {place: ScheduleAttr(schedule) for place, schedule in schedules.items()}
        module.attributes[MEASURED] = DictionaryAttr(
            {"device": StringAttr(device), "schedules": DictionaryAttr(known)}
        )


def measured_of(module: ModuleOp, device: str) -> dict[str, Schedule]:
    """The schedules by place that are kept with a program for a device."""
    kept = module.attributes.get(MEASURED)
    if not isinstance(kept, DictionaryAttr) or kept.data.get("device") != StringAttr(device):
        return {}
    found = kept.data.get("schedules")
    rows = found.data.items() if isinstance(found, DictionaryAttr) else ()
    return {place: row.data for place, row in rows if isinstance(row, ScheduleAttr)}


def give_measured(module: ModuleOp, device: str) -> None:
    """Have operations use what is kept for them, which the module keeps no more.

    Those that have a schedule already are left as they are.
    """
    known = measured_of(module, device)
    module.attributes.pop(MEASURED, None)
    for op in operations(module) if known else ():
        if any(SCHEDULE in one.attributes for one in op.walk()):
            continue
        text = canonical(alone(op))
        for number in range(len(labels(op))):
            schedule = known.get(place_of(text, number))
            if schedule is not None:
                give(op, number, schedule)

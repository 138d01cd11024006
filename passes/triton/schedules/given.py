"""Schedules that are given by label as an option of `loom-to-triton`, and what is wrong with them.

loom-to-triton{schedules="product: M = 128, N = 256, K = 64, warps = 8"}
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleAttr, ScheduleError
from tapestry.locations import location_of
from tapestry.passes.triton.kernels.mapfold import given_schedule
from tapestry.passes.triton.schedules.task import SCHEDULE


def give_schedules(module: ModuleOp, given: Sequence[str]) -> None:
    """Give operations schedules by their labels; UsageError where there is none of a label."""
    labels: set[str] = set()
    for text in given:
        label, sign, schedule = text.partition(":")
        if not sign:
            raise UsageError(f"{text!r} is not `LABEL: NAME = VALUE, ...`")
        try:
            attribute = ScheduleAttr(Schedule.parse(schedule))
        except ScheduleError as error:
            raise UsageError(f"the schedule of {label.strip()}: {error}") from error
        if label.strip() in labels:
            raise UsageError(
                f"{label.strip()!r} is given several schedules", hint="give it one of them"
            )
        labels.add(label.strip())
        found = [
            op
            for op in module.walk()
            if isinstance(op, loom.OperationOp | loom.FusedOp) and op.label.data == label.strip()
        ]
        if not found:
            raise UsageError(f"no operation is labelled {label.strip()!r}")
        for op in found:
            op.attributes[SCHEDULE] = attribute


@contextmanager
def illegal_schedules(op: loom.OperationOp | loom.FusedOp) -> Generator[None]:
    """Say at an operation that its kernel cannot have the schedule that is given for it."""
    try:
        yield
    except ScheduleError as error:
        raise InvalidProgramError(
            f"the schedule of {error}", location=location_of(op), hint="leave it out, or change it"
        ) from error


def refuse_schedule(op: loom.FusedOp, reason: str) -> None:
    """Say that a group that is not one kernel has no schedule."""
    if given_schedule(op) is not None:
        raise InvalidProgramError(
            f"@{op.label.data} has a schedule, but is not one kernel: {reason}",
            location=location_of(op),
            hint="give schedules to its members",
        )


def refuse_schedules_inside(op: loom.FusedOp) -> None:
    """Say that members of a group that is one kernel have no schedules but the group's."""
    for member in op.members:
        if given_schedule(member) not in (None, given_schedule(op)):
            raise InvalidProgramError(
                f"@{member.label.data} has a schedule, but is no kernel of its own: it is part of "
                f"that of @{op.label.data}",
                location=location_of(member),
                hint=f"give the schedule to @{op.label.data}",
            )

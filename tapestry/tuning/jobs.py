"""What is tuned: each kernel that a program becomes, as a small program of its operation alone.

    (job,) = jobs_of(module, LoomToTriton())
    job.task.lengths                    {'M': 512, 'N': 512, 'K': 512}
    job.program                         a module with that operation only: its operands are inputs
    job.text                            the same without names: what results are filed under

Operations that are equal but for names, as those of a model's layers, are one job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tapestry.devices import DeviceSpec
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.passes.triton.alternatives.alone import Scheduled, alone, canonical
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.predicting import Calls, Prediction, ranked
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.passes.triton.schedules.task import SCHEDULE, Task
from tapestry.passes.triton.tasks import tasks


@dataclass(eq=False)
class Job:
    """A kernel that is tuned: its task, the program it is measured in, and what it stands for."""

    task: Task
    program: ModuleOp
    text: str
    places: list[tuple[Scheduled, str]] = field(default_factory=list[tuple[Scheduled, str]])
    """The operations that the job stands for, and the labels in them of what it schedules."""

    def give(self, schedule: Schedule) -> None:
        """Have all operations that the job stands for use a schedule."""
        for op, label in self.places:
            give(op, label, schedule)

    def scheduled(self, schedule: Schedule) -> ModuleOp:
        """The program with a schedule."""
        program = self.program.clone()
        give(program, self.task.name, schedule)
        return program


def give(root: Operation, label: str, schedule: Schedule) -> None:
    """Have what is labelled so, in an operation or a module, use a schedule."""
    for op in root.walk():
        if isinstance(op, loom.OperationOp | loom.FusedOp) and op.label.data == label:
            op.attributes[SCHEDULE] = ScheduleAttr(schedule)


def jobs_of(module: ModuleOp, lowering: LoomToTriton) -> list[Job]:
    """The jobs of a program in loom, which stays as it is, in its order.

    Operations that already have a schedule, or that have no kernel, are no jobs.
    """
    found: dict[str, list[Job]] = {}
    for op in _operations(module):
        if any(SCHEDULE in one.attributes for one in op.walk()):
            continue
        program = alone(op)
        text = canonical(program)
        own = _tasks(program, lowering)
        jobs = found.setdefault(text, [Job(task, program, text) for task in own])
        for job, task in zip(jobs, own, strict=True):
            job.places.append((op, task.name))
    return [job for jobs in found.values() for job in jobs]


def _tasks(program: ModuleOp, lowering: LoomToTriton) -> Sequence[Task]:
    try:
        found = tasks(program, replace(lowering, schedules=()))
    except TapestryError:
        return ()
    return [task for task in found if any(True for _ in candidates(task))]


def _operations(module: ModuleOp) -> Iterator[Scheduled]:
    """The operations of a program's functions, not those inside of groups."""
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp):
            for op in function.walk():
                inside = isinstance(op.parent_op(), loom.FusedOp)
                if isinstance(op, loom.OperationOp | loom.FusedOp) and not inside:
                    yield op


def predicted(
    job: Job,
    lowering: LoomToTriton,
    spec: DeviceSpec,
    schedules: Iterable[Schedule] | None = None,
) -> list[Prediction]:
    """The candidates of a job by the cost model: those that fit first, faster ones first.

    `schedules` are others to look at in place of its candidates.
    """
    plain = replace(lowering, schedules=())

    def build(schedule: Schedule) -> tuple[triton.KernelOp, Calls]:
        program = job.scheduled(schedule)
        plain.apply(Context(), program)
        launches = [op for op in program.walk() if isinstance(op, triton.LaunchOp)]
        kernels = {
            op.sym_name.data: op for op in program.body.block.ops if isinstance(op, triton.KernelOp)
        }
        own = [launch for launch in launches if launch.kernel_name == job.task.name]
        (launch, *_) = own or launches
        return kernels[launch.kernel_name], calls_of(launch)

    return ranked(candidates(job.task) if schedules is None else schedules, build, spec)

"""What is tuned: each kernel that a program becomes, as a small program of its operation alone.

    lowering = LoomToTriton(device="h200")
    (job,) = jobs_of(settled(module, lowering), lowering)
    job.task.lengths                    {'M': 512, 'N': 512, 'K': 512}
    job.program                         a module with that operation only: its operands are inputs
    job.text                            the same without names: what results are filed under
    job.untuned                         the schedule that the kernel has when nothing is tuned

Operations that are equal but for names, as those of a model's layers, are one job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from tapestry.codegen.refusals import bare_text
from tapestry.devices import DeviceSpec, find_spec
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.alternatives.alone import Scheduled, alone, canonical
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.predicting import Made, Prediction
from tapestry.passes.triton.cost.ranking import ranked
from tapestry.passes.triton.loom_to_triton import NO_DEVICE, LoomToTriton
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.passes.triton.schedules.choosing import DESCRIPTORS, never
from tapestry.passes.triton.schedules.measured import give, labels, operations, place_of
from tapestry.passes.triton.schedules.schedule import default
from tapestry.passes.triton.schedules.task import SCHEDULE, Task
from tapestry.passes.triton.schedules.tiling import Tiling

Refused = Callable[[triton.KernelOp], bool]
"""Which kernels are known to be no good on a device."""


@dataclass(eq=False)
class Job:
    """A kernel that is tuned: its task, the program it is measured in, and what it stands for."""

    task: Task
    program: ModuleOp
    text: str
    kernels: str
    """What the operation's kernels are with default schedules: results are of these."""
    number: int
    """Which of the labels in its operation it schedules."""
    lowering: LoomToTriton
    refused: Refused = never
    places: list[Scheduled] = field(default_factory=list[Scheduled])
    """The operations that the job stands for."""

    @property
    def place(self) -> str:
        """What its schedule is found by in a program."""
        return place_of(self.text, self.number)

    @property
    def default(self) -> Schedule:
        """The schedule that follows from extents alone."""
        return default(self.task, Tiling(self.lowering.tile))

    @cached_property
    def untuned(self) -> Schedule:
        """The schedule that the kernel has when nothing is tuned: what the cost model chooses."""
        found: dict[Task, Schedule | None] = {}
        lowered = self.program.clone()
        self.lowering.settled.lower(
            Context(), lowered, refused=self.refused, chosen=found.__setitem__
        )
        return found.get(self.task) or self.default

    def candidates(self) -> list[Schedule]:
        """The schedules that may be fast on the device, the default first."""
        device = self.lowering.device
        described = device != NO_DEVICE and find_spec(device).capability >= DESCRIPTORS
        return list(candidates(self.task, Tiling(self.lowering.tile), descriptors=described))

    def give(self, schedule: Schedule) -> None:
        """Have all operations that the job stands for use a schedule."""
        for op in self.places:
            give(op, self.number, schedule)

    def scheduled(self, schedule: Schedule) -> ModuleOp:
        """The program with a schedule."""
        program = self.program.clone()
        give(program, self.number, schedule)
        return program


def settled(module: ModuleOp, lowering: LoomToTriton) -> ModuleOp:
    """A program in loom, which stays as it is, as the operations that are its kernels untuned."""
    copy = module.clone()
    lowering.settle(Context(), copy)
    return copy


def jobs_of(module: ModuleOp, lowering: LoomToTriton, refused: Refused = never) -> list[Job]:
    """The jobs of a program in loom, which stays as it is, in its order.

    Its operations are taken to be what the kernels are made of: see `settled`. Those that already
    have a schedule, or that have no kernel, are no jobs.
    """
    found: dict[str, list[Job]] = {}
    for op in operations(module):
        if any(SCHEDULE in one.attributes for one in op.walk()):
            continue
        program = alone(op)
        text = canonical(program)
        if text not in found:
            found[text] = _jobs(program, text, lowering, refused)
        for job in found[text]:
            job.places.append(op)
    return [job for jobs in found.values() for job in jobs]


def _jobs(program: ModuleOp, text: str, lowering: LoomToTriton, refused: Refused) -> list[Job]:
    """What there is to tune in a program of one operation."""
    seen: list[Task] = []
    _tell_apart(program)
    lowered = program.clone()
    try:
        lowering.settled.lower(Context(), lowered, seen.append, choose=False)
    except TapestryError:
        return []
    kernels = "\n".join(map(bare_text, _kernels(lowered).values()))
    own = labels(program)
    jobs = [
        Job(task, program, text, kernels, own.index(task.name), lowering, refused)
        for task in dict.fromkeys(seen)
        if task.name in own
    ]
    return [job for job in jobs if any(True for _ in candidates(job.task))]


def _tell_apart(program: ModuleOp) -> None:
    """Give each operation a label of its own: that of a group is its last member's, too."""
    known: set[str] = set()
    found = (op for op in program.walk() if isinstance(op, loom.OperationOp | loom.FusedOp))
    for number, op in enumerate(found):
        if op.label.data in known:
            op.properties["label"] = StringAttr(f"{op.label.data}_{number}")
        known.add(op.label.data)


def _kernels(lowered: ModuleOp) -> dict[str, triton.KernelOp]:
    """The kernels of a program in triton, by name."""
    ops = lowered.body.block.ops
    return {op.sym_name.data: op for op in ops if isinstance(op, triton.KernelOp)}


def predicted(
    job: Job, spec: DeviceSpec, schedules: Iterable[Schedule] | None = None
) -> list[Prediction]:
    """The candidates of a job by the cost model: those that fit first, faster ones first.

    `schedules` are others to look at in place of its candidates.
    """

    def build(schedule: Schedule) -> Made:
        program = job.scheduled(schedule)
        job.lowering.settled.lower(Context(), program, choose=False)
        launches = [op for op in program.walk() if isinstance(op, triton.LaunchOp)]
        kernels = _kernels(program)
        own = [launch for launch in launches if launch.kernel_name == job.task.name]
        (launch, *_) = own or launches
        return Made(kernels[launch.kernel_name], calls_of(launch))

    return ranked(job.candidates() if schedules is None else schedules, build, spec)

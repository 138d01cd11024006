"""What is tuned: each kernel that a program becomes, as a small program of its operation alone.

    (job,) = jobs_of(module, LoomToTriton())
    job.task.lengths                    {'M': 512, 'N': 512, 'K': 512}
    job.program                         a module with that operation only: its operands are inputs
    job.text                            the same without names: what results are filed under

Operations that are equal but for names, as those of a model's layers, are one job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tapestry.devices import DeviceSpec
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.passes.triton.calls import calls_of
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.predicting import Calls, Prediction, ranked
from tapestry.passes.triton.schedule import SCHEDULE, Task, candidates
from tapestry.passes.triton.tasks import tasks

Scheduled = loom.OperationOp | loom.FusedOp

_UNNAMED = ("derivation", SCHEDULE)


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


def alone(op: Scheduled) -> ModuleOp:
    """A program that computes an operation of its inputs, and nothing else."""
    taken = list(dict.fromkeys(op.operands))
    block = Block(arg_types=[value.type for value in taken])
    values: dict[SSAValue, SSAValue] = dict(zip(taken, block.args, strict=True))
    for number, (value, argument) in enumerate(zip(taken, block.args, strict=True)):
        # Names need not differ where they come from, and inputs have to.
        argument.name_hint = f"{value.name_hint or 'x'}_in{number}"
    copy = op.clone(value_mapper=values)
    block.add_ops([copy, func.ReturnOp(*copy.results)])
    kinds = ([value.type for value in taken], [value.type for value in copy.results])
    main = func.FuncOp("main", kinds, Region(block))
    module = op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    return ModuleOp([*(one.clone() for one in _definitions(module, str(copy))), main])


def _definitions(module: ModuleOp, text: str) -> list[Operation]:
    """The monoids and kernels of a module that a text names, and that those name."""
    known = {
        op.sym_name.data: op
        for op in module.body.block.ops
        if isinstance(op, loom.MonoidOp | loom.KernelOp)
    }
    found: dict[str, Operation] = {}
    texts = [text]
    while texts:
        for name in re.findall(r"@([\w$.-]+)", texts.pop()):
            if name in known and name not in found:
                found[name] = known[name]
                texts.append(str(known[name]))
    return [op for name, op in known.items() if name in found]


def canonical(program: ModuleOp) -> str:
    """The text of a program without names, derivations and schedules: equal for equal ones."""
    bare = program.clone()
    names: list[str] = []
    for op in bare.walk():
        blocks = [block for region in op.regions for block in region.blocks]
        for value in (*op.results, *(a for block in blocks for a in block.args)):
            value.name_hint = None
        for name in _UNNAMED:
            op.attributes.pop(name, None)
            op.properties.pop(name, None)
        if isinstance(op, loom.OperationOp | loom.FusedOp):
            names.append(op.label.data)
            op.properties["label"] = StringAttr("operation")
        elif isinstance(op, loom.MonoidOp | loom.KernelOp):
            names.append(op.sym_name.data)
    text = str(bare)
    for number, name in enumerate(names):
        text = re.sub(rf"@{re.escape(name)}(?![\w$.-])", f"@name{number}", text)
    return text


def predicted(job: Job, lowering: LoomToTriton, spec: DeviceSpec) -> list[Prediction]:
    """The candidates of a job by the cost model: those that fit first, faster ones first."""
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

    return ranked(candidates(job.task), build, spec)

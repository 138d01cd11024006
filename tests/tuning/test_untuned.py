"""What is tuned is the program that would run untuned: its kernels stay, whatever is measured."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.alternatives.alone import canonical
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.kernels.mapfold import given_schedule
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.measured import MEASURED, keep_measured, measured_of
from tapestry.store import Store
from tapestry.tuning import Job, Records, Tuned, Tuner, give_best, jobs_of, settled
from tapestry.tuning.records import whole_key

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from _kernel_cases import CASES

H100 = LoomToTriton(device="h100")
KNOWN = {case.name: case for case in CASES}
PROGRAMS: dict[str, Callable[[], Expression]] = {
    "convolution": KNOWN["conv2d 32x128x28x28 -> 256, 3x3, relu"].expression,
    "sum": lambda: t.input("x", (1 << 24,), "f32").sum(axis=0),
    "transposed": KNOWN["matmul f16 4096 transposed"].expression,
    "float32": KNOWN["matmul f32 2048"].expression,
    "map": lambda: t.input("x", (1 << 20,), "f32") * 2,
}


@cache
def program(name: str) -> ModuleOp:
    """A program in loom: clones of it are changed."""
    return t.compile(PROGRAMS[name](), on="triton").lowered


@cache
def lowered(name: str) -> ModuleOp:
    """The same in triton, untuned."""
    return in_triton(program(name))


def in_triton(module: ModuleOp) -> ModuleOp:
    made = module.clone()
    H100.apply(Context(), made)
    return made


def kernels(made: ModuleOp) -> list[triton.KernelOp]:
    return [op for op in made.body.block.ops if isinstance(op, triton.KernelOp)]


def shape(made: ModuleOp) -> tuple[Counter[str], list[tuple[str, str]]]:
    """The kernels and buffers of a program in triton, but for what schedules decide."""
    names = Counter(
        ", ".join(
            [op.sym_name.data, *sorted(op.schedule.data.tile), *map(str, op.body.block.arg_types)]
        )
        for op in kernels(made)
    )
    found = (triton.AllocateOp, triton.LaunchOp)
    host = [
        (op.name, ", ".join(map(str, (*op.operand_types, *op.result_types))))
        for op in made.walk()
        if isinstance(op, found)
    ]
    return names, host


@dataclass
class Made:
    """A bench where nothing runs: seconds follow from an operation and its schedule."""

    alone: Callable[[str, Schedule], float]
    whole_seconds: Callable[[ModuleOp], float]
    lowering: LoomToTriton = H100
    device: str = "made up"
    workers: int = 0
    time: float = 0.0
    built: dict[str, list[Schedule]] = field(default_factory=dict[str, list[Schedule]])

    def clock(self) -> float:
        return self.time

    def compile(self, program: ModuleOp) -> None: ...

    def build(self, program: ModuleOp) -> Timed:
        (schedule,) = filter(None, map(given_schedule, program.walk()))
        text = canonical(program)
        self.built.setdefault(text, []).append(schedule)
        self.time += 1
        return Timed(self.alone(text, schedule))

    def whole(self, program: ModuleOp) -> Timed:
        return Timed(self.whole_seconds(program))

    def difference(self, outputs: Sequence[Any], wanted: Sequence[Any]) -> float:
        return float(len(outputs) != len(wanted))

    def works(self) -> bool:
        return True


@dataclass
class Timed:
    taken: float

    def outputs(self) -> Sequence[Any]:
        return []

    def seconds(self) -> float:
        return self.taken


@cache
def prepared(name: str) -> list[Tuned]:
    """What there is to tune: choosing and predicting is most of what tuning takes here."""
    return Tuner(Made(lambda *_: 1.0, lambda _: 1.0), find_spec("h100")).jobs(program(name))


def jobs(name: str) -> list[Job]:
    return [one.job for one in prepared(name)]


def untuned(name: str) -> dict[str, Schedule]:
    """The schedules that kernels have untuned, by the text of their operation."""
    return {job.text: job.untuned for job in jobs(name)}


def tuned(
    name: str,
    alone: Callable[[str, Schedule], float],
    whole: Callable[[ModuleOp], float],
    folder: Path | None = None,
    seconds: float = 12,
) -> tuple[ModuleOp, list[Tuned], Made]:
    """A program after it was tuned with some times."""
    module, bench = program(name).clone(), Made(alone, whole)
    store = None if folder is None else Store(folder)

    class Known(Tuner):
        def jobs(self, module: ModuleOp) -> list[Tuned]:
            assert MEASURED not in module.attributes
            return [replace(one, records=Records.read(store, one.key)) for one in prepared(name)]

    own = Known(bench, find_spec("h100"), store)
    found = own.tune(module, seconds)
    own.give(module, found)
    return module, found, bench


def faster(name: str) -> Callable[[str, Schedule], float]:
    """Any other schedule than the untuned one is faster, one with less stages more so."""
    known = untuned(name)
    return lambda text, one: 2e-5 if one == known[text] else 1e-5 + 1e-7 * one.stages


def tuned_is_faster(module: ModuleOp) -> float:
    return 1e-5 if measured_of(module, "h100") else 2e-5


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_those_of_the_untuned_program_but_for_schedules(name: str) -> None:
    module, found, bench = tuned(name, faster(name), tuned_is_faster)
    given = measured_of(module, "h100")
    assert given == {one.job.place: one.better for one in found}
    made, before = in_triton(module), lowered(name)
    assert shape(made) == shape(before)
    # What is first measured is what runs untuned, and what was given is what runs now.
    first = [schedules[0] for schedules in bench.built.values()]
    assert sorted(map(str, first)) == sorted(str(op.schedule.data) for op in kernels(before))
    assert sorted(map(str, given.values())) == sorted(str(op.schedule.data) for op in kernels(made))
    assert len(found) == len(kernels(before))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fastest_by_the_model_is_no_slower_than_untuned(name: str) -> None:
    """Kernels take what is predicted of them, and so do whole programs."""
    known = {
        (one.job.text, each.schedule): each.estimate.seconds
        for one in prepared(name)
        for each in one.predictions
    }
    before = seconds(lowered(name))

    def whole(module: ModuleOp) -> float:
        return seconds(in_triton(module)) if measured_of(module, "h100") else before

    module, found, _ = tuned(name, lambda *which: known[which], whole)
    assert whole(module) <= before
    assert sum(known[job.text, job.untuned] for job in jobs(name)) == pytest.approx(before)
    assert all(one.gain is not None and one.gain >= 1 for one in found)


def seconds(made: ModuleOp) -> float:
    return sum(one.estimate.seconds for one in predictions(made, find_spec("h100")))


@pytest.mark.parametrize("name", ["convolution", "sum"])
def test_schedules_are_of_what_the_device_makes_of_a_program(name: str) -> None:
    """Given to the program's own operation, one would keep it from that."""
    module = program(name).clone()
    (job,) = jobs_of(module, LoomToTriton())
    job.give(job.default)
    assert len(kernels(in_triton(module))) == 1 < len(jobs(name))


def test_a_program_that_is_slower_whole_stays_as_it_is(tmp_path: Path) -> None:
    module, found, _ = tuned("map", faster("map"), lambda _: 1e-5, tmp_path)
    assert found[0].better is not None
    assert MEASURED not in module.attributes
    assert give_best(module, "made up", Store(tmp_path), H100) == 0


def test_nothing_is_given_that_is_not_faster() -> None:
    module, found, _ = tuned("map", lambda *_: 1e-5, tuned_is_faster)
    assert found[0].best is not None
    assert found[0].better is None
    assert MEASURED not in module.attributes


def test_nothing_is_given_where_the_untuned_kernel_fails() -> None:
    def alone(text: str, schedule: Schedule) -> float:
        if schedule == untuned("map")[text]:
            raise MemoryError
        return 1e-5

    module, found, _ = tuned("map", alone, tuned_is_faster)
    assert found[0].best is not None
    assert MEASURED not in module.attributes


def test_nothing_is_given_where_the_whole_program_fails() -> None:
    def whole(_: ModuleOp) -> float:
        raise MemoryError

    module, found, _ = tuned("map", faster("map"), whole)
    assert found[0].better is not None
    assert MEASURED not in module.attributes


def test_what_gained_more_before_stays(tmp_path: Path) -> None:
    """More time finds what is faster alone, and with which the program gains less."""
    module, found, _ = tuned("map", faster("map"), tuned_is_faster, tmp_path, 3)
    before, made = measured_of(module, "h100"), set(found[0].records.made)
    assert before

    def alone(_: str, schedule: Schedule) -> float:
        return 1e-6 if schedule not in made else 1e-5

    def whole(module: ModuleOp) -> float:
        return 1.9e-5 if measured_of(module, "h100") else 2e-5

    module, found, _ = tuned("map", alone, whole, tmp_path, 3)
    assert found[0].better not in before.values()
    assert measured_of(module, "h100") == before


def test_descriptors_are_candidates_where_the_device_has_them() -> None:
    (job,) = jobs("transposed")
    assert job.untuned in job.candidates()
    assert any(one.loads == "descriptor" for one in job.candidates())
    module = program("transposed")
    for lowering in (LoomToTriton(device="a100"), LoomToTriton()):
        (job,) = jobs_of(settled(module, lowering), lowering)
        assert all(one.loads == "pointer" for one in job.candidates())


def test_float32_is_multiplied_as_on_the_device() -> None:
    (job,) = jobs("float32")
    made = job.scheduled(job.untuned)
    H100.settled.apply(Context(), made)
    assert "bf16x6" in str(made)
    assert "bf16x6" in str(lowered("float32"))
    (plain,) = jobs_of(program("float32"), LoomToTriton())
    assert plain.kernels != job.kernels


def test_another_kernel_has_other_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of a program are of its sources and its lowering."""
    module = program("sum")
    key = whole_key(module, "made up", H100)
    assert key == whole_key(module.clone(), "made up", H100)
    assert key != whole_key(module, "made up", LoomToTriton(device="h100", numerics="fast"))
    given = module.clone()
    keep_measured(given, "h100", {"place": Schedule({"P": 4})})
    assert key == whole_key(given, "made up", H100)
    monkeypatch.setattr("tapestry.tuning.records.environment", lambda: {"sources": "others"})
    assert key != whole_key(module, "made up", H100)

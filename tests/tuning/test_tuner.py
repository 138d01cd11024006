"""Tuning on a bench whose stopwatch is made up: what is measured, kept, refused and used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.codegen.aot_jobs import CompileError
from tapestry.codegen.driver import LoadError, MemoryShortError
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.kernels.mapfold import given_schedule
from tapestry.passes.triton.loom_to_triton import NO_DEVICE, LoomToTriton
from tapestry.passes.triton.schedules.measured import measured_of
from tapestry.runtime.triton.compiled import GpuError
from tapestry.store import Store
from tapestry.tuning import Measurement, Records, Tuned, Tuner, give_best, jobs_of, settled
from tapestry.tuning.benches import HostBench, relative_difference
from tapestry.tuning.faults import TuningError
from tapestry.tuning.tuner import UNFINISHED

H200 = find_spec("h200")


def program(expression: Expression) -> ModuleOp:
    return t.compile(expression, on="triton").lowered


def product(name: str = "a") -> Expression:
    return t.input(name, (256, 64), "f16") @ t.input("b", (64, 128), "f16")


def schedule_of(module: ModuleOp) -> Schedule:
    found = [
        given_schedule(op)
        for op in module.walk()
        if isinstance(op, loom.OperationOp | loom.FusedOp)
    ]
    (schedule,) = [one for one in found if one is not None]
    return schedule


@dataclass
class Made:
    """A bench where nothing runs: outputs, seconds and failures follow from the schedule."""

    seconds: Callable[[Schedule], float] = lambda _: 1e-5
    outputs: Callable[[Schedule], float] = lambda _: 1.0
    took: float = 1.0
    device: str = "made up"
    lowering: LoomToTriton = field(default_factory=LoomToTriton)
    time: float = 0.0
    built: list[Schedule] = field(default_factory=list)
    workers: int = 0
    compiles: Callable[[Schedule], None] = lambda _: None
    lost: bool = False

    def clock(self) -> float:
        return self.time

    def compile(self, module: ModuleOp) -> None:
        self.compiles(schedule_of(module))

    def build(self, module: ModuleOp) -> Candidate:
        schedule = schedule_of(module)
        self.built.append(schedule)
        return Candidate(self, schedule)

    def whole(self, module: ModuleOp) -> Candidate:
        (job,) = jobs_of(settled(module, self.lowering), self.lowering)
        given = measured_of(module, self.lowering.device).get(job.place)
        return Candidate(self, given or job.untuned)

    def difference(self, outputs: Sequence[Any], wanted: Sequence[Any]) -> float:
        return relative_difference(outputs, wanted)

    def works(self) -> bool:
        return not self.lost


@dataclass
class Candidate:
    bench: Made
    schedule: Schedule

    def outputs(self) -> Sequence[Any]:
        return [np.full(4, self.bench.outputs(self.schedule))]

    def seconds(self) -> float:
        self.bench.time += self.bench.took
        return self.bench.seconds(self.schedule)


def tuner(bench: Made, folder: Path | None = None) -> Tuner:
    return Tuner(bench, H200, store=None if folder is None else Store(folder))


def tune_one(bench: Made, folder: Path | None = None, seconds: float = 10) -> Tuned:
    (found,) = tuner(bench, folder).tune(program(product()), seconds)
    return found


def test_the_default_is_measured_first_then_what_is_predicted_to_be_fast() -> None:
    found = tune_one(Made())
    made = list(found.records.made)
    assert made[0] == found.job.untuned
    predicted = [one.schedule for one in found.predictions if not one.estimate.problems]
    assert made[1:] == [one for one in predicted if one != found.job.untuned][: len(made) - 1]
    assert len(made) == 10


def test_the_fastest_is_the_best() -> None:
    def seconds(schedule: Schedule) -> float:
        return 1e-6 if schedule.stages == 4 else 1e-5

    found = tune_one(Made(seconds=seconds), seconds=1000)
    assert found.best is not None
    assert found.best.schedule.stages == 4
    assert found.gain == pytest.approx(10)


def test_the_budget_ends_it() -> None:
    assert len(tune_one(Made(took=3.0), seconds=10).records.made) == 4
    assert len(tune_one(Made(), seconds=0).records.made) == 0


def test_candidates_are_compiled_while_others_are_measured() -> None:
    """Two at once, of which neither ends before the other has begun; not all there are."""
    together, begun = Barrier(2, timeout=60), list[Schedule]()

    def compiles(schedule: Schedule) -> None:
        begun.append(schedule)
        together.wait()

    found = tune_one(Made(workers=2, compiles=compiles), seconds=6)
    made = list(found.records.made)
    assert len(made) == 6
    assert set(made) <= set(begun)
    assert len(begun) <= len(made) + 2 * 2 + 1
    assert all(one.problem == "" for one in found.records.made.values())


def test_a_candidate_that_does_not_compile_is_a_result() -> None:
    def compiles(schedule: Schedule) -> None:
        if schedule.stages > 2:
            why = "does not compile for sm_90: out of registers"
            raise CompileError(f"kernel product {why}", {"product": why})

    bench = Made(workers=2, compiles=compiles)
    found = tune_one(bench, seconds=1000)
    failed = [one for one in found.records.made.values() if one.seconds is None]
    assert {one.schedule.stages > 2 for one in failed} == {True}
    assert all("out of registers" in one.problem for one in failed)
    assert not any(schedule.stages > 2 for schedule in bench.built[1:])


def test_a_candidate_that_fails_is_a_result() -> None:
    def seconds(schedule: Schedule) -> float:
        if schedule.stages > 2:
            raise RuntimeError("out of resource: shared memory\n  Required: 300000")
        return 1e-5

    found = tune_one(Made(seconds=seconds), seconds=1000)
    failed = [one for one in found.records.made.values() if one.seconds is None]
    assert failed
    assert {one.problem for one in failed} == {"RuntimeError: Required: 300000"}
    assert found.best is not None
    assert found.best.schedule.stages <= 2


def test_wrong_numbers_are_a_result() -> None:
    def outputs(schedule: Schedule) -> float:
        return 1.0 if schedule.stages == 3 else 1.1

    found = tune_one(Made(outputs=outputs, seconds=lambda s: 1e-7 * s.stages), seconds=1000)
    assert found.job.default.stages == 3
    wrong = [one for one in found.records.made.values() if one.schedule.stages != 3]
    assert {one.problem for one in wrong} == {"its outputs are not those of the untuned kernel"}
    assert wrong[0].difference == pytest.approx(0.1)
    assert found.best is not None
    assert found.best.schedule.stages == 3


def test_nan_is_wrong_where_the_default_has_none() -> None:
    found = tune_one(Made(outputs=lambda s: 1.0 if s.stages == 3 else float("nan")), seconds=1000)
    assert any("outputs" in one.problem for one in found.records.made.values())


def test_a_default_that_fails_leaves_the_others() -> None:
    bench = Made()
    first = tune_one(Made(), seconds=1).job.untuned

    def outputs(schedule: Schedule) -> float:
        if schedule == first:
            raise MemoryError
        return 2.0

    bench.outputs = outputs
    found = tune_one(bench, seconds=5)
    assert found.records.made[first].problem == "MemoryError"
    assert found.best is not None
    assert found.gain is None


def test_what_takes_the_gpu_along_is_the_only_one_to_blame(tmp_path: Path) -> None:
    """All that comes after fails too, which says nothing of it."""
    bench = Made()

    def seconds(_: Schedule) -> float:
        bench.lost = bench.lost or len(bench.built) > 3
        if bench.lost:
            what = "CUDA error: an illegal memory access was encountered"
            raise RuntimeError(f"{what}\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1")
        return 1e-5

    bench.seconds = seconds
    with pytest.raises(TuningError, match="the GPU failed while @matmul was measured with M = "):
        tune_one(bench, tmp_path, seconds=1000)
    again = tune_one(Made(), tmp_path, seconds=2)
    failed = [one.problem for one in again.records.made.values() if one.seconds is None]
    assert failed == ["RuntimeError: CUDA error: an illegal memory access was encountered"]
    assert len(again.records.made) == 3 + 1 + 2


class OutOfMemoryError(RuntimeError):
    """As PyTorch's is called."""


@pytest.mark.parametrize("error", [OutOfMemoryError("2 GiB"), MemoryShortError("2 GiB")])
def test_memory_that_is_short_now_is_not_held_against_a_candidate(
    error: Exception, tmp_path: Path
) -> None:
    def seconds(_: Schedule) -> float:
        raise error

    first = tune_one(Made(seconds=seconds), tmp_path, seconds=3)
    assert {one.problem[-5:] for one in first.records.made.values()} == {"2 GiB"}
    again = tune_one(Made(), tmp_path, seconds=3)
    assert again.best is not None
    assert list(again.records.made) == list(first.records.made)


@pytest.mark.parametrize(
    "error",
    [
        CompileError("compiling kernels.py failed: no module named triton", hint="install it"),
        LoadError("NVIDIA's driver cannot be loaded"),
        GpuError("this GPU is sm_75"),
        OSError(28, "No space left on device"),
    ],
)
def test_what_no_candidate_can_do_ends_it_and_is_not_kept(error: Exception, tmp_path: Path) -> None:
    def compiles(_: Schedule) -> None:
        raise error

    with pytest.raises(TuningError, match=r"@matmul cannot be measured with M = .*: \w+: "):
        tune_one(Made(compiles=compiles), tmp_path)
    assert len(tune_one(Made(), tmp_path, seconds=2).records.made) == 2


def test_a_candidate_that_ends_the_process_is_not_tried_again(tmp_path: Path) -> None:
    """What is kept while it runs is seen by a later process."""
    seen: list[dict[Schedule, Measurement]] = []
    key = tune_one(Made(), seconds=0).key

    def seconds(_: Schedule) -> float:
        seen.append(Records.read(Store(tmp_path), key).made)
        return 1e-5

    found = tune_one(Made(seconds=seconds), tmp_path, seconds=3)
    (first, second, _) = found.records.made
    assert seen[0].keys() == {first}
    assert seen[0][first].problem == UNFINISHED
    assert seen[1][first].problem == ""
    assert seen[1][second].problem == UNFINISHED
    assert all(one.problem == "" for one in Records.read(Store(tmp_path), key).made.values())


def test_an_interrupt_keeps_what_was_measured_and_blames_nothing(tmp_path: Path) -> None:
    bench = Made()

    def seconds(_: Schedule) -> float:
        if len(bench.built) > 3:
            raise KeyboardInterrupt
        return 1e-5

    bench.seconds = seconds
    with pytest.raises(KeyboardInterrupt):
        tune_one(bench, tmp_path, seconds=1000)
    again = tune_one(Made(), tmp_path, seconds=2)
    assert len(again.records.made) == 3 + 2
    assert {one.problem for one in again.records.made.values()} == {""}


def test_a_default_that_failed_is_not_run_to_compare_with(tmp_path: Path) -> None:
    """It may have taken the GPU along."""
    first = tune_one(Made(), seconds=0)
    records = Records()
    records.add(Measurement(first.job.untuned, None, float("nan"), UNFINISHED))
    records.write(Store(tmp_path), first.key)
    bench = Made()
    assert len(tune_one(bench, tmp_path, seconds=3).records.made) == 4
    assert first.job.untuned not in bench.built


def test_no_time_compiles_nothing() -> None:
    begun: list[Schedule] = []
    assert tune_one(Made(compiles=begun.append), seconds=0).records.made == {}
    assert begun == []


def test_what_two_processes_measure_at_once_is_kept_of_both(tmp_path: Path) -> None:
    key = tune_one(Made(), seconds=0).key
    one, other = (Records.read(Store(tmp_path), key) for _ in range(2))
    one.add(Measurement(Schedule({"M": 16, "N": 16, "K": 16}), 1e-5))
    other.add(Measurement(Schedule({"M": 32, "N": 16, "K": 16}), 2e-5))
    for records in (one, other):
        records.write(Store(tmp_path), key)
    assert len(Records.read(Store(tmp_path), key).made) == 2


def test_results_are_kept_and_not_measured_again(tmp_path: Path) -> None:
    first = tune_one(Made(), tmp_path, seconds=4)
    again = Made(took=1.0)
    second = tune_one(again, tmp_path, seconds=3)
    assert list(second.records.made)[:4] == list(first.records.made)
    assert len(second.records.made) == 7
    # The default runs once more: it is what candidates are compared with.
    assert again.built.count(first.job.untuned) == 1


def test_a_damaged_entry_is_measured_again(tmp_path: Path) -> None:
    found = tune_one(Made(), tmp_path, seconds=4)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    assert len(tune_one(Made(), tmp_path, seconds=2).records.made) == 2
    store = Store(tmp_path)
    store.write(found.key, {"measurements": [{"schedule": 3}, 7, {"schedule": "warps = 3"}]})
    assert Records.read(store, found.key).made == {}


def faster(schedule: Schedule) -> float:
    return 1e-6 * schedule.warps


def tuned_one(folder: Path, name: str = "a") -> ModuleOp:
    """A program that four warps are faster for, after it was tuned."""
    module = program(product(name))
    own = tuner(Made(seconds=faster), folder)
    own.give(module, own.tune(module, 1000))
    return module


def test_results_are_by_device_and_numerics(tmp_path: Path) -> None:
    module, store = tuned_one(tmp_path), Store(tmp_path)
    assert give_best(module.clone(), "another", store, LoomToTriton()) == 0
    assert give_best(module.clone(), "made up", store, LoomToTriton(numerics="fast")) == 0
    assert give_best(module.clone(), "made up", store, LoomToTriton(device="h200")) == 0
    assert give_best(module.clone(), "made up", store, LoomToTriton()) == 1


def test_names_do_not_count(tmp_path: Path) -> None:
    tuned_one(tmp_path)
    other = program(product("other"))
    assert give_best(other, "made up", Store(tmp_path), LoomToTriton()) == 1
    (schedule,) = measured_of(other, NO_DEVICE).values()
    assert schedule.warps == 4


def test_equal_operations_are_one_job() -> None:
    x = t.input("x", (64, 64), "f16")
    for name in "abc":
        x = x @ t.input(name, (64, 64), "f16")
    module = t.compile(x, on="triton", pipeline="weft-apply").lowered
    (job,) = jobs_of(module, LoomToTriton())
    assert len(job.places) == 3


def test_what_a_group_of_several_kernels_is_cut_into_is_tuned() -> None:
    """A group has the label of its last member, whose kernel is the one that is scheduled."""
    q, k, v = (t.input(name, (7, rows, 5)) for name, rows in (("q", 2), ("k", 31), ("v", 31)))
    made = t.min(t.min(t.scaled_dot_product_attention(q, k, v) + 1.5, (2,)), (0,))
    lowering = LoomToTriton()
    found = jobs_of(settled(t.compile(made).lowered, lowering), lowering)
    assert len(found) > 1
    for job in found:
        for schedule in job.candidates():
            lowering.settled.lower(Context(), job.scheduled(schedule), choose=False)


def test_jobs_take_turns() -> None:
    x = t.softmax(t.input("x", (64, 64), "f16") @ t.input("w", (64, 32), "f16"), axis=-1)
    module = t.compile(x, on="triton", pipeline="weft-apply,loom-simplify").lowered
    found = tuner(Made()).tune(module, len(jobs_of(module, LoomToTriton())) * 2)
    counts = [len(tuned.records.made) for tuned in found]
    assert len(counts) > 1
    assert max(counts) - min(counts) <= 1 or min(counts) > 0


def test_the_watch_is_told_of_everything() -> None:
    told: list[tuple[Measurement, int]] = []
    bench = Made()
    one = Tuner(bench, H200, watch=lambda _, measurement, left: told.append((measurement, left)))
    one.tune(program(product()), 4)
    assert len(told) == 4
    assert [left for _, left in told] == sorted((left for _, left in told), reverse=True)


def test_schedules_that_are_given_are_not_tuned() -> None:
    module = program(product())
    (job,) = jobs_of(module, LoomToTriton())
    job.give(Schedule({"M": 64, "N": 64, "K": 32}))
    assert jobs_of(module, LoomToTriton()) == []


@pytest.mark.parametrize(
    "expression",
    [
        t.input("x", (20, 30), "f32").sum(axis=1),
        t.softmax(t.input("x", (5, 100), "f16"), axis=-1),
        t.input("a", (40, 24), "f16") @ t.input("b", (24, 33), "f16"),
    ],
    ids=["sum", "softmax", "product"],
)
def test_candidates_compute_what_the_default_does(expression: Expression) -> None:
    times = iter(range(1, 1000))
    bench = HostBench(lambda _, run: run() or 1e-5, clock=lambda: float(next(times)))
    (found,) = Tuner(bench, H200).tune(program(expression), 4.5)
    assert len(found.records.made) == 4
    assert [one.problem for one in found.records.made.values()] == [""] * 4


def test_relative_difference() -> None:
    nan, inf = float("nan"), float("inf")
    one = np.array([1.0, nan, inf])
    assert relative_difference([one], [one]) == 0
    assert relative_difference([np.array([1.0, 0.0])], [np.array([nan, 0.0])]) != 0
    assert relative_difference([np.zeros(2)], [np.zeros(2)]) == 0
    assert relative_difference([np.ones(2)], [np.zeros(2)]) > 1

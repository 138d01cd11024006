"""What a GPU refuses: the next rung, said once, the same numbers; and an error where none is left.

The GPU is one that stands in (`tests/codegen/standing.py`); what fails is injected into it, or into
the compiler.
"""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.codegen import aot, climbing
from tapestry.codegen.driver import MemoryShortError, OldDriverError
from tapestry.codegen.specs import KernelSpec
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.schedules.rungs import Rung, smallest
from tapestry.passes.triton.schedules.schedule import is_legal
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.tasks import give, tasks
from tapestry.runtime import externals
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared.kernels import PreparedKernels
from tapestry.runtime.triton import compiled
from tapestry.runtime.triton.compiled import GpuError
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu, Standing, compiled_at_once

RNG = np.random.default_rng(1)
X = RNG.normal(size=(48, 40)).astype(np.float32)
W = RNG.normal(size=(40, 48)).astype(np.float32)
WANT = np.maximum(X @ W, 0)


COMPILE = compiled.compile_kernels


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climbing, "_said", set())
    monkeypatch.setattr(compiled, "compile_kernels", compiled_at_once)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels are really compiled."""
    monkeypatch.setattr(compiled, "compile_kernels", COMPILE)
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))


def program(schedule: str | None = None) -> Any:
    x, w = tapestry.input("x", X.shape), tapestry.input("w", W.shape)
    module = tapestry.compile(tapestry.relu(x @ w)).lowered
    if schedule is not None:
        (op,) = [op for op in module.walk() if op.name in ("loom.operation", "loom.fused")][:1]
        give(op, Schedule.parse(schedule))
    return module


def run(
    module: Any, change: Callable[[Standing], None] = lambda _: None, **options: Any
) -> tuple[np.ndarray, PreparedKernels, Gpu]:
    gpu = Gpu(change)
    prepared = PreparedKernels(module, TritonExecutor(device=gpu, **options))
    (made,) = prepared([X, W])
    return made, prepared, gpu


def refusing(
    monkeypatch: pytest.MonkeyPatch, fails: Callable[[KernelSpec], bool]
) -> list[list[dict[str, int]]]:
    """Compile what does not fail; the blocks that were tried."""
    tried: list[list[dict[str, int]]] = []

    def guarded(path: Path, specs: Sequence[KernelSpec], **options: Any) -> Any:
        tried.append([dict(spec.blocks) for spec in specs])
        refused = {spec.name: "does not compile for sm_90: X" for spec in specs if fails(spec)}
        if refused:
            raise aot.CompileError("some do not compile", refused)
        return compiled_at_once(path, specs, **options)

    monkeypatch.setattr(compiled, "compile_kernels", guarded)
    return tried


def test_a_given_schedule_that_does_not_compile_gives_way_to_the_default(monkeypatch, caplog):
    given = "M = 128, N = 128, K = 32, warps = 8, stages = 3"
    tried = refusing(monkeypatch, lambda spec: dict(spec.blocks).get("BLOCK_M") == 128)
    made, _, _ = run(program(given))
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert [blocks[0]["BLOCK_M"] for blocks in tried] == [128, 64]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    said, hint = record.getMessage().split("\n")
    assert re.fullmatch(
        rf"@\w+ \(.*test_ladder.py:\d+\) with {given}: does not compile for sm_90: X; "
        "it runs with the default schedule",
        said,
    )
    assert hint.startswith("  hint: ")


def test_the_default_gives_way_to_the_smallest(monkeypatch, caplog):
    tried = refusing(monkeypatch, lambda spec: spec.num_stages > 1)
    made, _, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert tried[-1] == [{"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16}]
    assert len(tried) == 2
    (record,) = caplog.records
    assert "; it runs with the smallest schedule\n" in record.getMessage()


def test_the_last_rung_multiplies_no_tiles(monkeypatch, caplog):
    tried = refusing(monkeypatch, lambda spec: "BLOCK_N" in dict(spec.blocks))
    made, prepared, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert len(tried) == 3
    assert all("BLOCK_N" not in blocks for blocks in tried[-1])
    (record,) = caplog.records  # not of each rung
    assert "it runs with the smallest schedule, without tl.dot" in record.getMessage()
    run(program())  # nothing is said twice
    assert len(caplog.records) == 1
    del prepared


def test_operations_that_fail_alike_are_one_message(monkeypatch, caplog):
    x = tapestry.input("x", (64, 64))
    module = tapestry.compile(tapestry.softmax(x @ x), pipeline="weft-apply").lowered
    refusing(monkeypatch, lambda spec: spec.num_stages > 1)
    monkeypatch.setattr(climbing, "_NAMED", 1)
    given = RNG.normal(size=(64, 64)).astype(np.float32)
    PreparedKernels(module, TritonExecutor(device=Gpu()))([given])
    (record,) = caplog.records
    said = record.getMessage()
    assert re.match(r"@\w+ \(.*\) with .*; \d more: each does not compile for ", said)


def test_members_of_a_group_that_is_apart_are_named_as_they_are(monkeypatch, caplog):
    """Their kernels' comments say what they are apart from, too."""
    module = tapestry.compile(tapestry.softmax(tapestry.input("x", (64, 64)))).lowered
    group: list[str] = []

    def fails(spec: KernelSpec) -> bool:
        group.append(spec.name)
        return spec.name == group[0] or spec.num_stages > 1

    refusing(monkeypatch, fails)
    given = RNG.normal(size=(64, 64)).astype(np.float32)
    PreparedKernels(module, TritonExecutor(device=Gpu()))([given])
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2  # of the group, and of a member
    assert all(re.match(r"@\w+ \(.*\) with .*: does not compile for", one) for one in told)


def test_only_what_fails_is_made_again(monkeypatch):
    x = tapestry.input("x", (64, 64))
    module = tapestry.compile(tapestry.softmax(x @ x), pipeline="weft-apply,loom-simplify").lowered
    tried = refusing(monkeypatch, lambda s: "BLOCK_N" in dict(s.blocks) and s.num_stages > 1)
    PreparedKernels(module, TritonExecutor(device=Gpu()))
    first, second = tried
    changed = [a != b for a, b in zip(first, second, strict=True)]
    assert sum(changed) == 1


@pytest.mark.usefixtures("compiler")
def test_shared_memory_that_is_short_gives_way(caplog):
    """The real compiler says what a kernel takes; the device has less."""

    def small(device: Standing) -> None:
        device.shared = 8 * 1024

    made, _, gpu = run(program(), small)
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert len(gpu.devices) == 2
    assert "bytes of shared memory per block" in caplog.records[0].getMessage()


@pytest.mark.parametrize("code", [701, 209])
def test_a_refused_launch_gives_way(code, caplog):
    """Out of resources at the launch, or no image for the GPU: only the first try fails."""
    tries: list[Standing] = []

    def refuse(device: Standing) -> None:
        tries.append(device)
        if len(tries) == 1:
            device.codes = dict.fromkeys(device.signatures, code)

    made, prepared, _ = run(program(), refuse)
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert len(tries) == 2
    (record,) = caplog.records
    assert f"failed: CUDA error {code}; it runs with" in record.getMessage()
    prepared([X, W])
    assert len(tries) == 2


@pytest.mark.parametrize("code", [700, 710, 719])
def test_a_failure_that_may_have_left_wrong_numbers_is_an_error(code):
    def fail(device: Standing) -> None:
        device.codes = dict.fromkeys(device.signatures, code)

    with pytest.raises(GpuError, match=f"@?.* failed: CUDA error {code}"):
        run(program(), fail)


def test_a_launch_that_is_refused_on_each_rung_is_one_message(caplog):
    def refuse(device: Standing) -> None:
        device.codes = dict.fromkeys(device.signatures, 701)

    made, _, _ = run(program(), refuse)
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    (record,) = caplog.records
    assert "nor does it run with the smallest schedule" in record.getMessage()
    assert "it runs on numpy, slowly" in record.getMessage()


def test_without_a_fallback_no_later_call_runs_on_numpy():
    def refuse(device: Standing) -> None:
        device.codes = dict.fromkeys(device.signatures, 701)

    prepared = PreparedKernels(program(), TritonExecutor(device=Gpu(refuse), fallback=False))
    for _ in range(2):
        with pytest.raises(GpuError, match="nor does it run with the smallest schedule"):
            prepared([X, W])


def test_memory_that_is_short_at_a_launch_leaves_the_program_to_numpy(caplog):
    """As where the driver makes room for a kernel when it is first launched."""

    def short(device: Standing) -> None:
        device.codes = dict.fromkeys(device.signatures, 2)

    made, prepared, gpu = run(program(), short)
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    (record,) = caplog.records
    assert "failed: CUDA error 2; it runs on numpy, slowly\n  hint: free" in record.getMessage()
    assert len(gpu.devices) == 1  # another schedule would not help
    gpu.devices[0].codes = {}
    prepared([X, W])
    assert gpu.devices[0].launched


@pytest.mark.parametrize("error", [MemoryShortError, OldDriverError])
def test_what_is_no_schedules_fault_is_said_at_once(error, caplog, monkeypatch):
    def function(*_: Any) -> None:
        what = "kernel a cannot be loaded"
        raise error(what) if error is MemoryShortError else error(what, 200)

    monkeypatch.setattr(Standing, "function", function)
    made, _, gpu = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    (record,) = caplog.records
    assert "GPU: kernel a cannot be loaded; it runs on numpy, slowly" in record.getMessage()
    assert "schedule" not in record.getMessage()
    assert len(gpu.devices) == 1


def test_what_numpy_computes_is_in_no_graph(caplog, monkeypatch):
    def short(device: Standing) -> None:
        device.short = 1

    def refuse(device: Standing) -> None:
        device.capability = lambda: 70  # type: ignore[method-assign]

    monkeypatch.setattr(Gpu, "is_capturing", lambda _: True)
    for change, said in ((short, "bytes of GPU memory"), (refuse, "when it was prepared")):
        with pytest.raises(GpuError, match=f"{said}.* a CUDA graph holds nothing"):
            run(program(), change)
    (record,) = caplog.records
    assert "this GPU is sm_70" in record.getMessage()


def test_what_ran_is_what_numpy_ran():
    def refuse(device: Standing) -> None:
        device.codes = dict.fromkeys(device.signatures, 2)

    executor = TritonExecutor(device=Gpu(refuse))
    result = executor.run(program(), {"x": X, "w": W}, NoWatch())
    want = find_executor("numpy").run(program(), {"x": X, "w": W}, NoWatch())
    assert [one.name for one in result.records] == [one.name for one in want.records]
    assert all(one.seconds > 0 for one in result.records)


def test_memory_that_is_short_leaves_the_program_to_numpy(caplog):
    def short(device: Standing) -> None:
        device.short = 1

    made, prepared, gpu = run(program(), short)
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert "it runs on numpy, slowly" in caplog.records[0].getMessage()
    gpu.devices[0].short = None
    prepared([X, W])
    assert gpu.devices[0].launched  # the GPU is tried again at the next call
    with pytest.raises(GpuError, match="bytes of GPU memory"):
        run(program(), short, fallback=False)


def test_inputs_that_do_not_fit_leave_the_program_to_numpy(caplog, monkeypatch):
    class OutOfMemoryError(RuntimeError):
        pass

    gpu = Gpu()
    run = PreparedKernels(program(), TritonExecutor(device=gpu))

    def put(_: np.ndarray) -> None:
        left = f"GPU 0 has a total capacity of 80 GiB of which {next(free)} is free."
        raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate 9 GiB. {left}\nMore of it.")

    free = iter(range(2))
    monkeypatch.setattr(gpu, "put", put)
    for _ in range(2):
        np.testing.assert_allclose(run([X, W])[0], WANT, rtol=1e-4, atol=1e-5)
    (_,) = caplog.records  # also where other bytes are free
    assert "Tried to allocate 9 GiB; it runs on numpy" in caplog.records[0].getMessage()


def test_a_gpu_that_failed_before_is_an_error(monkeypatch):
    gpu = Gpu()
    run = PreparedKernels(program(), TritonExecutor(device=gpu))

    def get(_: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with")

    monkeypatch.setattr(gpu, "get", get)
    with pytest.raises(GpuError, match="the GPU failed: CUDA error: an illegal memory access"):
        run([X, W])


def test_an_old_gpu_leaves_the_program_to_numpy(caplog):
    def old(device: Standing) -> None:
        device.capability = lambda: 70  # type: ignore[method-assign]

    made, _, _ = run(program(), old)
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert "this GPU is sm_70" in caplog.records[0].getMessage()
    with pytest.raises(GpuError, match="sm_80 or newer"):
        run(program(), old, fallback=False)


@pytest.mark.usefixtures("compiler")
def test_an_assembler_that_fails_leaves_the_program_to_numpy(monkeypatch, tmp_path, caplog):
    """The real compiler, with a ptxas that refuses everything."""
    broken = tmp_path / "ptxas"
    version = '[ "$1" = --version ] && echo release 12.9, V12.9.86 && exit 0'
    broken.write_text(f"#!/bin/sh\n{version}\necho ptxas fatal: broken >&2\nexit 255\n")
    broken.chmod(broken.stat().st_mode | stat.S_IEXEC)
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        monkeypatch.setenv(name, str(broken))
    made, _, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    said = [record.getMessage() for record in caplog.records]
    (text,) = said
    assert "does not compile for sm_90: ptxas fatal: broken" in text
    assert "nor does it run with the smallest schedule" in text
    assert "it runs on numpy, slowly" in text
    with pytest.raises(aot.CompileError, match="does not compile for sm_90"):
        run(program(), fallback=False)


@pytest.mark.usefixtures("compiler")
def test_a_compiler_that_dies_is_an_answer(monkeypatch, tmp_path):
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nkill -SEGV $$\n")
    dying.chmod(dying.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setattr(aot.sys, "executable", str(dying))
    with pytest.raises(aot.CompileError, match="the compiler died of signal 11"):
        run(program(), fallback=False)


@pytest.mark.usefixtures("compiler")
def test_a_compiler_that_is_not_there_is_said_once(monkeypatch, tmp_path, caplog):
    """It is no kernel's fault, so no kernel is made again."""
    missing = tmp_path / "python"
    missing.write_text("#!/bin/sh\necho ModuleNotFoundError: no module triton >&2\nexit 1\n")
    missing.chmod(missing.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setattr(aot.sys, "executable", str(missing))
    made, _, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    (record,) = caplog.records
    assert "no module triton; it runs on numpy" in record.getMessage()


def test_what_has_no_implementation_on_the_gpu_runs_on_numpy(caplog, monkeypatch):
    monkeypatch.delitem(externals._registered, ("sort", "torch"))
    gpu = Gpu()
    gpu.target = "torch"
    x = tapestry.input("x", (4, 8))
    module = tapestry.compile(x.sort(axis=1)[0]).lowered
    array = RNG.normal(size=(4, 8)).astype(np.float32)
    (made,) = PreparedKernels(module, TritonExecutor(device=gpu))([array])
    np.testing.assert_array_equal(made, np.sort(array, axis=1))
    assert "no implementation of @sort is registered for torch" in caplog.records[0].getMessage()
    with pytest.raises(GpuError, match="no implementation"):
        PreparedKernels(module, TritonExecutor(device=gpu, fallback=False))


def test_a_schedule_that_is_illegal_is_the_users_to_change():
    with pytest.raises(InvalidProgramError, match="has tile axes M, N, K"):
        run(program("P = 64"))


def test_the_executor_follows_what_is_compiled():
    gpu = Gpu()
    executor = TritonExecutor(device=gpu)
    result = executor.run(program(), {"x": X, "w": W}, NoWatch())
    np.testing.assert_allclose(result.outputs[0], WANT, rtol=1e-4, atol=1e-5)
    (record,) = result.records
    assert record.bytes_written == WANT.nbytes
    assert record.seconds > 0


@pytest.mark.parametrize("rung", [Rung.SMALL, Rung.APART])
def test_every_rung_of_attention_gives_the_same(rung):
    q, k, v = (tapestry.input(name, (2, 40, 16)) for name in "qkv")
    weights = tapestry.softmax(q @ k.transpose((0, 2, 1)))
    module = tapestry.compile(weights @ v).lowered
    given = {n: RNG.normal(size=(2, 40, 16)).astype(np.float32) for n in "qkv"}
    executor, cpu = TritonExecutor(), Cpu()
    (want,) = executor.run(module, given, NoWatch()).outputs
    names = {task.name for task in tasks(module)}
    printed = executor.printed(module, cpu, dict.fromkeys(names, rung))
    plain = executor.printed(module, cpu)
    assert (len(printed.kernels) > len(plain.kernels)) == (rung == Rung.APART)
    with cpu.session():
        call = cpu.prepared(printed, {})
        (made,) = call([cpu.put(array) for array in given.values()])
    np.testing.assert_allclose(made.array, want, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(
    "task",
    [
        Task("a", "map", {"P": 5}),
        Task("a", "fold", {"P": 500, "K": 9000}),
        Task("a", "fold", {"P": 500, "K": 9000}, ordered=True),
        Task("a", "contraction", {"M": 3, "N": 5000, "K": 7}),
        Task("a", "group", {"M": 3, "N": 80, "K": 7, "C": 40}, dots=True, held=frozenset({"N"})),
        Task("a", "group", {"M": 3, "N": 80, "K": 700}, held=frozenset({"N"}), walks=2),
    ],
)
def test_the_smallest_schedule_is_legal(task):
    assert is_legal(task, smallest(task))


def test_a_kernel_that_spills_gives_way_to_the_next_schedule(monkeypatch, tmp_path, caplog):
    """So it does in a process that finds the program lowered, and nothing is tried again there."""
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPESTRY_CACHE", "lowered,refused")
    tried: list[tuple[Any, ...]] = []

    def spilling(path: Path, specs: Sequence[KernelSpec], **options: Any) -> Any:
        tried.append((specs[0].blocks, specs[0].num_warps, specs[0].num_stages))
        made = compiled_at_once(path, specs, **options)
        return tuple(replace(one, spills=4 if tried[-1] == tried[0] else 0) for one in made)

    monkeypatch.setattr(compiled, "compile_kernels", spilling)
    monkeypatch.setattr(Gpu, "model", "h200")
    for _ in range(2):
        made, _, _ = run(program())
        np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    first, second, again = tried
    assert first != second
    assert again == second
    (record,) = caplog.records
    assert "spills 4 bytes" in record.getMessage()

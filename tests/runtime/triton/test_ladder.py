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
from tapestry.codegen import aot, aot_processes, climbing
from tapestry.codegen.aot_jobs import CompileError
from tapestry.codegen.specs import KernelSpec
from tapestry.diagnostics import InvalidProgramError
from tapestry.passes.triton.schedules.rungs import Rung, smallest
from tapestry.passes.triton.schedules.schedule import is_legal
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.tasks import tasks
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.prepared.kernels import PreparedKernels
from tapestry.runtime.triton import compiled
from tapestry.runtime.triton.compiled import GpuError
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu, Standing, compiled_at_once
from tests.runtime.triton.laddering import RNG, WANT, W, X, program, run

pytestmark = pytest.mark.usefixtures("compiled_apart")


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
        rf"@\w+ \(.*laddering.py:\d+\) with {given}: does not compile for sm_90: X; "
        "it runs with the default schedule",
        said,
    )
    assert hint.startswith("  hint: ")


def test_the_default_gives_way_to_one_stage(monkeypatch, caplog):
    tried = refusing(monkeypatch, lambda spec: spec.num_stages > 1)
    made, _, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    first, second = tried
    assert first == second
    (record,) = caplog.records
    assert "; it runs with the default schedule, with one stage\n" in record.getMessage()


def test_one_stage_gives_way_to_the_smallest(monkeypatch, caplog):
    tried = refusing(monkeypatch, lambda spec: dict(spec.blocks)["BLOCK_M"] > 16)
    made, _, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert tried[-1] == [{"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16}]
    assert len(tried) == 3
    (record,) = caplog.records
    assert "; it runs with the smallest schedule\n" in record.getMessage()


def test_the_last_rung_multiplies_no_tiles(monkeypatch, caplog):
    tried = refusing(monkeypatch, lambda spec: "BLOCK_N" in dict(spec.blocks))
    made, prepared, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert len(tried) == 4
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
    tried = refusing(monkeypatch, lambda spec: dict(spec.blocks).get("BLOCK_N", 0) > 16)
    PreparedKernels(module, TritonExecutor(device=Gpu()))
    first, *_, second = tried
    changed = [a != b for a, b in zip(first, second, strict=True)]
    assert sum(changed) == 1


@pytest.mark.usefixtures("compiler")
def test_shared_memory_that_is_short_gives_way(caplog):
    """The real compiler says what a kernel takes; the device has less."""

    def small(device: Standing) -> None:
        device.shared = 8 * 1024

    made, _, gpu = run(program(), small)
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    assert len(gpu.devices) == 3
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


def test_a_gpu_that_failed_before_is_an_error(monkeypatch):
    gpu = Gpu()
    run = PreparedKernels(program(), TritonExecutor(device=gpu))

    def get(_: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with")

    monkeypatch.setattr(gpu, "get", get)
    with pytest.raises(GpuError, match="the GPU failed: CUDA error: an illegal memory access"):
        run([X, W])


@pytest.mark.usefixtures("compiler")
def test_a_compiler_that_dies_is_an_answer(monkeypatch, tmp_path):
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nkill -SEGV $$\n")
    dying.chmod(dying.stat().st_mode | stat.S_IEXEC)
    aot_processes.end_all()
    monkeypatch.setattr(aot_processes.sys, "executable", str(dying))
    with pytest.raises(aot.CompileError, match="the compiler died of signal 11"):
        run(program(), fallback=False)


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


def test_a_kernel_that_is_compiled_wrongly_gives_way_to_the_next_schedule(monkeypatch, caplog):
    """Not to the default one: with another that is chosen it may be right, and as fast."""
    monkeypatch.setenv("TAPESTRY_CACHE", "0")
    tried: list[tuple[Any, ...]] = []

    def wrong(path: Path, specs: Sequence[KernelSpec], **options: Any) -> Any:
        tried.append((specs[0].blocks, specs[0].num_warps, specs[0].num_stages))
        if len(tried) == 1:
            said = {specs[0].name: "would be wrong"}
            wrong = {(specs[0].name, 90): "would be wrong"}
            raise CompileError("would be wrong", said, miscompiled=wrong)
        return compiled_at_once(path, specs, **options)

    monkeypatch.setattr(compiled, "compile_kernels", wrong)
    monkeypatch.setattr(Gpu, "model", "h200")
    made, _, _ = run(program())
    np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
    first, second = tried
    assert first != second
    (record,) = caplog.records
    assert "would be wrong; the cost model chooses it no more" in record.getMessage()

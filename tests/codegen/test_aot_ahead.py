"""Kernels that are compiled while their program is lowered: asked once, and never instead."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

import tapestry as t
from tapestry.codegen import aot_ahead
from tapestry.codegen.aot import CompileError, compile_kernels
from tapestry.codegen.aot_ahead import compiling_ahead
from tapestry.codegen.aot_jobs import Job
from tapestry.codegen.module_files import write_module
from tapestry.codegen.module_printer import PrintedModule, print_module
from tapestry.codegen.specs import KernelSpec
from tapestry.dialects import loom, triton
from tapestry.frontend import make_context
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.store import Store


class Asked:
    """Answers jobs in place of processes; those begun wait while `waits` is not set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.waits = threading.Event()
        self.waits.set()
        self.error = ""
        monkeypatch.setattr(Job, "asked", lambda job: self(job))

    def __call__(self, job: Job) -> Mapping[str, Any]:
        self.names.append(f"{job.kernel.name} {job.target}")
        assert self.waits.wait(20)
        about = {"name": job.kernel.name, "target": job.target}
        if self.error:
            return {**about, "error": self.error}
        numbers = {"scratch": 0, "registers": 32, "spills": 0, "shared": 0}
        texts = {"ptx": job.unit, "cubin": "", "warnings": [], "overwritten": []}
        return {**about, **numbers, **texts}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Asked]:
    monkeypatch.setattr(aot_ahead, "find_store", lambda _: Store(tmp_path / "aot"))
    ahead = aot_ahead._Ahead()  # with threads of its own
    monkeypatch.setattr(aot_ahead, "_ahead", ahead)
    made = Asked(monkeypatch)
    yield made
    made.waits.set()
    # None may ask the next test's compiler.
    assert not wait(list(ahead.jobs.values()), timeout=20).not_done


def _program(rows: int = 256) -> t.Expr:
    """A norm, a linear layer and attention: kernels of every kind that is begun."""
    x = t.input("x", (rows, 512), "bf16")
    h = t.rms_norm(x, t.input("g", (512,), "bf16")) @ t.input("w", (512, 512), "bf16")
    q, k, v = (h + n for n in range(3))
    return t.softmax(q @ k.T) @ v


def _lowered(made: Any, out: Any = None) -> PrintedModule:
    module = t.compile(_program() if out is None else out, pipeline="default").lowered.clone()
    LoomToTriton(device="h200").lower(make_context(), module, made=made)
    return print_module(module)


def _compiled(printed: PrintedModule, tmp_path: Path, **options: Any) -> list[str]:
    path = write_module(printed.source, tmp_path)
    made = compile_kernels(path, printed.kernels, cache=tmp_path / "aot", workers=2, **options)
    return [f"{one.name} {one.target}" for one in made]


def test_every_kernel_is_begun_ahead_and_asked_for_once(asked: Asked, tmp_path: Path) -> None:
    with compiling_ahead((90, 80), 2) as made:
        printed = _lowered(made)
        asked.waits.wait()
    found = _compiled(printed, tmp_path, targets=(90, 80))
    assert len(found) == 2 * len(printed.kernels) > 2
    assert sorted(asked.names) == sorted(found)
    # What is kept is not begun again.
    with compiling_ahead((90, 80), 2) as made:
        _lowered(made)
    assert sorted(asked.names) == sorted(found)


def test_what_was_begun_is_waited_for_and_the_rest_is_run_beside_it(
    asked: Asked, tmp_path: Path
) -> None:
    asked.waits.clear()
    with compiling_ahead((90,), 2) as made:
        printed = _lowered(made)
    begun = set(aot_ahead._ahead.jobs)
    assert len(begun) == len(printed.kernels)
    threading.Timer(0.2, asked.waits.set).start()
    # sm_80 was not asked for ahead.
    found = _compiled(printed, tmp_path, targets=(90, 80))
    assert sorted(asked.names) == sorted(found)
    assert len(found) == 2 * len(begun)
    assert not aot_ahead._ahead.jobs


def test_another_program_with_a_kernel_does_not_compile_it_again(
    asked: Asked, tmp_path: Path
) -> None:
    x = t.input("x", (64, 4096))
    first = _lowered(None, t.softmax(x))
    other = _lowered(None, (t.softmax(x), x @ t.input("w", (4096, 512))))
    shared = {spec.name for spec in first.kernels} & {spec.name for spec in other.kernels}
    assert shared
    _compiled(first, tmp_path)
    found = _compiled(other, tmp_path)
    assert len(asked.names) == len(first.kernels) + len(found) - len(shared)


def test_a_kernel_that_is_refused_is_refused_in_the_end(asked: Asked, tmp_path: Path) -> None:
    asked.error = "no such thing"
    with compiling_ahead((90,), 2) as made:
        printed = _lowered(made)
    with pytest.raises(CompileError, match="does not compile for sm_90: no such thing") as error:
        _compiled(printed, tmp_path)
    assert len(error.value.kernels) == len(printed.kernels)
    # Nobody was asked twice, though a refusal is not kept; the next one is asked anew.
    assert len(asked.names) == len(printed.kernels)
    assert not aot_ahead._ahead.jobs
    asked.error = ""
    assert len(_compiled(printed, tmp_path)) == len(printed.kernels)


def test_what_is_not_begun_when_lowering_fails_is_given_up(asked: Asked) -> None:
    asked.waits.clear()
    with pytest.raises(RuntimeError), compiling_ahead((90,), 1) as made:
        _lowered(made)
        raise RuntimeError
    asked.waits.set()
    assert len(asked.names) == 1


def test_who_waits_for_what_is_given_up_compiles_it(asked: Asked, tmp_path: Path) -> None:
    asked.waits.clear()
    spec = KernelSpec("one", (), (), 4, 1)
    jobs = [Job(str(n), spec, 90, Store(tmp_path / "aot")) for n in range(2)]
    futures = [aot_ahead._ahead.begin(job, 1) for job in jobs]
    timers = [threading.Timer(0.1, futures[1].cancel), threading.Timer(0.3, asked.waits.set)]
    for timer in timers:
        timer.start()
    assert [answer["ptx"] for answer in aot_ahead.answers_of(jobs, 1)] == ["0", "1"]


def test_a_process_that_is_forked_begins_anew(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its owner begun is done by threads that it does not have."""
    asked.waits.clear()
    job = Job("", KernelSpec("one", (), (), 4, 1), 90, Store(tmp_path / "aot"))
    before = aot_ahead._ahead
    before.begin(job, 1)
    with monkeypatch.context() as forked:
        forked.setattr(aot_ahead.os, "getpid", lambda: before.owner + 1)
        assert aot_ahead._of_this_process() is not before
        assert aot_ahead._of_this_process().find(job) is None
    monkeypatch.setattr(aot_ahead, "_ahead", before)


def test_where_nothing_is_kept_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aot_ahead, "find_store", lambda _: None)
    with compiling_ahead((90,), 2) as made:
        assert made is None


@pytest.mark.parametrize("keys", [512, 4096])
def test_what_alternatives_make_of_a_group_is_begun(
    keys: int, asked: Asked, tmp_path: Path
) -> None:
    """Attention over many keys is split: the kernels of its parts are begun, and nothing else."""
    q, k, v = (t.input(name, (n, 64), "bf16") for name, n in (("q", 64), ("k", keys), ("v", keys)))
    with compiling_ahead((90,), 2) as made:
        printed = _lowered(made, t.softmax(q @ k.T) @ v)
    assert sorted(asked.names) == sorted(_compiled(printed, tmp_path))


def test_a_group_that_is_made_with_more_care_is_not_begun_as_it_was(asked: Asked) -> None:
    """Its kernel may be one that a compiler has worked on in vain."""
    q, k, v = (t.input(name, (512, 64), "bf16") for name in "qkv")
    lowered = t.compile(t.softmax(q @ k.T) @ v, pipeline="default").lowered
    (group,) = (op for op in lowered.walk() if isinstance(op, loom.FusedOp))
    told: list[str] = []
    for rungs in ({}, {group.label.data: Rung.APART}):
        module = lowered.clone()
        told.clear()
        LoomToTriton(device="h200").lower(
            make_context(), module, rungs=rungs, made=lambda one, _: told.append(one.sym_name.data)
        )
        kernels = [op.sym_name.data for op in module.walk() if isinstance(op, triton.KernelOp)]
        assert set(told) == set(kernels)
    assert not asked.names


def test_another_cache_is_another_job(asked: Asked, tmp_path: Path) -> None:
    with compiling_ahead((90,), 2) as made:
        printed = _lowered(made)
    path, other = write_module(printed.source, tmp_path), tmp_path / "other"
    compile_kernels(path, printed.kernels, cache=other)
    assert len(list(other.iterdir())) == len(printed.kernels)
    assert len(asked.names) == 2 * len(printed.kernels)


def test_an_error_of_a_process_gives_up_the_rest(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.waits.clear()
    spec = KernelSpec("one", (), (), 4, 1)
    jobs = [Job(str(n), spec, 90, Store(tmp_path / "aot")) for n in range(4)]
    aot_ahead._ahead.begin(jobs[0], 1)

    def fails(job: Job) -> Mapping[str, Any]:
        asked.waits.wait(20)
        raise CompileError(f"no compiler for {job.unit}")

    monkeypatch.setattr(Job, "asked", fails)
    threading.Timer(0.1, asked.waits.set).start()
    with pytest.raises(CompileError, match="no compiler for"):
        aot_ahead.answers_of(jobs, 0)


def test_refusals_that_nobody_asks_for_are_not_kept_for_ever(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aot_ahead, "_KEPT", 2)
    asked.error = "no such thing"
    spec = KernelSpec("one", (), (), 4, 1)
    for n in range(6):
        aot_ahead._ahead.begin(Job(str(n), spec, 90, None), 1).result()
    aot_ahead._ahead.begin(Job("last", spec, 90, None), 1).result()
    assert len(aot_ahead._ahead.jobs) <= 3


_EXIT = """
import time
from tapestry.codegen import aot_ahead
from tapestry.codegen.aot_jobs import Job
from tapestry.codegen.specs import KernelSpec

Job.asked = lambda job: time.sleep(600)
for n in range(3):
    aot_ahead._ahead.begin(Job(str(n), KernelSpec("one", (), (), 4, 1), 90, None), 1)
"""


def test_a_process_that_ends_does_not_wait_for_kernels() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EXIT], timeout=120, check=True, stderr=subprocess.PIPE
    )
    assert done.stderr == b""


def test_products_are_begun_before_groups_are_chosen(asked: Asked) -> None:
    """First what nothing is chosen for but a schedule, then what takes a compiler longest."""
    q, k, v = (t.input(name, (512, 64), "bf16") for name in "qkv")
    out = (t.softmax(q @ k.T) @ v) @ t.input("w", (64, 256), "bf16")
    module = t.compile(out, pipeline="default").lowered.clone()
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))
    (product,) = (
        op
        for op in module.walk()
        if isinstance(op, loom.OperationOp) and op.fold_dims and op.parent_op() is not group
    )
    names = [product.label.data, group.label.data]
    told: list[str] = []
    LoomToTriton(device="h200").lower(
        make_context(), module, made=lambda one, _: told.append(one.sym_name.data)
    )
    assert told == [*names, *reversed(names)]  # and once more as the program itself is lowered
    assert not asked.names

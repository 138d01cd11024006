"""Processes that compile: started first, kept for the next kernel, and not longer than needed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tapestry as t
from tapestry.codegen import aot, aot_processes, bundle
from tapestry.codegen.aot import CompileError, compile_kernels, prepare_compiling
from tapestry.codegen.aot_processes import Compiler, CompilerDiedError, compiler, end_all, prepare
from tapestry.codegen.specs import KernelSpec
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.triton import executor as executor_module
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu


@pytest.fixture(autouse=True)
def _none_before() -> Iterator[None]:
    end_all()
    yield
    end_all()


def _there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _pid(process: Compiler) -> int:
    return process._process.pid


def _soon(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def _kernel(path: Path, stored: str, line: str = "") -> tuple[Path, KernelSpec]:
    path.write_text(
        "import os, time\nimport triton\nimport triton.language as tl\n\n"
        f"{line}\n\n\n@triton.jit\ndef plain(x_ptr, BLOCK: tl.constexpr):\n"
        f"    tl.store(x_ptr + tl.arange(0, BLOCK), {stored})\n"
    )
    return path, KernelSpec("plain", (("x_ptr", "*fp32"),), (("BLOCK", 16),), 4, 1)


def test_what_was_started_first_is_taken_and_kept() -> None:
    prepare(2)
    assert len(aot_processes._idle) == 2
    started = [_pid(one) for one in aot_processes._idle]
    with compiler() as one, compiler() as other, compiler() as third:
        assert [_pid(one), _pid(other)] == started
        assert _pid(third) not in started
    with compiler() as again:
        assert _pid(again) in [*started, _pid(third)]
    prepare(3)
    assert len(aot_processes._idle) == 3


def test_another_environment_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(1)
    (before,) = map(_pid, aot_processes._idle)
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    with compiler() as process:
        assert _pid(process) != before
        assert not _there(before)


def test_one_that_has_ended_is_not_taken() -> None:
    prepare(1)
    (one,) = aot_processes._idle
    one._process.kill()
    one._process.wait()
    with compiler() as other:
        assert other is not one


def test_one_that_waits_too_long_ends_and_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aot_processes, "PATIENCE", 0.0)
    prepare(1)
    (one,) = aot_processes._idle
    with compiler() as other:
        assert other is not one
    assert not _there(_pid(one))


def test_one_that_nothing_is_asked_of_ends() -> None:
    """By itself: where it was started from may be gone, or busy."""
    code = (
        "from tapestry.codegen import aot_processes, aot_worker\n"
        "aot_worker.PATIENCE = 0.1\naot_worker.main()"
    )
    environment = aot_processes._environment()
    done = subprocess.Popen([sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE)
    assert done.wait(60) == 0


def test_they_end_with_the_process_that_started_them() -> None:
    code = (
        "from tapestry.codegen import aot_processes as p\np.prepare(2)\n"
        "print(*(f'{one._process.pid} {one._folder}' for one in p._idle), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    started = [line.split(" ") for line in done.stdout.splitlines()]
    assert len(started) == 2
    assert done.stderr == ""
    for pid, folder in started:
        assert _soon(lambda pid=int(pid): not _there(pid))
        assert not Path(folder).exists()


def test_a_process_that_is_forked_does_not_ask_what_its_owner_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with compiler() as first:
        pass
    own = os.getpid()
    with monkeypatch.context() as forked:
        forked.setattr(aot_processes.os, "getpid", lambda: own + 1)
        with compiler() as second:
            assert second is not first
        end_all()
    first.end()


def test_a_process_that_is_forked_leaves_them_to_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    with compiler() as process:
        own = os.getpid()
        with monkeypatch.context() as forked:
            forked.setattr(aot_processes.os, "getpid", lambda: own + 1)
            process.end()
        assert process._process.poll() is None


def test_the_next_kernel_is_compiled_by_the_same_process(tmp_path: Path) -> None:
    path, spec = _kernel(tmp_path / "kernels.py", "1.0")
    (first,) = compile_kernels(path, [spec])
    (before,) = map(_pid, aot_processes._idle)
    # The file is read again: what it holds is another kernel.
    (second,) = compile_kernels(*_changed(path))
    assert [_pid(one) for one in aot_processes._idle] == [before]
    end_all()
    (anew,) = compile_kernels(*_changed(path))
    assert second.ptx == anew.ptx
    assert second.ptx != first.ptx


def _changed(path: Path) -> tuple[Path, list[KernelSpec]]:
    path, spec = _kernel(path, "2.0")
    return path, [spec]


def test_one_that_died_is_not_kept(tmp_path: Path) -> None:
    path, spec = _kernel(tmp_path / "kernels.py", "1.0", "os.abort()")
    with pytest.raises(CompileError, match="plain does not .*: the compiler died of signal 6"):
        compile_kernels(path, [spec])
    assert not aot_processes._idle
    path, spec = _kernel(tmp_path / "kernels.py", "1.0")
    (made,) = compile_kernels(path, [spec])
    assert made.cubin


def test_why_one_ended_is_its_last_line() -> None:
    with pytest.raises(CompilerDiedError, match="no_such_kernel") as found, compiler() as process:
        process.ask(
            {"path": __file__, "cache": None, "kernel": {"name": "no_such_kernel"}, "targets": [90]}
        )
    assert found.value.status == 1


def test_as_many_are_started_as_have_something_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(aot, "prepare", asked.append)
    prepare_compiling(3, workers=8)
    prepare_compiling(20, workers=8)
    assert asked == [3, 8]


def test_they_start_before_a_program_is_lowered_but_not_where_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    lower = LoomToTriton.lower

    def lowered(*given: object, **options: object) -> None:
        order.append("lower")
        lower(*given, **options)  # type: ignore[arg-type]

    def started(_: int, __: int) -> None:
        order.append("start")

    for module in (executor_module, bundle):
        monkeypatch.setattr(module, "prepare_compiling", started)
    monkeypatch.setattr(LoomToTriton, "lower", lowered)
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPESTRY_CACHE", "1")
    module = t.compile(t.input("x", (64,), "f32") * 2, on="numpy").lowered
    for _ in range(2):
        TritonExecutor().lowered(module, Gpu())
    assert order == ["start", "lower"]
    for name in ("first", "second"):
        bundle.compile_bundle(module, tmp_path / name)
    assert order == ["start", "lower"] * 2

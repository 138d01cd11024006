"""What a GPU cannot run, numpy does: why is said once, and it is an error without a fallback."""

from __future__ import annotations

import stat
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.codegen import aot, aot_processes
from tapestry.codegen.driver import MemoryShortError, OldDriverError
from tapestry.runtime import externals
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared.kernels import PreparedKernels
from tapestry.runtime.triton.compiled import GpuError
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu, Standing
from tests.runtime.triton.laddering import RNG, WANT, W, X, program, run

pytestmark = pytest.mark.usefixtures("compiled_apart")


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
def test_a_compiler_that_is_not_there_is_said_once(monkeypatch, tmp_path, caplog):
    """It is no kernel's fault, so no kernel is made again."""
    missing = tmp_path / "python"
    missing.write_text("#!/bin/sh\necho ModuleNotFoundError: no module triton >&2\nexit 1\n")
    missing.chmod(missing.stat().st_mode | stat.S_IEXEC)
    aot_processes.end_all()
    monkeypatch.setattr(aot_processes.sys, "executable", str(missing))
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

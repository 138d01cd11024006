"""What runs only with a GPU, on one that is pretended: see `cuda.py`.

Kernels are compiled for sm_90, loaded and launched through C functions of the driver's types, on
tensors that say that they are on the GPU; what the driver gets is held against the cubins.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapestry

torch = pytest.importorskip("torch")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler to build a driver with", allow_module_level=True)
if torch.cuda.is_available():
    pytest.skip("there is a real GPU", allow_module_level=True)

from tapestry.codegen.bundle import compile_bundle  # noqa: E402
from tapestry.codegen.driver import Cuda as CudaDevice  # noqa: E402
from tapestry.dialects.triton import Schedule  # noqa: E402
from tapestry.passes.triton.loom_to_triton import LoomToTriton  # noqa: E402
from tapestry.passes.triton.schedules.measured import keep_measured  # noqa: E402
from tapestry.passes.triton.tasks import give  # noqa: E402
from tapestry.runtime.triton.devices import Gpu, find_device  # noqa: E402
from tapestry.tuning import jobs_of, programs, settled  # noqa: E402
from tapestry.tuning.cuda import CudaBench, sustained_seconds  # noqa: E402
from tapestry.tuning.programs import find_bench  # noqa: E402
from tests.pretending.cuda import Cuda, Pretended, Stream, pretended  # noqa: E402
from tests.pretending.driver import PretendDriver  # noqa: E402

RNG = np.random.default_rng(11)


@pytest.fixture
def gpu(tmp_path: Path) -> Iterator[PretendDriver]:
    with pretended(tmp_path) as driver:
        yield driver
    assert driver.problems == []


def cells(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def there(array: np.ndarray) -> Any:
    return torch.from_numpy(array).to("cuda")


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("shards", [None, 3])
def test_a_program_of_arrays(gpu: PretendDriver, shards: int | None) -> None:
    assert find_device().capability is not None
    x, w = tapestry.input("x", (20, 33)), tapestry.input("w", (33, 12))
    program = tapestry.compile(tapestry.softmax(x @ w).sum(axis=0), on="triton")
    program = program if shards is None else program.sharded(shards=shards)
    given = {"x": cells(20, 33), "w": cells(33, 12)}
    want = softmax(given["x"] @ given["w"]).sum(0)
    for _ in range(2):
        np.testing.assert_allclose(program(**given), want, rtol=1e-4)
    assert gpu.launches


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int8", "int64", "bool", "uint16"]
)
def test_every_dtype_gets_there_and_back(gpu: PretendDriver, dtype: str) -> None:
    x = tapestry.input("x", (5, 8), dtype)
    given = RNG.integers(0, 2, (5, 8)).astype(getattr(ml_dtypes, dtype, dtype))
    got = tapestry.compile(x.transpose((1, 0)), on="triton")(x=given)
    assert got.dtype == given.dtype
    np.testing.assert_array_equal(got.astype("f4"), given.T.astype("f4"))
    assert len(gpu.launches) == 1


def test_floats_of_8_bits_get_there_and_back(gpu: PretendDriver) -> None:
    device = find_device()
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        given = cells(3, 5).astype(kind)
        tensor = device.put(given)
        assert isinstance(tensor, Pretended)
        assert str(tensor.dtype) == f"torch.{given.dtype}"
        np.testing.assert_array_equal(device.get(tensor).view("u1"), given.view("u1"))
    assert not gpu.launches


def test_tensors_without_dimensions_and_without_cells(gpu: PretendDriver) -> None:
    x, y = tapestry.input("x", ()), tapestry.input("y", (4,))
    got = tapestry.compile(x * y, on="triton")(x=np.float32(3), y=cells(4))
    assert got.shape == (4,)
    empty = tapestry.compile(tapestry.input("x", (0, 4)).sum(axis=0) + 1, on="triton")
    np.testing.assert_array_equal(empty(x=np.zeros((0, 4), "f4")), np.ones(4))
    assert gpu.launches


def layers() -> tuple[Any, list[np.ndarray]]:
    weights = [cells(32, 32) / 6 for _ in range(3)]
    y = tapestry.input("x", (20, 32))
    for w in weights:
        y = tapestry.softmax(y @ w)
    return y, weights


def loaded(folder: Path, **options: Any) -> Any:
    spec = importlib.util.spec_from_file_location("load_pretended", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load(folder, **options)


@pytest.mark.parametrize("graphs", [False, True])
def test_a_folder_on_streams_and_graphs(gpu: PretendDriver, tmp_path: Path, graphs: bool) -> None:
    y, weights = layers()
    compile_bundle(tapestry.compile(y).lowered, tmp_path / "out")
    program = loaded(tmp_path / "out", graphs=graphs)

    def want(x: Any) -> np.ndarray:
        array = x.cpu().numpy()
        for w in weights:
            array = softmax(array @ w)
        return array

    for _ in range(4):
        x = there(cells(20, 32))
        np.testing.assert_allclose(program(x).cpu(), want(x), rtol=1e-4)
    strided = there(cells(32, 20)).t()
    np.testing.assert_allclose(program(strided).cpu(), want(strided), rtol=1e-4)
    off = there(cells(641))[1:].reshape(20, 32)
    assert off.data_ptr() % 16
    np.testing.assert_allclose(program(off).cpu(), want(off), rtol=1e-4)
    out = torch.empty((20, 32), device="cuda")
    program(x, out=out)
    with Cuda.stream(Stream()):
        elsewhere = program(x=x)
    torch.testing.assert_close(out.cpu(), elsewhere.cpu())
    with pytest.raises(TypeError, match="on cpu, and the program on another"):
        program(x.cpu())
    assert len({launch.stream for launch in gpu.launches}) > 1


def test_views_that_are_negated_when_they_are_read(gpu: PretendDriver, tmp_path: Path) -> None:
    """As the imaginary part of a conjugate: its cells in memory have the other sign."""
    x = tapestry.input("x", (4, 8))
    compile_bundle(tapestry.compile(x * 3).lowered, tmp_path / "out")
    program, given = loaded(tmp_path / "out"), there(cells(4, 8))
    np.testing.assert_allclose(program(torch._neg_view(given)).cpu(), -3 * given.cpu().numpy())
    held = torch.empty((4, 8), device="cuda")
    program(given, out=torch._neg_view(held))
    np.testing.assert_allclose(held.cpu(), -3 * given.cpu().numpy())
    assert len(gpu.launches) == 2


def test_a_result_on_the_cpu_is_refused(gpu: PretendDriver, tmp_path: Path) -> None:
    """A kernel would write to where it is, as an address of the GPU's."""
    compile_bundle(tapestry.compile(tapestry.input("x", (4, 8)) * 3).lowered, tmp_path / "out")
    with pytest.raises(TypeError, match="out is on cpu, and the program on another"):
        loaded(tmp_path / "out")(there(cells(4, 8)), out=torch.empty(4, 8))
    assert not gpu.launches


def test_descriptors_have_memory_in_the_arena(gpu: PretendDriver, tmp_path: Path) -> None:
    x, w = tapestry.input("x", (64, 64), "float16"), tapestry.input("w", (64, 64), "float16")
    module = tapestry.compile(x @ w).lowered
    (op,) = [op for op in module.walk() if op.name == "loom.operation"]
    give(op, Schedule.parse("M = 32, N = 32, K = 32, loads = descriptor"))
    bundle = compile_bundle(module, tmp_path / "out")
    a = cells(64, 64, dtype="float16")
    got = loaded(tmp_path / "out")(there(a), there(a))
    np.testing.assert_allclose(got.cpu(), a @ a, rtol=1e-2, atol=5e-2)
    (launch,) = gpu.launches
    *_, scratch, profile = launch.values
    assert len(launch.values) == 5
    assert scratch
    assert not profile
    (buffer,) = [one for one in bundle.plan.buffers if one.kind == "temporary"]
    assert buffer.offset % 128 == 0  # of a block that PyTorch aligns, as the hardware wants it
    assert bundle.plan.arena >= launch.programs * bundle.kernels[0].scratch > 0


def test_kernels_with_much_shared_memory_are_allowed_it(gpu: PretendDriver, tmp_path: Path) -> None:
    x = tapestry.input("x", (128, 256), "float16")
    w = tapestry.input("w", (256, 256), "float16")
    module = tapestry.compile(x @ w).lowered
    (op,) = [op for op in module.walk() if op.name == "loom.operation"]
    give(op, Schedule.parse("M = 128, N = 128, K = 64, warps = 8, stages = 3"))
    compile_bundle(module, tmp_path / "out")
    loaded(tmp_path / "out")(there(cells(128, 256, dtype="f2")), there(cells(256, 256, dtype="f2")))
    (launch,) = gpu.launches
    assert launch.shared > 48 * 1024


def test_a_capture_that_fails_gives_the_stream_back(gpu: PretendDriver) -> None:
    device, before = CudaDevice(), torch.cuda.current_stream()
    x = there(cells(4))
    with pytest.raises(RuntimeError, match="when stream is capturing"):
        device.capture(lambda: [x.cpu()])
    assert torch.cuda.current_stream() is before
    replay, (y,) = device.capture(lambda: [x.clone()])
    replay()
    np.testing.assert_array_equal(y.cpu(), x.cpu())
    assert torch.cuda.current_stream() is before
    # What cannot be captured is timed as it is.
    assert sustained_seconds(torch, [lambda: x.cpu()]) > 0
    assert torch.cuda.current_stream() is before
    assert not gpu.launches


def test_a_device_stays_where_the_caller_goes_to_another(
    gpu: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = find_device()
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert device._where == "cuda:0"
    assert Gpu(torch)._where == "cuda:1"
    assert Gpu(torch, 0)._where == "cuda:0"
    assert not gpu.launches


def test_candidates_are_built_compared_and_timed(gpu: PretendDriver) -> None:
    module = tapestry.compile(tapestry.softmax(tapestry.input("x", (20, 33))), on="triton").lowered
    bench = CudaBench(torch, LoomToTriton(device="h200"))
    assert bench.device == "NVIDIA H200"
    assert bench.workers >= 1
    bench.compile(module)
    assert not gpu.launches
    candidate = bench.build(module)
    outputs = candidate.outputs()
    assert all(isinstance(one, Pretended) for one in outputs)
    assert bench.difference(outputs, outputs) == 0
    assert candidate.seconds() > 0
    assert gpu.launches  # as the executor launches them


def test_a_candidate_with_descriptors_is_built(gpu: PretendDriver) -> None:
    x, w = tapestry.input("x", (64, 64), "float16"), tapestry.input("w", (64, 64), "float16")
    found = find_bench(LoomToTriton())
    assert found is not None
    bench, like = found
    assert bench.lowering.device == like == "h200"
    program = tapestry.compile(x @ w, on="triton").lowered
    (job,) = jobs_of(settled(program, bench.lowering), bench.lowering)
    one = job.scheduled(Schedule.parse("M = 32, N = 32, K = 32, loads = descriptor"))
    wanted = bench.build(job.scheduled(job.untuned)).outputs()
    assert bench.difference(bench.build(one).outputs(), wanted) < 1e-2
    assert gpu.launches[-1].values[-2]  # the memory of descriptors


def test_whole_programs_run_as_the_executor_runs_them(gpu: PretendDriver) -> None:
    """With constants, and with the schedules that are kept with them, of their device alone."""
    y = (tapestry.input("x", (20, 33)) * cells(20, 33)).sum(axis=1)
    program = tapestry.compile(y, on="triton").lowered
    lowering = LoomToTriton(device="h200")
    bench = CudaBench(torch, lowering)
    (job,) = jobs_of(settled(program, lowering), lowering)
    other = next(one for one in job.candidates() if one.warps != job.untuned.warps)
    plain = bench.whole(program).outputs()
    counts = {one.threads for one in gpu.launches}
    gpu.launches.clear()
    for device, changes in (("h200", True), ("a100", False)):
        keep_measured(program, device, {job.place: other})
        assert bench.difference(bench.whole(program).outputs(), plain) < 1e-5
        assert ({one.threads for one in gpu.launches} != counts) is changes
        gpu.launches.clear()


def test_a_program_is_tuned_as_it_is_compiled(
    gpu: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two candidates are measured, and the program with the best and without it."""
    found = find_bench(LoomToTriton())
    assert found is not None
    times = iter(range(1000))
    bench = replace(found[0], clock=lambda: float(next(times)))
    monkeypatch.setattr(CudaBench, "workers", 0)
    monkeypatch.setattr(programs, "find_bench", lambda _: (bench, "h200"))
    x = cells(20, 33)
    program = tapestry.compile(tapestry.input("x", (20, 33)).sum(axis=1), on="triton", tune=2.5)
    np.testing.assert_allclose(program(x=x), x.sum(1), rtol=1e-4)
    assert gpu.launches

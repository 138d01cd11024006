"""Programs compiled for a GPU, on a device that stands in for one (see `standing.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapestry
from tapestry.frontend import parse_text
from tapestry.runtime.prepared.kernels import PreparedKernels
from tapestry.runtime.triton import compiled
from tapestry.runtime.triton.compiled import GpuError
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu, Standing, Tensor, aligned, compiled_at_once

RNG = np.random.default_rng(3)


def prepared(
    y: Any, change: Callable[[Standing], None] = lambda _: None, **shards: Any
) -> tuple[PreparedKernels, Gpu]:
    program = tapestry.compile(y)
    if shards:
        program = program.sharded(**shards)
    gpu = Gpu(change)
    executor = TritonExecutor(device=gpu, fallback=False)
    return PreparedKernels(program.lowered, executor), gpu


COMPILE = compiled.compile_kernels


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "compile_kernels", compiled_at_once)


def layers() -> Any:
    x = tapestry.input("x", (20, 24))
    for n in range(3):
        w = tapestry.input(f"w{n}", (24, 24))
        x = tapestry.softmax(x @ w)
    return x


def arrays() -> list[np.ndarray]:
    shapes = [(20, 24), *[(24, 24)] * 3]
    return [RNG.normal(size=shape).astype(np.float32) for shape in shapes]


def want(given: Sequence[np.ndarray]) -> np.ndarray:
    x, *weights = given
    for w in weights:
        x = np.exp(x @ w)
        x = x / x.sum(axis=1, keepdims=True)
    return x


def test_a_call_launches_what_was_compiled_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compiled, "compile_kernels", COMPILE)
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path))
    run, gpu = prepared(layers())
    (device,) = gpu.devices
    loaded = len(device.loaded)
    for _ in range(2):
        given = arrays()
        (made,) = run(given)
        np.testing.assert_allclose(made, want(given), rtol=2e-4, atol=1e-6)
    assert len(device.loaded) == loaded
    half = len(device.launched) // 2
    assert device.launched[:half] == device.launched[half:]


def test_results_of_calls_are_apart() -> None:
    run, _ = prepared(layers())
    first, second = arrays(), arrays()
    (a,), (b,) = run(first), run(second)
    np.testing.assert_allclose(a, want(first), rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(b, want(second), rtol=2e-4, atol=1e-6)


def test_an_input_off_16_bytes_is_moved() -> None:
    run, _ = prepared(layers())
    given = arrays()
    tensors = [Tensor(aligned(array, offset=4)) for array in given]
    (made,) = run.launch(tensors)
    np.testing.assert_allclose(made.array, want(given), rtol=2e-4, atol=1e-6)


def test_another_stream_is_launched_on() -> None:
    """The device asserts that what it gets is on its current stream."""
    run, gpu = prepared(layers())
    given = arrays()
    run(given)
    gpu.devices[0].queue = 11
    (made,) = run(given)
    np.testing.assert_allclose(made, want(given), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("case", ["fresh", "input", "strided", "odd"])
def test_results_are_written_to_tensors_of_the_caller(case: str) -> None:
    x = tapestry.input("x", (24, 24))
    _, gpu = prepared(tapestry.softmax(x @ x) @ x)
    array = RNG.normal(size=(24, 24)).astype(np.float32)
    given = Tensor(aligned(array))
    out = {
        "fresh": lambda: Tensor(aligned(np.zeros((24, 24), np.float32))),
        "input": lambda: given,
        "strided": lambda: Tensor(np.zeros((24, 48), np.float32)[:, ::2]),
        "odd": lambda: Tensor(aligned(np.zeros((24, 24), np.float32), offset=4)),
    }[case]()
    assert gpu.launches is not None
    (made,) = gpu.launches([given], [out])
    assert made is out
    weights = np.exp(array @ array)
    expected = (weights / weights.sum(axis=1, keepdims=True)) @ array
    np.testing.assert_allclose(out.array, expected, rtol=2e-4, atol=1e-5)


def test_a_result_of_another_shape_is_refused() -> None:
    _, gpu = prepared(layers())
    assert gpu.launches is not None
    tensors = [Tensor(aligned(array)) for array in arrays()]
    with pytest.raises(TypeError, match=r"float32 of shape \[20, 24\], and `out` has"):
        gpu.launches(tensors, [Tensor(aligned(np.zeros((20, 25), np.float32)))])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64", "int8"])
def test_states_are_filled_in_every_dtype(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = tapestry.input("x", (6, 40), dtype)
    run, gpu = prepared(x.max(axis=1), grid=(1, 2))
    array = RNG.integers(-100, 100, size=(6, 40)).astype(kind)
    for _ in range(2):
        (made,) = run([array])
        np.testing.assert_array_equal(made, array.max(axis=1))
    assert gpu.devices[0].filled


def test_empty_tensors_launch_nothing() -> None:
    x = tapestry.input("x", (0, 8))
    run, gpu = prepared(tapestry.relu(x) + 1)
    (made,) = run([np.empty((0, 8), np.float32)])
    assert made.shape == (0, 8)
    assert gpu.devices[0].launched == []


def test_inputs_and_constants_may_be_results() -> None:
    text = """
    func.func @main(%x: !loom.tensor<[0] : [2], f32>) -> (!loom.tensor<[0] : [2], f32>,
        !loom.tensor<[0] : [2], f32>) {
      %c = loom.constant [1.0, 2.0] : !loom.tensor<[0] : [2], f32>
      func.return %x, %c : !loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [2], f32>
    }"""
    run = PreparedKernels(parse_text(text), TritonExecutor(device=Gpu()))
    given = Tensor(aligned(np.array([3, 4], np.float32)))
    x, c = run.launch([given])
    assert x is given
    c.array[...] = 0
    np.testing.assert_array_equal(run.launch([given])[1].array, [1, 2])


def test_functions_that_are_no_kernels_run_in_between() -> None:
    x = tapestry.input("x", (4, 8))
    run, _ = prepared((x * 2).sort(axis=1)[0] + 1)
    array = RNG.normal(size=(4, 8)).astype(np.float32)
    (made,) = run([array])
    np.testing.assert_array_equal(made, np.sort(array * 2, axis=1) + 1)


def test_memory_that_is_short_is_said() -> None:
    run, gpu = prepared(layers())
    gpu.devices[0].short = 1
    with pytest.raises(GpuError, match="bytes of GPU memory for temporaries and 1920 for"):
        run(arrays())
    gpu.devices[0].short = None
    given = arrays()
    np.testing.assert_allclose(run(given)[0], want(given), rtol=2e-4, atol=1e-6)


def test_a_failing_launch_says_which_and_what() -> None:
    run, gpu = prepared(layers())
    name = gpu.devices[0].loaded[-1]
    gpu.devices[0].codes[name] = 700
    with pytest.raises(GpuError, match=rf"kernel {name} \(.*\) failed: CUDA error 700") as found:
        run(arrays())
    assert found.value.hint is not None
    assert "start the process again" in found.value.hint


def test_an_old_gpu_is_refused() -> None:
    def old(device: Standing) -> None:
        device.capability = lambda: 70  # type: ignore[method-assign]

    with pytest.raises(GpuError, match="this GPU is sm_70, and kernels run on sm_80 or newer"):
        prepared(layers(), old)

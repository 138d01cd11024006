"""Programs on the second of two GPUs that are pretended, while the first is the current one."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapestry

torch = pytest.importorskip("torch")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler to build a driver with", allow_module_level=True)
if torch.cuda.is_available():
    pytest.skip("there is a real GPU", allow_module_level=True)

from tapestry.codegen.driver import Cuda as CudaDevice  # noqa: E402
from tapestry.codegen.replay import Replayed  # noqa: E402
from tapestry.runtime.prepared.kernels import PreparedKernels  # noqa: E402
from tapestry.runtime.triton.devices import Gpu  # noqa: E402
from tapestry.runtime.triton.executor import TritonExecutor  # noqa: E402
from tests.pretending.cuda import Cuda, Stream, pretended  # noqa: E402
from tests.pretending.driver import PretendDriver  # noqa: E402

RNG = np.random.default_rng(3)


@pytest.fixture
def gpu(tmp_path: Path) -> Iterator[PretendDriver]:
    with pretended(tmp_path) as driver:
        yield driver
    assert driver.problems == []


def program(*, graphs: bool = False) -> PreparedKernels:
    x, w = tapestry.input("x", (20, 32)), tapestry.input("w", (32, 32))
    y = tapestry.softmax(tapestry.softmax(x @ w) @ w)
    executor = TritonExecutor(Gpu(torch, 1), graphs=graphs)
    return PreparedKernels(tapestry.compile(y).lowered, executor)


def cells(*shape: int) -> Any:
    return torch.from_numpy(RNG.normal(size=shape).astype("f4")).to("cuda:1")


def check(run: Any, x: Any, w: Any) -> None:
    (made,) = run([x, w])
    assert made.device == torch.device("cuda", 1)
    want = x.cpu()
    for _ in range(2):
        want = (want @ w.cpu()).softmax(-1)
    torch.testing.assert_close(made.cpu(), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("graphs", [False, True])
def test_work_is_done_where_tensors_are(gpu: PretendDriver, graphs: bool) -> None:
    run, w = program(graphs=graphs).launch, cells(32, 32)
    for _ in range(4):
        check(run, cells(20, 32), w)
    assert Cuda.index() == 0
    assert {one.device for one in gpu.launches} == {1}


def test_other_streams_and_threads_of_that_device(gpu: PretendDriver) -> None:
    run, x, w = program().launch, cells(20, 32), cells(32, 32)
    check(run, x, w)
    with Cuda.stream(Stream("cuda:1")):
        check(run, x, w)
    with Cuda.stream(Stream("cuda:0")):  # which is no stream of the program's device
        check(run, x, w)
    failed: list[BaseException] = []

    def elsewhere() -> None:
        try:
            with Cuda.tensors:  # PyTorch's modes are a thread's own
                assert Cuda.index() == 0
                for _ in range(2):
                    check(run, x, w)
        except BaseException as error:  # noqa: BLE001 - for the thread that waits
            failed.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert failed == []
    assert len({one.stream for one in gpu.launches}) == 2


def test_a_graph_of_the_callers_holds_the_launches(gpu: PretendDriver) -> None:
    """Also where the program would capture a graph of its own, which the driver refuses there."""
    for graphs in (False, True):
        run, x, w = program(graphs=graphs).launch, cells(20, 32), cells(32, 32)
        check(run, x, w)
        theirs = torch.cuda.CUDAGraph()
        with Cuda.device(1), torch.cuda.graph(theirs):
            (made,) = run([x, w])
        x.copy_(cells(20, 32))
        theirs.replay()
        want = (x.cpu() @ w.cpu()).softmax(-1) @ w.cpu()
        torch.testing.assert_close(made.cpu(), want.softmax(-1), rtol=1e-4, atol=1e-6)
        check(run, x, w)
    assert gpu.launches


def test_tensors_of_another_device_are_refused(gpu: PretendDriver) -> None:
    """What would be read is another GPU's memory, so nothing is launched."""
    assert CudaDevice(1).holds(cells(4))
    assert not CudaDevice(0).holds(cells(4))
    assert not gpu.launches
    assert Replayed is not None

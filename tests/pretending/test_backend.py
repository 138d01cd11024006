"""The backend of `torch.compile` on a GPU that is pretended: see `cuda.py`.

PyTorch traces on the CPU; what it gives to the backend is compiled for the GPU, and run there on
tensors that are brought there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler to build a driver with", allow_module_level=True)
if torch.cuda.is_available():
    pytest.skip("there is a real GPU", allow_module_level=True)

from torch import nn  # noqa: E402

from tapestry.frontend import run_pipeline  # noqa: E402
from tapestry.importers.torch import backend, running  # noqa: E402
from tapestry.importers.torch.exporting import exported_program  # noqa: E402
from tapestry.importers.torch.memory import Made  # noqa: E402
from tapestry.runtime.triton.compiled import GpuError  # noqa: E402
from tests.pretending.compiling import placing  # noqa: E402
from tests.pretending.cuda import pretended  # noqa: E402
from tests.pretending.driver import PretendDriver  # noqa: E402


@pytest.fixture
def gpu(tmp_path: Path) -> Iterator[PretendDriver]:
    driver = PretendDriver.built(tmp_path)
    torch.manual_seed(0)
    torch._dynamo.reset()
    with placing(tmp_path, driver):
        yield driver


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(b, t, c))


MODELS = {
    "perceptron": (nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 4)), (5, 7)),
    "attention": (Attention(), (2, 20, 32)),
    "convolution": (
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        (2, 3, 8, 8),
    ),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
def test_a_model(gpu: PretendDriver, name: str, graphs: bool) -> None:
    model, shape = MODELS[name]
    fast = torch.compile(model, backend=backend, options={"graphs": graphs}, dynamic=False)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(shape)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-4)
    assert gpu.launches
    assert gpu.problems == []


def test_a_step_of_training(gpu: PretendDriver) -> None:
    model, shape = MODELS["perceptron"]
    fast = torch.compile(model, backend=backend, dynamic=False)
    x, labels = torch.randn(shape), torch.tensor([0, 3, 1, 2, 1])
    grads: list[list[Any]] = []
    for one in (model, fast):
        model.zero_grad()
        nn.functional.cross_entropy(one(x), labels).backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-5)
    assert gpu.launches
    assert gpu.problems == []


class Scaled(nn.Module):
    def forward(self, x: Any, number: Any) -> Any:
        return (x * number).relu()


class Drawn(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * torch.rand_like(x)


@contextmanager
def on_gpu(folder: Path, model: nn.Module, *given: Any) -> Iterator[Any]:
    """A model on tensors of a GPU, which lasts as long."""
    program, where = exported_program(model, given, weights="arguments"), torch.device("cuda", 0)
    run_pipeline(program.module, "default")
    (made,) = program.outputs
    assert isinstance(made, Made)
    program = replace(program, outputs=(replace(made, device=where),))
    with pretended(folder) as driver:
        yield running.runner(program, where, "triton", None)
    assert driver.problems == []


def test_a_number_of_the_cpus_may_be_captured(tmp_path: Path) -> None:
    """As PyTorch's kernels are given it: a copy would be waited for, which no graph holds."""
    x, number = torch.randn(3, 5), torch.tensor(-2.5)
    with on_gpu(tmp_path, Scaled(), x, number) as run:
        there = x.to("cuda")
        (y,) = run([there, number])
        torch.testing.assert_close(y.cpu(), (x * number).relu())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            (y,) = run([there, number])
        there.copy_(torch.randn(3, 5))
        graph.replay()
        torch.testing.assert_close(y.cpu(), (there.cpu() * number).relu())


def test_draws_are_not_captured(tmp_path: Path) -> None:
    with on_gpu(tmp_path, Drawn(), torch.ones(8)) as run:
        x = torch.ones(8).to("cuda")
        (first,), (second,) = run([x]), run([x])
        assert not torch.equal(first.cpu(), second.cpu())
        with (
            pytest.raises(GpuError, match="would hold one draw of random numbers"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            run([x])

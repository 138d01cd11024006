"""The backend of `torch.compile` on a GPU that is pretended: see `cuda.py`.

PyTorch traces on the CPU; what it gives to the backend is compiled for the GPU, and run there on
tensors that are brought there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler to build a driver with", allow_module_level=True)
if torch.cuda.is_available():
    pytest.skip("there is a real GPU", allow_module_level=True)

from torch import nn  # noqa: E402

from tapestry.importers.torch import backend  # noqa: E402
from tests.pretending.compiling import placing  # noqa: E402
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

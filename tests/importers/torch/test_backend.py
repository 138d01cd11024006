"""`torch.compile(model, backend="tapestry")` gives what PyTorch gives."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tapestry.importers.torch import backend  # noqa: E402


def test_a_perceptron() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = torch.randn(5, 8)
    with torch.no_grad():
        got, want = torch.compile(model, backend=backend)(x), model(x)
    torch.testing.assert_close(got, want)

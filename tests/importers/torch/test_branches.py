"""Branches that the cells of a tensor choose: both are computed, and one is selected."""

# pyright: basic
# PyTorch has no types to speak of.

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.importers.torch.compare import compiled  # noqa: E402


class Gate(nn.Module):
    """One of two layers, by the sign of what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.mean() > 0, self.first, self.second, (x,))


def one(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))


def nested(x: torch.Tensor) -> torch.Tensor:
    weights = torch.tensor([1.0, 2.0, 3.0])

    def inner(y: torch.Tensor) -> torch.Tensor:
        return torch.cond(y[0] > 0.5, lambda z: z * weights, lambda z: z - 1, (y,))

    return torch.cond(x.sum() > 0, inner, lambda y: y.exp(), (x,))


def several(x: torch.Tensor) -> torch.Tensor:
    total, rows = torch.cond(
        (x.sum() > 0).reshape(1),
        lambda y: (y.sum(), y * 2),
        lambda y: (y.prod(), y - 2),
        (x,),
    )
    return total + rows


@pytest.mark.parametrize("model", [one, nested, several, Gate()])
def test_a_branch_is_a_selection(model: Callable[..., torch.Tensor]) -> None:
    torch.manual_seed(0)
    fast = compiled(model, strict=True)
    for sign in (1.0, -1.0):
        inputs = [(sign * torch.ones(3)).requires_grad_() for _ in range(2)]
        got, want = fast(inputs[0]), model(inputs[1])
        torch.testing.assert_close(got, want)
        own, other = (
            torch.autograd.grad(made.sum(), x) for made, x in zip((got, want), inputs, strict=True)
        )
        torch.testing.assert_close(own, other)

"""Branches that the cells of a tensor choose: both are computed, and one is selected."""

# pyright: basic
# PyTorch has no types to speak of.

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tapestry.diagnostics import TapestryError  # noqa: E402
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


ROWS = torch.arange(12.0).reshape(3, 4)


def looked_up(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    rows = torch.nn.functional.embedding(at, x) + x[at] + x.index_select(0, at)
    return rows + x.gather(0, at[:, None].expand(-1, 4)) + x.index_add(0, at, x[:2])[:2]


def first(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return torch.cond(at.max() < 3, looked_up, lambda x, at: x[:2] * at.sum(), (x, at))


def second(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return torch.cond(at.max() > 2, lambda x, at: x[:2] - at.sum(), looked_up, (x, at))


def inside(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return torch.cond(
        at.max() < 3,
        lambda x, at: torch.cond(at.sum() > 2, looked_up, lambda x, at: x[:2] - at.max(), (x, at)),
        lambda x, at: x[:2] * at.sum(),
        (x, at),
    )


@pytest.mark.parametrize("model", [first, second, inside])
def test_places_of_a_branch_that_is_not_chosen_are_not_looked_up(model: Callable) -> None:
    fast = compiled(model, strict=True)
    for places in ([0, 2], [1, 2], [1, 9]):
        at = torch.tensor(places)
        torch.testing.assert_close(fast(ROWS, at), model(ROWS, at))


def test_places_of_a_branch_that_is_chosen_are_looked_up() -> None:
    def model(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.cond(
            at.max() > 3, lambda x, at: x[at], lambda x, at: x[:2] + at.sum(), (x, at)
        )

    with pytest.raises(TapestryError, match="index 9"):
        compiled(model, strict=True)(ROWS, torch.tensor([1, 9]))


def test_places_of_a_branch_are_refused_where_there_are_none() -> None:
    """There is no place, not even the first, that a branch may look up when it is not chosen."""

    def model(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.cond(at.max() > 3, lambda x, at: x[at].sum(0), lambda x, _: x.sum(0), (x, at))

    with pytest.raises(Exception, match=r"index\.Tensor of a tensor without cells"):
        compiled(model, strict=True)(torch.zeros(0, 4), torch.tensor([0, 1]))

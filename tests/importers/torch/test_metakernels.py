"""Metakernels of a user as operators of PyTorch: eager, compiled, in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tapestry

torch = pytest.importorskip("torch")

from tapestry.importers.torch import metakernels, recording  # noqa: E402

_MINE = """
swish:
  doc: A cell times its sigmoid.
  params: {beta: {type: float, default: 1}}
  inputs: {x: {shape: "[$d...]", dtype: float}}
  index: "[$d...]"
  wrap: "x / (1 + exp(-$beta * x))"
swish_gradient:
  doc: The gradient of swish.
  params: {beta: {type: float, default: 1}}
  let: {}
  inputs:
    grad: {shape: "[$d...]", dtype: float}
    x: {shape: "[$d...]", dtype: float}
  index: "[$d...]"
  wrap: "grad * (1 + $beta * x * (1 - 1 / (1 + exp(-$beta * x)))) / (1 + exp(-$beta * x))"
  outputs: {x: {}}
norms:
  doc: Sums of squares along an axis, and the largest cells.
  params: {axis: {type: int, axis_of: x, default: -1}}
  inputs: {x: {shape: "[$d...]", dtype: float}}
  steps:
    squared: {op: mul, a: x, b: x}
    total: {op: sum, x: squared, axis: "[$axis]"}
    largest: {op: max, x: x, axis: "[$axis]"}
  outputs: {total: {}, largest: {}}
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("mine") / "mine.yaml"
    text = _MINE
    path.write_text(text)
    return metakernels(path, gradients={"swish": "swish_gradient"})


def test_an_operator_computes_in_eager_mode(mine: Any) -> None:
    x = torch.randn(3, 5)
    torch.testing.assert_close(mine.swish(x, beta=2), x * torch.sigmoid(2 * x))
    total, largest = mine.norms(x.double(), axis=0)
    torch.testing.assert_close(total, (x.double() ** 2).sum(0))
    torch.testing.assert_close(largest, x.double().amax(0))
    assert "A cell times its sigmoid" in mine.swish.__doc__
    assert dir(mine) == ["norms", "swish", "swish_gradient"]


class Mixed(torch.nn.Module):
    def __init__(self, swish: Any) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.swish = swish

    def forward(self, x: Any) -> Any:
        return self.second(self.swish(self.first(x), beta=1.5))


def test_it_is_part_of_a_compiled_model(mine: Any) -> None:
    torch.manual_seed(0)
    model, plain = Mixed(mine.swish), Mixed(lambda x, beta: x * torch.sigmoid(beta * x))
    plain.load_state_dict(model.state_dict())
    x = torch.randn(4, 6)
    with recording() as coverage:
        fast = torch.compile(model, backend="tapestry", fullgraph=True)
        fast(x).square().sum().backward()
    assert coverage.uses
    assert not coverage.external
    plain(x).square().sum().backward()
    torch.testing.assert_close(fast(x), plain(x))
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_gradients_are_those_of_the_function(mine: Any) -> None:
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: mine.swish(x, beta=0.7), (x,))
    torch.library.opcheck(mine.swish.defined, (x,), {"beta": 0.7})


def test_mistakes(mine: Any, tmp_path: Path) -> None:
    x = torch.randn(3, 5)
    with pytest.raises(tapestry.TapestryError, match="@swish does not apply to"):
        mine.swish(x.long())
    with pytest.raises(TypeError, match=r"swish\(x, beta=1"):
        mine.swish(x, gamma=2)
    with pytest.raises(AttributeError, match="no metakernel 'twice' here; there is norms, swish"):
        _ = mine.twice
    path = tmp_path / "mine.yaml"
    path.write_text(_MINE)
    with pytest.raises(tapestry.UsageError, match="there is no metakernel gone"):
        metakernels(path, gradients={"swish": "gone"})
    with pytest.raises(tapestry.UsageError, match="takes grad, which is nothing of norms"):
        metakernels(path, gradients={"norms": "swish_gradient"})
    with pytest.raises(tapestry.UsageError, match="gives total, which is no input of swish"):
        metakernels(path, gradients={"swish": "norms"})
    with pytest.raises(tapestry.TapestryError, match="cannot read"):
        metakernels(tmp_path / "gone.yaml")

"""What is computed twice has the same random numbers both times."""

# pyright: basic
# PyTorch has no types to speak of.

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from tapestry.importers.torch import recording  # noqa: E402

drop = torch.nn.Dropout(0.5)


def _squared(x):
    return drop(x * x) * torch.rand_like(x)


def _rectified(x):
    return torch.nn.functional.rrelu(x.abs(), 0.1, 0.3, training=True) * drop(x)


def _gradient(layer, x):
    """The result of a compiled layer that its gradient computes again, and that gradient."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(
        lambda x: checkpoint(layer, x, use_reentrant=False), backend="tapestry", fullgraph=True
    )
    with recording() as report:
        y = compiled(x)
        (slope,) = torch.autograd.grad(y.sum(), x)
    assert not report.external
    return y, slope


@pytest.mark.parametrize(("layer", "degree"), [(_squared, 2), (lambda x: _squared(_squared(x)), 4)])
def test_gradients_see_the_numbers_that_results_saw(layer, degree):
    """Each cell is a power of what came, times what was drawn."""
    x = torch.randn(4, 8, requires_grad=True)
    y, slope = _gradient(layer, x)
    assert 0 < y.count_nonzero() < y.numel()
    torch.testing.assert_close(slope * x / degree, y)


def test_each_call_draws_anew():
    x = torch.ones(4, 8, requires_grad=True)
    compiled = torch.compile(
        lambda x: checkpoint(_rectified, x, use_reentrant=False), backend="tapestry"
    )
    torch.manual_seed(0)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(0)
    again = compiled(x)
    assert not torch.equal(first, second)
    assert torch.equal(first, again)
    again.sum().backward()
    assert torch.equal(x.grad == 0, again == 0)

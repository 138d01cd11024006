"""Gradients of a graph that was compiled before: those of a graph that was not, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is compiled as in a new process."""
    torch._dynamo.reset()
    return torch.compile(function, backend="tapestry")


def _entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "graphs").glob("*.json"))


def _keep(function: Callable[..., Any], *given: Any) -> None:
    """Compile a function of one result, and its gradients, which keeps them."""
    _compiled(function)(*given).sum().backward()
    for one in given:
        one.grad = None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts, self.norm = nn.Linear(8, 24), nn.LayerNorm(8)
        self.out = nn.Linear(8, 5)

    def forward(self, x: Any, labels: Any) -> Any:
        q, k, v = self.parts(self.norm(x)).chunk(3, -1)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        logits = self.out(functional.dropout(seen, 0.2, self.training) + x)
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits.argmax(-1)


def _step(run: Callable[..., Any], model: nn.Module, *given: Any) -> Sequence[Any]:
    model.zero_grad()
    torch.manual_seed(1)
    loss, found = run(*given)
    loss.backward()
    return [loss.detach(), found, *(one.grad for one in model.parameters())]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_hit_has_the_gradients_of_a_miss(traced, tmp_path, frozen):
    torch.manual_seed(0)
    model = Net()
    model.norm.requires_grad_(not frozen)
    given = torch.randn(2, 6, 8), torch.randint(5, (2, 6))
    first, again = (_step(_compiled(model), model, *given) for _ in range(2))
    assert (len(traced), len(_entries(tmp_path))) == (1, 1)
    for one, other in zip(first, again, strict=True):
        assert one is other is None or torch.equal(one, other)
    model.eval()
    wanted = _step(model, model, *given)
    for _ in range(2):
        got = _step(_compiled(model), model, *given)
    assert len(traced) == 2
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    assert [one is None for one in got] == [frozen and n in (4, 5) for n in range(len(got))]


def test_what_has_gradients_decides(traced):
    def product(x, y):
        return torch.sin(x) * y

    for wanted in ((True, True), (True, False), (False, True), (True, True)):
        x, y = (torch.randn(3, requires_grad=one) for one in wanted)
        for _ in range(2):
            x.grad = y.grad = None
            _compiled(product)(x, y).sum().backward()
            for one, expected in ((x, x.detach().cos() * y), (y, x.sin())):
                assert (one.grad is not None) == one.requires_grad
                if one.requires_grad:
                    torch.testing.assert_close(one.grad, expected.detach())
    assert len(traced) == 3
    with torch.no_grad():
        assert not _compiled(product)(x, y).requires_grad
    assert len(traced) == 4


def test_results_of_layers_are_kept(traced):
    model, x = nn.Linear(4, 3), torch.randn(2, 5, 4)  # whose result is a view of a product
    for _ in range(2):
        model.zero_grad()
        result = _compiled(model)(x)
        result.mul_(2).sum().backward()  # may be written to
        torch.testing.assert_close(model.bias.grad, torch.full((3,), 20.0))
    assert len(traced) == 1


def test_results_without_gradients(traced):
    def parts(x):
        return x.exp(), x.argmax(), x.detach() + 1, None

    x = torch.randn(4, requires_grad=True)
    for _ in range(2):
        made = _compiled(parts)(x)
        assert [one is not None and one.requires_grad for one in made] == [True, *[False] * 3]
        (gradient,) = torch.autograd.grad(made[0].sum(), x)
        torch.testing.assert_close(gradient, x.detach().exp())
    assert len(traced) == 1


def test_a_result_that_is_not_used(traced):
    def both(x, y):
        return x.exp(), x * y

    x, y = (torch.randn(4, requires_grad=True) for _ in range(2))
    for _ in range(2):
        gradients = torch.autograd.grad(_compiled(both)(x, y)[1].sum(), (x, y))
        torch.testing.assert_close(gradients, (y.detach(), x.detach()))
    assert len(traced) == 1


@pytest.mark.usefixtures("traced")
def test_a_graph_is_used_again_where_it_is_retained():
    x = torch.randn(4, requires_grad=True)
    _keep(torch.exp, x)
    y = _compiled(torch.exp)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks_run(traced):
    x = torch.randn(4, requires_grad=True)
    _keep(torch.exp, x)
    y, seen = _compiled(torch.exp)(x), []
    y.register_hook(lambda grad: 3 * grad)
    x.register_hook(lambda grad: seen.append(grad.clone()))
    y.sum().backward()
    torch.testing.assert_close(x.grad, 3 * x.detach().exp())
    assert torch.equal(seen[0], x.grad)
    assert len(traced) == 1


def test_hooks_of_saved_tensors_run(traced):
    x = torch.randn(4, requires_grad=True)
    _keep(torch.exp, x)
    run = _compiled(torch.exp)
    run(x)
    assert len(traced) == 1
    packed: list[object] = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda kept: packed.append(kept) or kept, lambda kept: 2 * kept):
        run(x).sum().backward()
    assert packed
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())
    with hooks(lambda kept: kept, lambda kept: kept):  # which a trace might take in
        _compiled(torch.exp)(x)
    assert len(traced) == 2


@pytest.mark.usefixtures("traced")
def test_what_is_kept_may_not_be_written_to():
    x, y = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    _keep(torch.mul, x, y)
    made = _compiled(torch.mul)(x, y)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()
    model, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), torch.randn(2, 4)
    _keep(model, x)
    made = _compiled(model)(x)
    with torch.no_grad():
        model[2].weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()


@pytest.mark.usefixtures("traced")
def test_a_gradient_has_no_gradient():
    x = torch.randn(4, requires_grad=True)
    _keep(torch.exp, x)
    y = _compiled(torch.exp)(x).sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    torch.testing.assert_close(gradient, x.exp())
    with pytest.raises(RuntimeError, match="no second gradient"):
        gradient.sum().backward()


@pytest.mark.usefixtures("traced")
def test_a_gradient_is_not_transformed():
    x = torch.randn(4, requires_grad=True)
    _keep(torch.exp, x)
    y = _compiled(torch.exp)(x)
    with pytest.raises(RuntimeError, match="cannot be transformed"):
        torch.func.vmap(lambda along: torch.autograd.grad(y, x, along))(torch.eye(4))


def test_autocast_is_traced(traced):
    model, x = nn.Linear(4, 3), torch.randn(2, 4)
    for number in range(1, 3):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            made = _compiled(model)(x)
        made.float().sum().backward()
        assert made.dtype == torch.bfloat16
        torch.testing.assert_close(model.bias.grad, torch.full((3,), 2.0))
        assert len(traced) == number


def _returns_a_view(x):
    return x[1:] * 2, x.view(-1)


def _returns_views_of_one(x):
    made = x * 2
    return made, made.view(-1)


def _writes(x, count):
    count.add_(1)
    return x * count, x


@pytest.mark.parametrize(
    ("function", "inputs"),
    [(_returns_a_view, 1), (_returns_views_of_one, 1), (_writes, 2)],
)
def test_memory_that_is_shared_is_traced(traced, tmp_path, function, inputs):
    for number in range(1, 3):
        mine, theirs = ([torch.ones(2, 3, requires_grad=True), torch.ones(3)] for _ in range(2))
        got, wanted = _compiled(function)(*mine[:inputs]), function(*theirs[:inputs])
        for made in (got, wanted):
            (made[0].sum() + (made[1] ** 2).sum()).backward()
        torch.testing.assert_close(got, wanted)
        torch.testing.assert_close(mine[0].grad, theirs[0].grad)
        torch.testing.assert_close(mine[1], theirs[1])
        assert len(traced) == number
    assert _entries(tmp_path) == []


@pytest.mark.usefixtures("traced")
def test_damage_is_noticed(tmp_path):
    x = torch.randn(4, requires_grad=True)
    _keep(torch.exp, x)
    (entry,) = _entries(tmp_path)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-1])
    _keep(torch.exp, x)
    assert entry.read_bytes() == whole

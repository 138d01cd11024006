"""Kept graphs in other surroundings than those in which they were kept."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.nn.functional.gelu(self.first(x)))


def _step(run, model, x):
    """A result, and the gradients of the weights and of the input."""
    x = x.detach().clone().requires_grad_()
    weights = [*model.parameters(), x]
    made = run(x)
    return [made.detach(), *torch.autograd.grad(made.square().sum(), weights)]


def _close(got, want):
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.fixture
def model():
    torch._dynamo.reset()
    torch.manual_seed(0)
    return Layer()


@pytest.mark.parametrize("kept", [False, True])
def test_threads_whose_first_calls_meet(traced, model, kept):
    inputs = [torch.randn(5, 8) for _ in range(4)]
    want = [_step(model, model, x) for x in inputs]
    if kept:
        _step(torch.compile(model, backend="tapestry"), model, inputs[0])
        torch._dynamo.reset()
    run, start = torch.compile(model, backend="tapestry"), threading.Barrier(len(inputs))
    found = {}

    def work(n):
        start.wait()
        found[n] = [_step(run, model, inputs[n]) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not kept or len(traced) == 1
    for n, own in enumerate(want):
        for got in found[n]:
            _close(got, own)


def test_hooks_see_what_eager_mode_shows_them(traced, model):
    """Of an input, of a result, and of a weight; the one of the result changes the gradient."""
    x = torch.randn(5, 8)

    def hooked(run):
        model.zero_grad()
        seen = []
        given = x.clone().requires_grad_()
        given.register_hook(lambda grad: seen.append(grad.clone()))
        weight = model.first.weight.register_hook(lambda grad: seen.append(grad.clone()))
        made = run(given)
        made.register_hook(lambda grad: 2 * grad)
        made.sum().backward()
        weight.remove()
        return [*seen, given.grad, model.first.weight.grad.clone()]

    want = hooked(model)
    for _ in range(2):
        torch._dynamo.reset()
        run = torch.compile(model, backend="tapestry")
        for _ in range(2):
            got = hooked(run)
            assert len(got) == len(want) == 4
            # Which of the hooks of two leaves comes first is the engine's to choose.
            _close(sorted(got, key=torch.numel), sorted(want, key=torch.numel))
    assert len(traced) == 1


@pytest.mark.parametrize("train", [False, True])
def test_autocast_is_another_graph_and_changes_no_kept_one(traced, model, train):
    x = torch.randn(5, 8)
    run = torch.compile(model, backend="tapestry")

    def call(of, *, casting):
        with torch.set_grad_enabled(train), torch.autocast("cpu", torch.bfloat16, enabled=casting):
            return of(x)

    for casting in (False, True, False, True):
        got, want = (call(of, casting=casting) for of in (run, model))
        assert got.dtype == want.dtype == (torch.bfloat16 if casting else torch.float32)
        torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2 if casting else 1e-5)
        if train:
            gradients = [torch.autograd.grad(y.sum(), model.first.weight)[0] for y in (got, want)]
            torch.testing.assert_close(*gradients, rtol=2e-2, atol=5e-2 if casting else 1e-5)
    assert len(traced) == 2

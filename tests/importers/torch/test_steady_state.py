"""Many calls of one compiled model: memory is used again, and nobody sees it.

Sizes are large enough for their memory to be pooled and their products to be PyTorch's.
"""

import copy
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.importers.torch.compare import compiled  # noqa: E402

ROWS = 300


def perceptron() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 96), nn.Tanh())


@pytest.fixture
def inputs() -> list:
    torch.manual_seed(1)
    return [torch.randn(ROWS, 64) for _ in range(6)]


def gradients(run, model, x) -> list:
    model.zero_grad()
    run(x).square().sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_results_are_the_callers_to_keep(inputs) -> None:
    model = perceptron()
    fast = compiled(model)
    with torch.no_grad():
        kept = [fast(x) for x in inputs]
        views = [y[10:].T for y in kept]
        for y in kept[::2]:
            y.mul_(1)
        del y, kept[::2]
        gc.collect()
        for x in inputs:
            fast(x)
        for x, view in zip(inputs, views, strict=True):
            torch.testing.assert_close(view, model(x)[10:].T)


def test_results_may_be_written_to(inputs) -> None:
    model = perceptron()
    fast = compiled(model)
    with torch.no_grad():
        for x in inputs:
            y = fast(x)
            torch.testing.assert_close(y, model(x))
            y.fill_(torch.nan)


def test_inputs_may_change(inputs) -> None:
    model, x = perceptron(), inputs[0].clone()
    fast = compiled(model)
    with torch.no_grad():
        for other in inputs:
            before = fast(x)
            want = model(x)
            x.copy_(other)
            torch.testing.assert_close(before, want)
            torch.testing.assert_close(fast(x), model(other))


def test_what_is_kept_for_the_backward_pass(inputs) -> None:
    """Several forward passes before their backward passes, in either order."""
    model = perceptron()
    want = [gradients(model, model, x) for x in inputs]
    fast = compiled(model)
    for order in (1, -1):
        losses = [fast(x).square().sum() for x in inputs]
        for loss, expected in list(zip(losses, want, strict=True))[::order]:
            model.zero_grad()
            loss.backward()
            got = [parameter.grad for parameter in model.parameters()]
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def test_gradients_add_up(inputs) -> None:
    model = perceptron()
    other = copy.deepcopy(model)
    fast = compiled(model)
    for x in inputs:
        fast(x).square().sum().backward()
        other(x).square().sum().backward()
    for got, want in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(got.grad, want.grad, rtol=1e-4, atol=1e-4)


def test_a_model_used_twice_in_a_graph(inputs) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU())
    other = copy.deepcopy(model)
    fast = compiled(model)
    for x in inputs:
        for run in (fast, other):
            y = run(run(x))
            (y * run(y)).sum().backward(retain_graph=True)
            y.sum().backward()
    for got, want in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(got.grad, want.grad, rtol=1e-4, atol=1e-3)


def test_gradients_that_are_kept_are_not_written_to(inputs) -> None:
    model = perceptron()
    fast = compiled(model)
    kept = []
    for x in inputs:
        model.zero_grad()
        fast(x).square().sum().backward()
        kept.append([parameter.grad for parameter in model.parameters()])
    for x, got in zip(inputs, kept, strict=True):
        torch.testing.assert_close(got, gradients(model, model, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("train", [False, True])
def test_threads_call_at_the_same_time(inputs, train: bool) -> None:
    models = [perceptron() for _ in range(2)]
    fast = compiled(lambda x, model: model(x))  # one function; each thread has its weights
    for model in models:
        fast(inputs[0], model).sum().backward()
    want = [gradients(models[0], models[0], x) for x in inputs]
    results = [models[0](x).detach() for x in inputs]
    start = threading.Barrier(2)

    def work(model, shift: int) -> None:
        start.wait()
        for step in range(24):
            n = (step + shift) % len(inputs)
            if train:
                got = gradients(lambda x: fast(x, model), model, inputs[n])
                torch.testing.assert_close(got, want[n], rtol=1e-4, atol=1e-4)
            else:
                with torch.no_grad():
                    torch.testing.assert_close(fast(inputs[n], model), results[n])

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(work, model, 3 * n) for n, model in enumerate(models)]:
            done.result()

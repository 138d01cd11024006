"""Steps of optimizers are those that PyTorch's optimizers take."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    Row,
    array,
    entries,
    examples_agree,
    floats,
    law,
    parameters,
    shapes,
    torch,
)

LOOSE: dict[str, Any] = {"ulps": 256, "absolute": 256}


@st.composite
def stepped(draw: Any, signed: int = 0, squares: int = 0, step: bool = False, **params: Any):
    """A parameter, its gradient, and the state of an optimizer."""
    name, shape = draw(st.sampled_from(("f32", "f64"))), draw(shapes(filled=True))
    arrays = [draw(array((name,), shape)) for _ in range(2 + signed)]
    arrays += [draw(array((name,), shape, 0, 2)) for _ in range(squares)]
    if step:
        arrays.append(draw(array(("f32",), (), 1, 1)) * draw(st.integers(1, 9)))
    return arrays, draw(parameters(lr=floats(0.125, 1), weight_decay=st.sampled_from((0.0, 0.5)),
                                   **params))  # fmt: skip


def taken(optimizer, x, gradient, state, **given):
    """The parameter after one step of PyTorch's optimizer, and its state."""
    parameter = x.clone().requires_grad_()
    parameter.grad = gradient.clone()
    made = optimizer([parameter], **given)
    made.state[parameter].update({key: value.clone() for key, value in state.items()})
    made.step()
    return parameter.detach(), made.state[parameter]


def sgd(x, gradient, lr=0.001, weight_decay=0.0):
    return taken(torch.optim.SGD, x, gradient, {}, lr=lr, weight_decay=weight_decay)[0]


def momentum(x, gradient, velocity, **given):
    result, state = taken(
        torch.optim.SGD, x, gradient, {"momentum_buffer": velocity}, **{"momentum": 0.9, **given}
    )
    return result, state["momentum_buffer"]


def adaptive(optimizer):
    def reference(x, gradient, mean, square, step, beta1=0.9, beta2=0.999, **given):
        before = {"step": step.float() - 1, "exp_avg": mean, "exp_avg_sq": square}
        result, state = taken(optimizer, x, gradient, before, betas=(beta1, beta2), **given)
        return result, state["exp_avg"], state["exp_avg_sq"]

    return reference


def rmsprop(x, gradient, square, **given):
    before = {"step": torch.tensor(0.0), "square_avg": square}
    result, state = taken(torch.optim.RMSprop, x, gradient, before, **given)
    return result, state["square_avg"]


def adagrad(x, gradient, square, **given):
    result, state = taken(torch.optim.Adagrad, x, gradient, {"sum": square}, **given)
    return result, state["sum"]


ROWS = {
    "sgd": Row(sgd, stepped(), **LOOSE),
    "sgd_momentum": Row(
        momentum,
        stepped(1, momentum=floats(0.25, 0.875), dampening=st.sampled_from((0.0, 0.25)))
        | stepped(1, momentum=floats(0.25, 0.875), nesterov=st.just(value=True)), **LOOSE,
    ),
    "adam": Row(adaptive(torch.optim.Adam), stepped(1, 1, step=True), **LOOSE),
    "adamw": Row(adaptive(torch.optim.AdamW), stepped(1, 1, step=True), **LOOSE),
    "rmsprop": Row(rmsprop, stepped(0, 1, alpha=floats(0.5, 0.875)), **LOOSE),
    "adagrad": Row(adagrad, stepped(0, 1), **LOOSE),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("optimizers")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)

"""Gradients are what PyTorch differentiates, or its own operators of the name."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
    NUMBERS,
    WIDE,
    Row,
    array,
    entries,
    examples_agree,
    floats,
    law,
    parameters,
    positive,
    shapes,
    torch,
)
from tests.metakernels.library.applying import run

functional, aten = torch.nn.functional, torch.ops.aten

LOOSE: dict[str, Any] = {"ulps": 256, "absolute": 512}


@st.composite
def pairs(draw: Any, dtypes=FLOATS, low: float = -9, high: float = 9, least=0, **params: Any):
    """A gradient and a tensor of its shape."""
    name, shape = draw(st.sampled_from(dtypes)), draw(shapes(least, filled=least > 0))
    arrays = [draw(array((name,), shape)), draw(array((name,), shape, low, high))]
    return arrays, draw(parameters(**params))


def differentiated(function):
    """The gradient that PyTorch finds for a function of one tensor."""

    def reference(gradient, x, **given):
        x = x.clone().requires_grad_()
        function(x, **given).backward(gradient)
        return x.grad

    return reference


def threshold(gradient, x, threshold=0.0):
    return torch.where(x <= threshold, torch.zeros_like(gradient), gradient)


def softmax(function):
    def reference(gradient, y, axis=-1):
        return function(gradient, y, axis, y.dtype)

    return reference


def leaky(x, slope=0.01):
    return functional.leaky_relu(x, slope)


def hardtanh(x, low=-1.0, high=1.0):
    return functional.hardtanh(x, low, high)


def layer_norm(gradient, x, mean, rstd, weight=None, dims=1):
    """PyTorch's gradients; where there is no weight, those of a weight of ones."""
    shape = x.shape[x.dim() - dims :]
    used = torch.ones(shape, dtype=x.dtype) if weight is None else weight
    bias = torch.zeros(shape, dtype=x.dtype)
    return aten.native_layer_norm_backward(
        gradient, x, list(shape), mean, rstd, used, bias, [True] * 3
    )


@st.composite
def normalized(draw: Any):
    """A gradient, a tensor, its means and deviations, and perhaps a weight."""
    name, dims = draw(st.sampled_from(WIDE)), draw(st.integers(1, 2))
    tail, front = tuple(draw(positive) for _ in range(dims)), draw(shapes(1, 2, filled=True))
    ones = (*front, *[1] * dims)
    arrays = [draw(array((name,), (*front, *tail))) for _ in range(2)]
    arrays += [draw(array((name,), ones)), draw(array((name,), ones, 0.5, 2))]
    if draw(st.booleans()):
        arrays.append(draw(array((name,), tail)))
    return arrays, {"dims": dims}


def total(x, dims=1):
    return x.sum(tuple(range(x.dim() - dims)), dtype=x.dtype) if x.dim() > dims else x.clone()


@st.composite
def looked_up(draw: Any):
    """A gradient of rows, and which rows they are."""
    name, batch, rows = draw(st.sampled_from(WIDE)), draw(shapes(1, 2)), draw(positive)
    gradient = draw(array((name,), (*batch, draw(positive))))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    given = {"rows": rows, "padding": draw(st.sampled_from((-1, 0)))}
    return [gradient, random.integers(0, rows, batch)], given


def embedding(gradient, ids, rows, padding=-1):
    return aten.embedding_dense_backward(gradient, ids, rows, padding, scale_grad_by_freq=False)


@st.composite
def classified(draw: Any):
    """A gradient of losses, classes, the total weight, and perhaps a weight for each class."""
    name, batch, classes = draw(st.sampled_from(WIDE)), draw(shapes(1, 2)), draw(positive)
    reduction = draw(st.sampled_from(("none", "mean", "sum")))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [
        draw(array((name,), batch if reduction == "none" else ())),
        random.integers(0, classes, batch), draw(array((name,), (), 1, 2)),
    ]  # fmt: skip
    if draw(st.booleans()):
        arrays.append(draw(array((name,), (classes,), 0.5, 2)))
    ignore = draw(st.sampled_from((-100, 0)))
    return arrays, {"classes": classes, "reduction": reduction, "ignore": ignore}


def losses(gradient, target, total_weight, weight=None, classes=1, reduction="mean", ignore=-100):
    """The gradient of nll_loss, as it is defined."""
    hot = functional.one_hot(target, classes).movedim(-1, min(1, target.dim())).to(gradient.dtype)
    used = torch.ones(classes, dtype=gradient.dtype) if weight is None else weight
    factor = used[target] * (target != ignore)
    scaled = gradient * factor / (total_weight if reduction == "mean" else 1)
    return -hot * scaled.unsqueeze(min(1, target.dim()))


@st.composite
def none_dropped(draw: Any):
    """An array and a seed."""
    return [draw(array(FLOATS, draw(shapes()))), np.array(3)], {"p": 0.0}


def kept(x, seed, p=0.0):
    assert p == 0
    assert seed.dtype == torch.int64
    return x, torch.ones(x.shape, dtype=torch.bool)


POSITIVE = floats(0.25, 2)

ROWS = {
    "threshold_backward": Row(
        threshold, pairs(NUMBERS, threshold=st.sampled_from((0.0, 1.0)))
    ),
    "tanh_backward": Row(aten.tanh_backward, pairs(low=-1, high=1), **LOOSE),
    "sigmoid_backward": Row(aten.sigmoid_backward, pairs(low=0, high=1), **LOOSE),
    "silu_backward": Row(differentiated(functional.silu), pairs(), **LOOSE),
    "gelu_backward": Row(
        differentiated(functional.gelu), pairs(approximate=st.sampled_from(("none", "tanh"))),
        **LOOSE,
    ),
    "leaky_relu_backward": Row(differentiated(leaky), pairs(slope=POSITIVE), **LOOSE),
    "elu_backward": Row(differentiated(functional.elu), pairs(alpha=POSITIVE), **LOOSE),
    "hardtanh_backward": Row(differentiated(hardtanh), pairs(), **LOOSE),
    "hardswish_backward": Row(differentiated(functional.hardswish), pairs(), **LOOSE),
    "hardsigmoid_backward": Row(  # PyTorch's 1 / 6 is an f32
        differentiated(functional.hardsigmoid), pairs(("f16", "bf16", "f32")), **LOOSE
    ),
    "softplus_backward": Row(
        differentiated(functional.softplus), pairs(beta=POSITIVE, threshold=floats(4, 9)), **LOOSE
    ),
    "softmax_backward": Row(
        softmax(aten._softmax_backward_data),
        pairs(WIDE, 0, 1, least=1, axis=st.sampled_from((-1, 0))), **LOOSE,
    ),
    "log_softmax_backward": Row(
        softmax(aten._log_softmax_backward_data),
        pairs(WIDE, -3, 0, least=1, axis=st.sampled_from((-1, 0))), **LOOSE,
    ),
    "native_layer_norm_backward": Row(layer_norm, normalized(), **LOOSE),
    "total_over": Row(
        total, pairs(NUMBERS, least=2, dims=st.integers(1, 2)).map(lambda d: (d[0][:1], d[1])),
        **LOOSE,
    ),
    "embedding_dense_backward": Row(embedding, looked_up(), **LOOSE),
    "nll_loss_backward": Row(losses, classified(), **LOOSE),
    "native_dropout": Row(kept, none_dropped()),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("gradients")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)


def test_dropout_keeps_what_its_mask_says() -> None:
    x = np.arange(1, 1001, dtype=np.float32)
    result, mask = run("native_dropout", [x, np.array(1)], {"p": 0.25})
    np.testing.assert_array_equal(result, np.where(mask, x / np.float32(0.75), 0))
    assert 0.7 < mask.mean() < 0.8

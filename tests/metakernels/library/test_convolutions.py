"""Convolutions of the library and their gradients are PyTorch's, and split anywhere."""

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
    law,
    torch,
)

F = torch.nn.functional
DTYPES = ("i32", "i64", "f16", "f32", "f64")


@st.composite
def geometry(draw, rank):
    """Parameters of a convolution, its input's size and its kernel's."""
    count = range(rank)
    kernel = [draw(st.integers(1, 3)) for _ in count]
    given = {
        "stride": [draw(st.integers(1, 3)) for _ in count],
        "padding": [draw(st.integers(0, 2)) for _ in count],
        "dilation": [draw(st.integers(1, 2 if k < 3 else 1)) for k in kernel],
    }
    least = [
        max(1, d * (k - 1) + 1 - 2 * p)
        for d, k, p in zip(given["dilation"], kernel, given["padding"], strict=True)
    ]
    size = [draw(st.integers(n, max(n, 6 - rank))) for n in least]
    channels, out, groups = draw(st.sampled_from([(1, 1, 1), (2, 3, 1), (2, 4, 2), (3, 3, 3)]))
    if groups > 1:
        given["groups"] = groups
    return given, size, kernel, channels, out, groups


def sizes_after(given, size, kernel):
    """The size of a convolution's result."""
    rows = zip(size, kernel, given["stride"], given["padding"], given["dilation"], strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in rows]


@st.composite
def forward(draw, rank):
    given, size, kernel, channels, out, groups = draw(geometry(rank))
    dtype = (draw(st.sampled_from(DTYPES)),)
    x = draw(array(dtype, (draw(st.integers(0, 2)), channels, *size)))
    weight = draw(array(dtype, (out, channels // groups, *kernel)))
    bias = [draw(array(dtype, (out,)))] if draw(st.booleans()) else []
    return [x, weight, *bias], given


@st.composite
def transposed(draw, rank):
    given, size, kernel, channels, out, groups = draw(geometry(rank))
    dtype = (draw(st.sampled_from(DTYPES)),)
    rows = zip(size, kernel, given["stride"], given["padding"], given["dilation"], strict=True)
    given["output_padding"] = [
        draw(st.integers(0, max(s, d) - 1))
        for s, d in zip(given["stride"], given["dilation"], strict=True)
    ]
    for i, (n, k, s, p, d) in enumerate(rows):
        while (n - 1) * s - 2 * p + d * (k - 1) + 1 + given["output_padding"][i] <= 0:
            p = given["padding"][i] = p - 1
    x = draw(array(dtype, (draw(st.integers(1, 2)), channels, *size)))
    weight = draw(array(dtype, (channels, out // groups, *kernel)))
    bias = [draw(array(dtype, (out,)))] if draw(st.booleans()) else []
    return [x, weight, *bias], given


@st.composite
def backward(draw, rank, of):
    given, size, kernel, channels, out, groups = draw(geometry(rank))
    dtype = (draw(st.sampled_from(("i64", "f32", "f64"))),)
    batch = draw(st.integers(1, 2))
    grad = draw(array(dtype, (batch, out, *sizes_after(given, size, kernel))))
    if of == "input":
        weight = draw(array(dtype, (out, channels // groups, *kernel)))
        return [grad, weight], given | {"size": size}
    return [grad, draw(array(dtype, (batch, channels, *size)))], given | {"size": kernel}


def whole(function):
    """A function of floats, on integers too: exact, as they are small."""

    def reference(*tensors, **parameters):
        if tensors[0].is_floating_point():
            return function(*tensors, **parameters)
        return function(*(t.double() for t in tensors), **parameters).round().to(tensors[0].dtype)

    return reference


def gradient(rank, of):
    function = getattr(torch.nn.grad, f"conv{rank}d_{of}")

    def by_input(grad, weight, size, groups=1, **given):
        shape = (grad.shape[0], weight.shape[1] * groups, *size)
        return function(shape, weight, grad, groups=groups, **given)

    def by_weight(grad, x, size, groups=1, **given):
        shape = (grad.shape[1], x.shape[1] // groups, *size)
        return function(x, shape, grad, groups=groups, **given)

    return whole(by_input if of == "input" else by_weight)


NEAR: Any = {"ulps": 16, "absolute": 128}
ROWS: Any = {}
for rank in (1, 2, 3):
    ROWS |= {
        f"conv{rank}d": Row(whole(getattr(F, f"conv{rank}d")), forward(rank), **NEAR),
        f"conv_transpose{rank}d": Row(
            whole(getattr(F, f"conv_transpose{rank}d")), transposed(rank), **NEAR
        ),
        f"conv{rank}d_backward_input": Row(
            gradient(rank, "input"), backward(rank, "input"), **NEAR
        ),
        f"conv{rank}d_backward_weight": Row(
            gradient(rank, "weight"), backward(rank, "weight"), **NEAR
        ),
    }  # fmt: skip

test_convolutions = law(ROWS, examples=4)


def test_every_entry_is_compared():
    assert entries("convolutions") == set(ROWS)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_worked_examples(name):
    examples_agree(ROWS, name)

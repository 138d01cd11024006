"""Normalizations are PyTorch's, with and without weights."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
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

functional = torch.nn.functional

LOOSE: dict[str, Any] = {"ulps": 2**10, "absolute": 2**11}
EPS = st.sampled_from((1e-5, 0.5))


@st.composite
def trailing(draw: Any, extra: int = 2, dtypes=WIDE, **params: Any):
    """An array, and up to `extra` arrays of the shape of its last `dims` dimensions."""
    name, dims = draw(st.sampled_from(dtypes)), draw(st.integers(1, 2))
    tail = tuple(draw(positive) for _ in range(dims))
    shape = (*draw(shapes(0, 2)), *tail)
    count = draw(st.integers(0, extra))
    arrays = [draw(array((name,), part)) for part in (shape, *([tail] * count))]
    return arrays, {"dims": dims, **draw(parameters(eps=EPS, **params))}


@st.composite
def channeled(
    draw: Any, stats: int = 0, extra: int = 2, rest: int = 0, groups: bool = False, **params: Any
):
    """An array, `stats` positive numbers per channel, and up to `extra` more of any sign."""
    name = draw(st.sampled_from(WIDE))
    per = draw(st.integers(1, 2)) if groups else 1
    count = draw(positive) * per
    shape = (draw(st.integers(2, 3)), count, *draw(shapes(rest, 2, filled=True)))
    arrays = [draw(array((name,), shape))]
    arrays += [draw(array((name,), (count,), 0.5, 2)) for _ in range(stats)]
    arrays += [draw(array((name,), (count,))) for _ in range(draw(st.integers(0, extra)))]
    given = draw(parameters(**params))
    return arrays, {"groups": count // per, **given} if groups else given


def layer(x, weight=None, bias=None, dims=1, eps=1e-5):
    return functional.layer_norm(x, x.shape[x.dim() - dims :], weight, bias, eps)


def native(x, weight=None, bias=None, dims=1, eps=1e-5):
    return torch.native_layer_norm(x, x.shape[x.dim() - dims :], weight, bias, eps)


def rms(x, weight=None, dims=1, eps=1.1920929e-7):
    return functional.rms_norm(x, x.shape[x.dim() - dims :], weight, eps)


def batch(x, weight=None, bias=None, eps=1e-5):
    return torch.native_batch_norm(x, weight, bias, None, None, True, 0.1, eps)


def training(x, mean, variance, weight=None, bias=None, momentum=0.1, eps=1e-5):
    moved = mean.clone(), variance.clone()
    results = torch.native_batch_norm(x, weight, bias, *moved, True, momentum, eps)
    return (*results, *moved)


def inference(x, mean, variance, weight=None, bias=None, eps=1e-5):
    return functional.batch_norm(x, mean, variance, weight, bias, False, 0.1, eps)


def group(x, weight=None, bias=None, groups=1, eps=1e-5):
    return functional.group_norm(x, groups, weight, bias, eps)


def native_group(x, weight=None, bias=None, groups=1, eps=1e-5):
    """Its statistics are f32 beside half types."""
    cells = x.reshape(x.shape[0], groups, -1)
    rstd = torch.rsqrt(cells.var(2, correction=0) + eps)
    return group(x, weight, bias, groups, eps), cells.mean(2), rstd


def instance(x, weight=None, bias=None, eps=1e-5):
    axes = tuple(range(2, x.dim()))
    mean, variance = x.mean(axes, keepdim=True), x.var(axes, correction=0, keepdim=True)
    shape = [1, -1] + [1] * (x.dim() - 2)
    scaled = (x - mean) / torch.sqrt(variance + eps)
    scaled = scaled if weight is None else scaled * weight.reshape(shape)
    return scaled if bias is None else scaled + bias.reshape(shape)


def affine(x, weight=None, bias=None, axis=-1, dims=1):
    after = x.dim() - axis % x.dim() - dims
    scaled = x if weight is None else x * weight.reshape(*weight.shape, *[1] * after)
    return scaled if bias is None else scaled + bias.reshape(*bias.shape, *[1] * after)


def average(old, new, momentum=0.1):
    return (1 - momentum) * old + momentum * new


def local(x, size, alpha=1e-4, beta=0.75, k=1.0):
    return functional.local_response_norm(
        x.reshape(*x.shape, *[1] * (3 - x.dim())), size, alpha, beta, k
    ).reshape(x.shape)


def window(x, size):
    """The mean of squares that local response normalization divides by."""
    left = functional.pad(x.movedim(1, -1) ** 2, (size // 2, (size - 1) // 2))
    return left.unfold(-1, size, 1).mean(-1).movedim(-1, 1)


SIZE = st.integers(1, 4)

ROWS = {
    "affine": Row(affine, channeled(axis=st.sampled_from((1,))), **LOOSE),
    "layer_norm": Row(layer, trailing(), **LOOSE),
    "native_layer_norm": Row(native, trailing(), **LOOSE),
    "rms_norm": Row(rms, trailing(extra=1, dtypes=FLOATS), **LOOSE),
    "batch_norm": Row(batch, channeled(eps=EPS), **LOOSE),
    "batch_norm_training": Row(
        training, channeled(stats=2, eps=EPS, momentum=floats(0, 1)), **LOOSE
    ),
    "batch_norm_inference": Row(inference, channeled(stats=2, eps=EPS), **LOOSE),
    "group_norm": Row(group, channeled(groups=True, eps=EPS), **LOOSE),
    "native_group_norm": Row(native_group, channeled(groups=True, eps=EPS), dtype=False, **LOOSE),
    "instance_norm": Row(instance, channeled(rest=1, eps=EPS), **LOOSE),
    "moving_average": Row(
        average, channeled(stats=0, extra=0, rest=2).map(lambda drawn: (drawn[0] * 2, {})), **LOOSE
    ),
    "channel_mean_square": Row(window, channeled(extra=0, size=SIZE), **LOOSE),
    "local_response_norm": Row(
        local, channeled(extra=0, rest=1, size=SIZE, alpha=floats(0, 1), k=floats(1, 2)), **LOOSE
    ),
}

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("normalizations")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)

"""Resampling of the library is PyTorch's, for sizes that divide and that do not."""

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
    law,
    torch,
)

F = torch.nn.functional


@st.composite
def lines(draw, dtypes=FLOATS, **more):
    shape = tuple(draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 3))))
    axis, size = draw(st.integers(-len(shape), len(shape) - 1)), draw(st.integers(1, 8))
    given = {"axis": axis, "size": size}
    return [draw(array(dtypes, shape))], given | {n: draw(kind) for n, kind in more.items()}


@st.composite
def planes(draw, rank, dtypes=FLOATS, **more):
    shape = (draw(st.integers(1, 2)), 2, *(draw(st.integers(1, 5)) for _ in range(rank)))
    size = [draw(st.integers(1, 7)) for _ in range(rank)]
    return [draw(array(dtypes, shape))], {"size": size} | {n: draw(k) for n, k in more.items()}


def along(function):
    """A function of the last axis of [batch, channel, axis], of any axis."""

    def reference(x, size, axis=-1, **parameters):
        moved = x.movedim(axis, -1)
        flat = moved.reshape(1, -1, moved.shape[-1])
        result = function(flat, size, **parameters)
        return result.reshape(*moved.shape[:-1], size).movedim(-1, axis)

    return reference


def whole(function):
    """A function of floats on other dtypes; of planes without batches as well."""

    def reference(x, size, **parameters):
        cells = x if x.is_floating_point() else x.double()
        batched = cells.reshape(1, -1, *x.shape[-len(size) :]) if x.ndim < len(size) + 2 else cells
        result = function(batched, size, **parameters)
        return result.reshape(*x.shape[: -len(size)], *size).to(x.dtype)

    return reference


def upsample(mode):
    return lambda x, size, align_corners=False: F.interpolate(
        x, size=size, mode=mode, align_corners=align_corners
    )


def pool_backward(grad, size, axis=-1):
    shape = list(grad.shape)
    shape[axis] = size
    x = torch.zeros(shape, dtype=grad.dtype, requires_grad=True)
    result = along(F.adaptive_avg_pool1d)(x, grad.shape[axis], axis)
    return torch.autograd.grad(result, x, grad)[0]


def pieces(rank):
    pool = {2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}[rank]

    def reference(x, size):
        lead = x.shape[:-rank]
        cells = x.reshape(1, -1, *x.shape[-rank:])
        values, indices = pool(cells.double(), size, return_indices=True)
        return values.reshape(*lead, *size).to(x.dtype), indices.reshape(*lead, *size)

    return reference


CORNERS = {"align_corners": st.booleans()}
NEAR: Any = {"ulps": 16, "absolute": 32}

ROWS = {
    "adaptive_avg_pool": Row(along(F.adaptive_avg_pool1d), lines(WIDE), absolute=8),
    "adaptive_avg_pool_backward": Row(pool_backward, lines(WIDE), absolute=8),
    "adaptive_avg_pool2d": Row(whole(F.adaptive_avg_pool2d), planes(2), absolute=8),
    "adaptive_max_pool": Row(
        along(lambda x, size: F.adaptive_max_pool1d(x.double(), size).to(x.dtype)), lines()
    ),
    "adaptive_max_pool2d": Row(
        whole(lambda x, size: F.adaptive_max_pool2d(x.double(), size).to(x.dtype)), planes(2)
    ),
    "adaptive_max_pool2d_with_indices": Row(pieces(2), planes(2, WIDE)),
    "adaptive_max_pool3d_with_indices": Row(pieces(3), planes(3, WIDE)),
    "upsample_bilinear2d": Row(whole(upsample("bilinear")), planes(2, WIDE, **CORNERS), **NEAR),
    "upsample_linear": Row(along(upsample("linear")), lines(WIDE, **CORNERS), **NEAR),
    "upsample_nearest": Row(
        along(lambda x, size: x[..., torch.arange(size) * x.shape[-1] // size]), lines()
    ),
    "upsample_nearest2d": Row(
        whole(lambda x, size: F.interpolate(x, size=size, mode="nearest")), planes(2)
    ),
    "upsample_trilinear3d": Row(
        whole(upsample("trilinear")), planes(3, WIDE, **CORNERS), **NEAR
    ),
}  # fmt: skip

test_resampling = law(ROWS, examples=8)


def test_every_entry_is_compared():
    assert entries("resampling") == set(ROWS)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_worked_examples(name):
    examples_agree(ROWS, name)

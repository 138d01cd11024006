"""Pools of the library are PyTorch's: strides, padding, dilation, ceil_mode, and any partition."""

# pyright: basic
# PyTorch has no types to speak of.

import math
from typing import Any

import numpy as np
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
def windows(draw, rank, dtypes=FLOATS, ceil=True, dilated=False, **more):
    """Planes, and parameters of windows that fit; cells differ, so that maxima are unique."""
    count = range(rank)
    kernel = [draw(st.integers(1, 3)) for _ in count]
    given = {"kernel": kernel}
    stride = [draw(st.integers(1, 3)) for _ in count]
    if draw(st.booleans()):
        given["stride"] = stride
    if ceil:
        given["padding"] = [draw(st.integers(0, k // 2)) for k in kernel]
        given["ceil_mode"] = draw(st.booleans())
    dilation = [draw(st.integers(1, 2 if k < 3 else 1)) for k in kernel] if dilated else [1] * rank
    if dilated:
        given["dilation"] = dilation
    size = [
        draw(st.integers(d * (k - 1) + 1, 8 - rank)) for d, k in zip(dilation, kernel, strict=True)
    ]
    shape = (*draw(st.sampled_from([(1,), (2, 1), (1, 2)])), *size)
    cells = draw(array(dtypes, shape))
    if dilated:
        order = np.random.default_rng(cells.size).permutation(cells.size).reshape(shape)
        cells = order.astype(cells.dtype)
    given |= {name: draw(kind) for name, kind in more.items()}
    return [cells], given


def max_pool(rank, indices=False):
    function = getattr(F, f"max_pool{rank}d")

    def reference(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        return function(x, kernel, stride, padding, dilation, ceil_mode, indices)

    return reference


def avg_pool(rank):
    function = getattr(F, f"avg_pool{rank}d")

    def reference(
        x, kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor=0
    ):
        more = {} if rank == 1 else {"divisor_override": divisor or None}
        return function(x, kernel, stride, padding, ceil_mode, count_include_pad, **more)

    return reference


def lp_pool(rank):
    function = getattr(F, f"lp_pool{rank}d")

    def reference(x, norm, kernel, stride=None):
        plain = (kernel, stride) if rank > 1 else (kernel[0], stride and stride[0])
        return function(x, norm, *plain)

    return reference


def rows(rank):
    included: Any = {"count_include_pad": st.booleans()}
    if rank > 1:
        included["divisor"] = st.integers(0, 3)
    return {
        f"max_pool{rank}d": Row(max_pool(rank), windows(rank, WIDE, dilated=True)),
        f"max_pool{rank}d_with_indices": Row(
            max_pool(rank, True), windows(rank, WIDE, dilated=True)
        ),
        f"avg_pool{rank}d": Row(avg_pool(rank), windows(rank, WIDE, **included), absolute=8),
        f"lp_pool{rank}d": Row(
            lp_pool(rank),
            windows(rank, WIDE, ceil=False, norm=st.sampled_from((1.0, 2.0, 4.0))),
            ulps=16, absolute=16,
        ),
    }  # fmt: skip


@st.composite
def backward(draw, rank):
    (x,), given = draw(windows(rank, WIDE, dilated=True))
    result, indices = max_pool(rank, True)(torch.tensor(x), **given)
    random = np.random.default_rng(x.size)
    grad = random.integers(-9, 9, result.shape).astype(x.dtype)
    del given["ceil_mode"]
    return [grad, indices.numpy()], given | {"size": list(x.shape[-rank:])}


def max_pool_backward(grad, indices, size, **_):
    rank = len(size)
    flat = torch.zeros((*grad.shape[:-rank], math.prod(size)), dtype=grad.dtype)
    return flat.scatter_add(-1, indices.flatten(-rank), grad.flatten(-rank)).unflatten(-1, size)


@st.composite
def columns(draw):
    (x,), given = draw(windows(2, WIDE, dilated=True))
    given.pop("ceil_mode")
    return [x if x.ndim == 4 else x[None]], given


def unfold(x, kernel, stride=1, padding=0, dilation=1):
    cells = x if x.is_floating_point() else x.double()
    return F.unfold(cells, kernel, dilation, padding, stride).to(x.dtype)


OTHERS = {
    "max_pool2d_with_indices_backward": Row(max_pool_backward, backward(2), absolute=8),
    "max_pool3d_with_indices_backward": Row(max_pool_backward, backward(3), absolute=8),
    "unfold2d": Row(unfold, columns()),
}
ROWS = rows(1) | rows(2) | rows(3) | OTHERS

test_pools = law(ROWS, examples=6)


def test_every_entry_is_compared():
    assert entries("pooling") == set(ROWS)


@pytest.mark.parametrize("name", [name for name in sorted(ROWS) if name[-2:] != "3d"])
def test_worked_examples(name):
    row = ROWS[name]
    if name in OTHERS:
        examples_agree(ROWS, name)
        return
    rank = int(name.split("pool")[1][0])

    def reference(x, **parameters):
        if not x.is_floating_point():
            x = x.double()
        batched = x.reshape(1, 1, *x.shape[-rank:])
        results = row.reference(batched, **parameters)
        several = results if isinstance(results, tuple) else (results,)
        return tuple(result.reshape(result.shape[2:]) for result in several)

    examples_agree({name: Row(reference, row.draw)}, name)

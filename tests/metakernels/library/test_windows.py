"""Windows and convolutions over any number of axes give what NumPy's sliding windows give."""

# pyright: basic

import itertools

import numpy as np
import pytest

from tests.metakernels.library.applying import run

FOLDS = {
    "window_sum": (np.sum, 0),
    "window_product": (np.prod, 1),
    "window_max": (np.max, -np.inf),
    "window_min": (np.min, np.inf),
}
WAYS = [
    {"window": [2, 3], "stride": [1, 2], "low": [0, 1], "high": [1, 0], "dilation": [1, 1]},
    {"window": [1, 2], "stride": [2, 1], "low": [0, -1], "high": [0, 2], "dilation": [1, 3]},
    {"window": [1, 1], "stride": [1, 1], "low": [0, 0], "high": [0, 0], "dilation": [1, 1]},
]


def around(x, low, high, fill):
    """`x` with cells before and after, or without some."""
    x = np.pad(
        x, [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)], constant_values=fill
    )
    sides = zip(low, high, x.shape, strict=True)
    return x[tuple(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in sides)]


def windows(x, size, stride, dilation):
    """The windows of `x`, their cells along further axes."""
    whole = [d * (k - 1) + 1 for d, k in zip(dilation, size, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, whole)
    steps = [slice(None, None, s) for s in stride]
    return seen[tuple(steps + [slice(None, None, d) for d in dilation])]


@pytest.mark.parametrize(("name", "way"), list(itertools.product(FOLDS, WAYS)))
def test_windows(name, way):
    fold, fill = FOLDS[name]
    x = np.random.default_rng(0).integers(-3, 4, (4, 7)).astype(np.float32)
    (got,) = run(name, [x], way)
    cells = windows(around(x, way["low"], way["high"], fill), *(
        way[key] for key in ("window", "stride", "dilation")
    ))  # fmt: skip
    np.testing.assert_array_equal(got, fold(cells, axis=(2, 3)))


@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(groups):
    rng = np.random.default_rng(1)
    x = rng.integers(-3, 4, (2, 4, 5, 6)).astype(np.float32)
    weight = rng.integers(-3, 4, (6, 4 // groups, 2, 3)).astype(np.float32)
    way = {"stride": [1, 2], "low": [1, 0], "high": [0, 2], "dilation": [2, 1]}
    (got,) = run("convolution", [x, weight], {**way, "groups": groups})
    padded = around(x, [0, 0, 1, 0], [0, 0, 0, 2], 0)
    cells = windows(padded, [1, 1, 2, 3], [1, 1, 1, 2], [1, 1, 2, 1])[:, :, :, :, 0, 0]
    cells = cells.reshape(2, groups, -1, *cells.shape[2:])
    parts = weight.reshape(groups, 6 // groups, *weight.shape[1:])
    wanted = np.einsum("ngcyxhw,gfchw->ngfyx", cells, parts).reshape(got.shape)
    np.testing.assert_array_equal(got, wanted)

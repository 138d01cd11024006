"""Products of rows with a matrix, and what follows them.

Each is a layer and the functions after it, as benchmarks of kernels ask for; sizes are small.
"""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.importers.torch.sweep.chains import (
    Around,
    add,
    chain,
    clamp,
    largest,
    leaky,
    logsumexp,
    mean,
    mul,
    over,
    smallest,
    softmax,
    sub,
    summed,
    swish,
    times,
    with_weight,
)

F = nn.functional

ROW = 10
SIZE = (3, ROW)


def linear(width=8):
    return nn.Linear(ROW, width)


def pooled(*args):
    return lambda x: F.avg_pool1d(x.unsqueeze(1), *args).squeeze(1)


class Pixels(nn.InstanceNorm2d):
    """An instance norm of images of one pixel, which is refused in training: over another view."""

    def forward(self, x):
        return super().forward(x.reshape(1, 1, *x.shape)).reshape(x.shape)


ROWS: dict[str, tuple[Any, ...]] = {
    "09 subtract, multiply, relu": (
        lambda: chain(linear(), lambda x: (x - 2.0) * 1.5, torch.relu),
        SIZE,
    ),
    "12 multiply, leaky relu": (lambda: chain(linear(), times(2.0), nn.LeakyReLU(0.1)), SIZE),
    "14 divide, sum, scale": (
        lambda: chain(with_weight(lambda x, w: x @ w.T, 8, ROW), over(2), summed(1), times(1.5)),
        SIZE,
    ),
    "18 folds of one row": (
        lambda: chain(linear(), summed(1), largest(1), mean(1), logsumexp(1), logsumexp(1)),
        SIZE,
    ),
    "22 scale, doubled, clamp, log-sum-exp, mish": (
        lambda: chain(
            linear(),
            times(2.0),
            lambda x: x + x,
            clamp(-10, 10),
            logsumexp(1),
            lambda x: x * F.mish(x),
        ),
        SIZE,
    ),
    "28 instance norm beside rows": (
        lambda: Around(chain(linear(ROW), Pixels(1)), lambda y, x: (y + x) * x),
        SIZE,
    ),
    "29 mish twice": (lambda: chain(linear(), F.mish, F.mish), SIZE),
    "30 group norm, hardtanh": (
        lambda: chain(linear(), nn.GroupNorm(4, 8), nn.Hardtanh(-2, 2)),
        SIZE,
    ),
    "33 scale, batch norm": (
        lambda: chain(linear(), with_weight(mul, 8), nn.BatchNorm1d(8)),
        SIZE,
    ),
    "37 swish, bias, group norm": (
        lambda: chain(linear(), swish, with_weight(add, 8), nn.GroupNorm(4, 8)),
        SIZE,
    ),
    "39 scale, batch norm with momentum": (
        lambda: chain(linear(), with_weight(mul, 8), nn.BatchNorm1d(8, 1e-5, 0.3)),
        SIZE,
    ),
    "40 scale, detached residual": (
        lambda: chain(linear(), lambda x: x * 0.5 + x.clone().detach()),
        SIZE,
    ),
    "41 batch norm, gelu, relu": (
        lambda: chain(linear(), nn.BatchNorm1d(8), F.gelu, torch.relu),
        SIZE,
    ),
    "45 sigmoid, product, log-sum-exp": (
        lambda: chain(linear(), torch.sigmoid, nn.Linear(8, 5), logsumexp(1, keep=False)),
        SIZE,
    ),
    "51 subtract, mean, log-sum-exp, gelu, residual": (
        lambda: Around(
            chain(linear(), with_weight(sub, 8), mean(1), logsumexp(1), F.gelu),
            lambda y, x: y + x.clone().detach(),
        ),
        SIZE,
    ),
    "53 scale, hardtanh, gelu": (
        lambda: chain(linear(), times(0.5), nn.Hardtanh(-2, 2), nn.GELU()),
        SIZE,
    ),
    "55 pool of a row, sum, scale": (
        lambda: chain(
            linear(),
            lambda x: F.max_pool1d(x.unsqueeze(1), 2).squeeze(1),
            summed(1, keep=False),
            times(0.5),
        ),
        SIZE,
    ),
    "56 sigmoid, sum": (lambda: chain(linear(), torch.sigmoid, summed(1)), SIZE),
    "59 swish, scale": (lambda: chain(linear(), swish, times(2.0)), SIZE),
    "62 group norm, leaky relu, doubled": (
        lambda: chain(linear(), nn.GroupNorm(2, 8), nn.LeakyReLU(0.01), lambda x: x + x),
        SIZE,
    ),
    "63 relu, divide": (lambda: chain(linear(), torch.relu, over(2.0)), SIZE),
    "64 log-sum-exp, activations": (
        lambda: chain(linear(), logsumexp(1), leaky(0.01), leaky(0.01), F.gelu, F.gelu),
        SIZE,
    ),
    "66 dropout, mean, softmax": (
        lambda: chain(linear(), nn.Dropout(0.0), mean(1), softmax(1)),
        SIZE,
    ),
    "68 min with a parameter, subtract": (
        lambda: chain(linear(), with_weight(lambda x, c: torch.min(x, c) - c)),
        SIZE,
    ),
    "70 sigmoid, scale, residual": (
        lambda: chain(linear(), lambda x: torch.sigmoid(x) * 2.0 + x),
        SIZE,
    ),
    "75 group norm, min, bias": (
        lambda: chain(linear(), nn.GroupNorm(4, 8), smallest(1), with_weight(add, 1, 8, 1, 1)),
        SIZE,
    ),
    "76 bias, relu": (
        lambda: chain(nn.Linear(ROW, 8, bias=False), with_weight(add, 8), torch.relu),
        SIZE,
    ),
    "80 max, centred, gelu": (
        lambda: chain(linear(), largest(1), lambda x: x - x.mean(1, keepdim=True), F.gelu),
        SIZE,
    ),
    "81 swish, divide, clamp, tanh, clamp": (
        lambda: chain(linear(), swish, over(2.0), clamp(-1, 1), torch.tanh, clamp(-1, 1)),
        SIZE,
    ),
    "84 batch norm, scale, softmax": (
        lambda: chain(linear(), nn.BatchNorm1d(8), with_weight(mul, 1), softmax(1)),
        SIZE,
    ),
    "86 divide, gelu": (lambda: chain(linear(), over(10.0), F.gelu), SIZE),
    "88 group norm, swish, multiply, swish": (
        lambda: chain(linear(), nn.GroupNorm(4, 8), swish, with_weight(mul, 8), swish),
        SIZE,
    ),
    "94 bias, hardtanh, mish, group norm": (
        lambda: chain(linear(), with_weight(add, 8), nn.Hardtanh(), nn.Mish(), nn.GroupNorm(4, 8)),
        SIZE,
    ),
    "95 bias, swish, tanh, gelu, hardtanh": (
        lambda: chain(linear(), with_weight(add, 8), swish, torch.tanh, F.gelu, F.hardtanh),
        SIZE,
    ),
    "97 batch norm, bias, divide, swish": (
        lambda: chain(
            linear(), nn.BatchNorm1d(8, 1e-5, 0.1), with_weight(add, 1), over(1.0), swish
        ),
        SIZE,
    ),
    "98 pool of a row, gelu, scale, max": (
        lambda: chain(linear(), pooled(2), F.gelu, times(2.0), largest(1, keep=False)),
        SIZE,
    ),
    "99 gelu, softmax": (lambda: chain(linear(), F.gelu, softmax(1)), SIZE),
}

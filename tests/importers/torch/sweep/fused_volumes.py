"""Convolutions of volumes, transposed or not, and what follows them.

Each is a layer and the functions after it, as benchmarks of kernels ask for; sizes are small.
"""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.importers.torch.sweep.chains import (
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

SIZE = (2, 3, 4, 5, 6)
bias3d = (4, 1, 1, 1)


def conv3d(channels=4):
    return nn.Conv3d(3, channels, 3)


def up3d(channels=4, stride=2):
    return nn.ConvTranspose3d(3, channels, 3, stride, padding=1, output_padding=stride - 1)


class Summing(nn.Module):
    """A transposed convolution and a third input added before hard swish."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.bias = up3d(), nn.Parameter(torch.randn(bias3d))

    def forward(self, x, y):
        x = self.layer(x) + y
        return x * F.hardswish(x)


VOLUMES: dict[str, tuple[Any, ...]] = {
    "03 sum, layer norm, pool, gelu": (
        lambda: chain(up3d(), with_weight(add), nn.LayerNorm(12), nn.AvgPool3d(2), nn.GELU()),
        SIZE,
    ),
    "06 softmax, two pools": (
        lambda: chain(nn.Conv3d(3, 4, 2), softmax(1), nn.MaxPool3d(2, 1), nn.MaxPool3d(2, 1)),
        SIZE,
    ),
    "07 four activations, bias": (
        lambda: chain(
            conv3d(), torch.relu, leaky(0.01), F.gelu, torch.sigmoid, with_weight(add, *bias3d)
        ),
        SIZE,
    ),
    "08 divide, max, pool, bias, sum": (
        lambda: chain(
            nn.Conv3d(3, 4, 2),
            over(2.0),
            nn.MaxPool3d(2),
            nn.AdaptiveAvgPool3d(1),
            with_weight(add, *bias3d),
            summed(1, keep=False),
        ),
        SIZE,
    ),
    "13 mean, bias, softmax, tanh, scale": (
        lambda: chain(
            up3d(), mean(2), with_weight(add, *bias3d), softmax(1), torch.tanh, times(2.0)
        ),
        SIZE,
    ),
    "15 batch norm, centred": (
        lambda: chain(up3d(), nn.BatchNorm3d(4), lambda x: x - x.mean((2, 3, 4), keepdim=True)),
        SIZE,
    ),
    "20 residuals of its own": (
        lambda: chain(
            up3d(), with_weight(lambda x, b: ((x + b) + x.clone().detach()) * x + x, *bias3d)
        ),
        SIZE,
    ),
    "23 group norm, mean": (
        lambda: chain(conv3d(), nn.GroupNorm(2, 4), mean(1, 2, 3, 4, keep=False)),
        SIZE,
    ),
    "24 min, softmax": (lambda: chain(conv3d(), smallest(2, keep=False), softmax(1)), SIZE),
    "26 beside another volume": (Summing, SIZE, (2, 4, 8, 10, 12)),
    "27 hard swish, relu, softmax, mean": (
        lambda: chain(conv3d(), F.hardswish, torch.relu, softmax(1), mean(2, 3, 4, keep=False)),
        SIZE,
    ),
    "34 layer norm, gelu, scale": (
        lambda: chain(up3d(), nn.LayerNorm(12, eps=1e-5), F.gelu, times(1.0)),
        SIZE,
    ),
    "38 pool, clamp, softmax, scale": (
        lambda: chain(
            nn.AvgPool3d(2),
            up3d(),
            clamp(0, 1),
            lambda x: torch.softmax(x.flatten(2), 2).view_as(x),
            with_weight(mul, 1, 4, 1, 1, 1),
        ),
        SIZE,
    ),
    "43 pool, log-sum-exp, relu": (
        lambda: chain(nn.Conv3d(3, 4, 3, 1, 1), nn.MaxPool3d(2, 2), logsumexp(1), torch.relu),
        SIZE,
    ),
    "47 mish, tanh": (lambda: chain(conv3d(), F.mish, torch.tanh), SIZE),
    "48 scale, tanh, scale, sigmoid": (
        lambda: chain(
            conv3d(),
            with_weight(mul, *bias3d),
            torch.tanh,
            with_weight(mul, *bias3d),
            torch.sigmoid,
        ),
        SIZE,
    ),
    "49 softmax, sigmoid": (lambda: chain(up3d(), softmax(1), torch.sigmoid), SIZE),
    "50 scale, pool, bias, scale": (
        lambda: chain(
            up3d(), with_weight(mul), nn.AvgPool3d(2), with_weight(add, *bias3d), with_weight(mul)
        ),
        SIZE,
    ),
    "58 log-sum-exp, hard swish, subtract, clamp": (
        lambda: chain(
            up3d(),
            logsumexp(1),
            lambda x: x * torch.sigmoid(x + 3) / 6,
            with_weight(sub, 1, 1, 1, 1),
            clamp(-1, 1),
        ),
        SIZE,
    ),
    "60 swish, group norm, hard swish": (
        lambda: chain(up3d(), swish, nn.GroupNorm(2, 4), F.hardswish),
        SIZE,
    ),
    "61 relu, group norm": (
        lambda: chain(nn.ConvTranspose3d(3, 4, 3, bias=False), nn.ReLU(), nn.GroupNorm(2, 4)),
        SIZE,
    ),
    "72 batch norm, two pools": (
        lambda: chain(up3d(), nn.BatchNorm3d(4), nn.AvgPool3d(2), nn.AvgPool3d(2)),
        SIZE,
    ),
    "74 leaky relu, multiply, leaky relu, max": (
        lambda: chain(
            up3d(),
            nn.LeakyReLU(0.2),
            with_weight(mul, *bias3d),
            nn.LeakyReLU(0.2),
            nn.MaxPool3d(2),
        ),
        SIZE,
    ),
    "77 scale, batch norm, mean": (
        lambda: chain(up3d(), times(2.0), nn.BatchNorm3d(4), nn.AdaptiveAvgPool3d((1, 1, 1))),
        SIZE,
    ),
    "78 two pools, sum": (
        lambda: chain(up3d(), nn.MaxPool3d(2), nn.MaxPool3d(3), summed(1)),
        SIZE,
    ),
    "79 multiply, instance norm, clamp, multiply, max": (
        lambda: chain(
            conv3d(),
            with_weight(mul, *bias3d),
            nn.InstanceNorm3d(4),
            clamp(-1.0, 1.0),
            with_weight(mul, *bias3d),
            largest(1, keep=False),
        ),
        SIZE,
    ),
    "83 group norm, min, clamp, dropout": (
        lambda: chain(
            conv3d(),
            nn.GroupNorm(2, 4),
            lambda x: torch.min(x, torch.tensor(0.0)),
            clamp(0.0, 1.0),
            nn.Dropout(0.0),
        ),
        SIZE,
    ),
    "89 pool, softmax, subtract, swish, max": (
        lambda: chain(
            up3d(),
            nn.MaxPool3d(2),
            softmax(1),
            with_weight(sub, *bias3d),
            swish,
            largest(1, keep=False),
        ),
        SIZE,
    ),
    "90 leaky relu, bias, clamp, gelu": (
        lambda: chain(conv3d(), leaky(0.2), with_weight(add, *bias3d), clamp(-1, 1), F.gelu),
        SIZE,
    ),
    "96 scale, pool, mean, clamp": (
        lambda: chain(
            up3d(), times(0.5), nn.MaxPool3d(2), nn.AdaptiveAvgPool3d((1, 1, 1)), clamp(0, 1)
        ),
        SIZE,
    ),
    "100 clamp, divide": (
        lambda: chain(up3d(), lambda x: torch.clamp(x, min=-0.1), over(2.0)),
        SIZE,
    ),
}

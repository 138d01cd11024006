"""Convolutions of images, transposed or not, and what follows them.

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
    leaky,
    logsumexp,
    mean,
    mul,
    over,
    residual,
    smallest,
    softmax,
    sub,
    summed,
    times,
    with_weight,
)

F = nn.functional

SIZE = (2, 3, 7, 8)
bias2d = (4, 1, 1)


def conv2d(channels=4):
    return nn.Conv2d(3, channels, 3)


def up2d(channels=4, stride=2):
    return nn.ConvTranspose2d(3, channels, 3, stride, padding=1, output_padding=stride - 1)


IMAGES: dict[str, tuple[Any, ...]] = {
    "01 relu, bias": (lambda: chain(conv2d(), F.relu, with_weight(add, *bias2d)), SIZE),
    "02 bias, clamp, scale, clamp, divide": (
        lambda: chain(
            up2d(), with_weight(add, *bias2d), clamp(0, 1), times(2.0), clamp(0, 1), over(2.0)
        ),
        SIZE,
    ),
    "04 mish twice": (lambda: chain(conv2d(), F.mish, F.mish), SIZE),
    "05 subtract, tanh": (lambda: chain(up2d(), with_weight(sub, *bias2d), torch.tanh), SIZE),
    "10 pool, hardtanh, mean, tanh": (
        lambda: chain(up2d(), nn.MaxPool2d(2), nn.Hardtanh(-1, 1), mean(2, 3), torch.tanh),
        SIZE,
    ),
    "11 batch norm, tanh, pool, group norm": (
        lambda: chain(up2d(), nn.BatchNorm2d(4), nn.Tanh(), nn.MaxPool2d(2), nn.GroupNorm(2, 4)),
        SIZE,
    ),
    "16 mish, add, hardtanh, scale": (
        lambda: chain(up2d(), F.mish, lambda x: x + 0.5, lambda x: F.hardtanh(x, -1, 1), times(2)),
        SIZE,
    ),
    "17 instance norm, divide": (lambda: chain(conv2d(), nn.InstanceNorm2d(4), over(2.0)), SIZE),
    "19 gelu, group norm": (
        lambda: chain(up2d(stride=1), F.gelu, nn.GroupNorm(2, 4)),
        SIZE,
    ),
    "21 add, scale, sigmoid, group norm": (
        lambda: chain(
            conv2d(),
            with_weight(add, *bias2d),
            with_weight(mul, *bias2d),
            torch.sigmoid,
            nn.GroupNorm(2, 4),
        ),
        SIZE,
    ),
    "25 min, tanh twice": (lambda: chain(conv2d(), smallest(1), torch.tanh, torch.tanh), SIZE),
    "31 min with a number, bias, scale": (
        lambda: chain(
            conv2d(),
            lambda x: torch.min(x, torch.tensor(0.5)),
            with_weight(add, *bias2d),
            times(2.0),
        ),
        SIZE,
    ),
    "32 scale, min": (lambda: chain(conv2d(), times(2.0), smallest(1)), SIZE),
    "35 subtract, hard swish, pool, mish": (
        lambda: chain(conv2d(), lambda x: x - 0.5, F.hardswish, nn.MaxPool2d(2), F.mish),
        SIZE,
    ),
    "36 min, sum, gelu, bias": (
        lambda: chain(up2d(), smallest(1), summed(2), F.gelu, with_weight(add, 1, 1, 1)),
        SIZE,
    ),
    "42 mean, bias, log-sum-exp, sum, scale": (
        lambda: chain(
            up2d(stride=1),
            mean(2, 3),
            with_weight(add, *bias2d),
            logsumexp(1),
            summed(2, 3, keep=False),
            times(10.0),
        ),
        SIZE,
    ),
    "44 scale, two means": (
        lambda: chain(up2d(), times(0.5), mean(2, 3), mean(2, 3)),
        SIZE,
    ),
    "46 subtract, tanh, subtract, pool": (
        lambda: chain(conv2d(), lambda x: x - 0.5, torch.tanh, lambda x: x - 0.2, nn.AvgPool2d(2)),
        SIZE,
    ),
    "52 mish as written, batch norm": (
        lambda: chain(
            conv2d(), lambda x: torch.multiply(torch.tanh(F.softplus(x)), x), nn.BatchNorm2d(4)
        ),
        SIZE,
    ),
    "54 multiply, leaky relu, gelu": (
        lambda: chain(conv2d(), with_weight(mul, *bias2d), nn.LeakyReLU(), F.gelu),
        SIZE,
    ),
    "57 relu, hard swish as written": (
        lambda: chain(conv2d(), torch.relu, lambda x: x * torch.clamp((x + 3) / 6, 0, 1)),
        SIZE,
    ),
    "65 pool, sigmoid, sum": (
        lambda: chain(conv2d(), nn.AvgPool2d(2), torch.sigmoid, summed(1, 2, 3, keep=False)),
        SIZE,
    ),
    "67 gelu, mean": (
        lambda: chain(
            conv2d(), F.gelu, lambda x: F.adaptive_avg_pool2d(x, 1).squeeze(-1).squeeze(-1)
        ),
        SIZE,
    ),
    "69 hard swish, relu": (lambda: chain(conv2d(), F.hardswish, torch.relu), SIZE),
    "71 divide, leaky relu": (lambda: chain(conv2d(), over(2), leaky(0.01)), SIZE),
    "73 batch norm, scale": (lambda: chain(conv2d(), nn.BatchNorm2d(4), times(2.0)), SIZE),
    "82 tanh, scale, bias, max": (
        lambda: chain(conv2d(), torch.tanh, times(2.0), with_weight(add, *bias2d), nn.MaxPool2d(2)),
        SIZE,
    ),
    "85 group norm, scale, pool, clamp": (
        lambda: chain(
            conv2d(), nn.GroupNorm(2, 4), with_weight(mul, *bias2d), nn.MaxPool2d(2), clamp(0, 1)
        ),
        SIZE,
    ),
    "87 subtract twice, mish": (
        lambda: chain(conv2d(), lambda x: x - 0.5 - 0.2, F.mish),
        SIZE,
    ),
    "91 softmax, bias, scale, sigmoid": (
        lambda: chain(up2d(), softmax(1), with_weight(add, *bias2d), times(2.0), torch.sigmoid),
        SIZE,
    ),
    "92 group norm, tanh, hard swish, residual, log-sum-exp": (
        lambda: chain(
            conv2d(), residual(nn.GroupNorm(2, 4, 1e-5), nn.Tanh(), nn.Hardswish()), logsumexp(1)
        ),
        SIZE,
    ),
    "93 add, min, gelu, multiply": (
        lambda: chain(up2d(), lambda x: torch.min(x + 0.5, torch.tensor(0.0)), F.gelu, times(2.0)),
        SIZE,
    ),
}

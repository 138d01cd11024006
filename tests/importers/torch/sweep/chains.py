"""Programs that are one step after another: layers, functions, and functions of a parameter.

chain(nn.Conv2d(3, 4, 3), F.relu, with_weight(torch.add, 4, 1, 1))
"""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

F = nn.functional

add, sub, mul = torch.add, torch.sub, torch.mul


class Step(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class WithWeight(nn.Module):
    """A function of what comes in and of a parameter."""

    def __init__(self, function: Callable[..., Any], *shape: int) -> None:
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.randn(shape) + 0.1)

    def forward(self, x):
        return self.function(x, self.weight)


class Around(nn.Module):
    """A function of what a layer makes and of what comes in."""

    def __init__(self, layer: nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x):
        return self.function(self.layer(x), x)


def chain(*steps: Callable[..., Any]) -> nn.Sequential:
    """Layers and functions, one after another."""
    return nn.Sequential(*(s if isinstance(s, nn.Module) else Step(s) for s in steps))


def residual(*steps: Callable[..., Any]) -> Around:
    """What the steps make of `x`, plus `x`."""
    return Around(chain(*steps), torch.add)


with_weight = WithWeight


def times(factor):
    return lambda x: x * factor


def over(divisor):
    return lambda x: x / divisor


def clamp(low=None, high=None):
    return lambda x: torch.clamp(x, low, high)


def summed(*dims, keep=True):
    return lambda x: x.sum(dims, keepdim=keep)


def mean(*dims, keep=True):
    return lambda x: x.mean(dims, keepdim=keep)


def largest(dim, keep=True):
    return lambda x: torch.max(x, dim, keepdim=keep)[0]


def smallest(dim, keep=True):
    return lambda x: torch.min(x, dim, keepdim=keep)[0]


def logsumexp(*dims, keep=True):
    return lambda x: torch.logsumexp(x, dims, keepdim=keep)


def softmax(dim):
    return lambda x: torch.softmax(x, dim)


def leaky(slope):
    return lambda x: F.leaky_relu(x, slope)


def swish(x):
    return torch.sigmoid(x) * x

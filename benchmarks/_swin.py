"""Swin, small: attention in windows of an image, which every second block shifts.

model, shape = swin()       # a module with random weights, and its input's shape
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[int, ...]]


def partition(x: Tensor, window: int) -> Tensor:
    """Images (batch, height, width, channels) as windows (windows, cells, channels)."""
    b, h, w, c = x.shape
    x = x.view(b, h // window, window, w // window, window, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, c)


def reverse(windows: Tensor, window: int, h: int, w: int) -> Tensor:
    """The images of such windows."""
    c = windows.shape[-1]
    x = windows.view(-1, h // window, w // window, window, window, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, h, w, c)


class WindowAttention(nn.Module):
    """Attention among the cells of a window, with a bias for each distance."""

    def __init__(self, width: int, window: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.1)
        at = torch.stack(
            torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
        ).flatten(1)
        apart = (at[:, :, None] - at[:, None, :]) + window - 1
        self.register_buffer("places", (apart[0] * (2 * window - 1) + apart[1]).flatten())

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        bias = self.table[self.places].view(n, n, self.heads).permute(2, 0, 1)
        scores = scores + bias.unsqueeze(0)
        if mask is not None:
            count = mask.shape[0]
            scores = scores.view(b // count, count, self.heads, n, n) + mask[None, :, None]
            scores = scores.view(-1, self.heads, n, n)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)
        return self.out(mixed)


class SwinBlock(nn.Module):
    """Attention in windows and a perceptron, each after a norm and beside its input."""

    def __init__(self, width: int, size: int, window: int, heads: int, shift: int) -> None:
        super().__init__()
        self.size, self.window, self.shift = size, window, shift
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = WindowAttention(width, window, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        mask = None
        if shift:
            regions = torch.zeros(1, size, size, 1)
            cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
            for n, (rows, columns) in enumerate((r, c) for r in cuts for c in cuts):
                regions[:, rows, columns] = n
            flat = partition(regions, window).squeeze(-1)
            apart = flat[:, None, :] != flat[:, :, None]
            mask = torch.zeros(apart.shape).masked_fill(apart, -100.0)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        h = self.first(x).view(b, self.size, self.size, c)
        if self.shift:
            h = torch.roll(h, (-self.shift, -self.shift), (1, 2))
        h = self.attention(partition(h, self.window), self.mask)
        h = reverse(h, self.window, self.size, self.size)
        if self.shift:
            h = torch.roll(h, (self.shift, self.shift), (1, 2))
        x = x + h.reshape(b, n, c)
        return x + self.mlp(self.second(x))


class PatchMerging(nn.Module):
    """Four neighbours side by side, normed, and projected to twice the width."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.norm, self.project = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, False)

    def forward(self, x: Tensor) -> Tensor:
        b, _, c = x.shape
        x = x.view(b, self.size, self.size, c)
        x = torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
        return self.project(self.norm(x.view(b, -1, 4 * c)))


class Patches(nn.Module):
    """Images as rows of patches."""

    def __init__(self, width: int, patch: int) -> None:
        super().__init__()
        self.project, self.norm = nn.Conv2d(3, width, patch, patch), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.project(x).flatten(2).transpose(1, 2))


def swin(width: int = 48, size: int = 28, window: int = 7) -> Made:
    """Swin of two stages of two blocks."""
    layers: list[nn.Module] = [Patches(width, 4)]
    for stage in range(2):
        if stage:
            layers.append(PatchMerging(width, size))
            width, size = 2 * width, size // 2
        layers += [
            SwinBlock(width, size, window, 3 * 2**stage, shift) for shift in (0, window // 2)
        ]
    norm = nn.LayerNorm(width)
    model = nn.Sequential(*layers, norm, nn.Flatten(), nn.Linear(size * size * width, 10))
    return model, (2, 3, 112, 112)

"""Whole networks that benchmarks of kernels have besides those of `vision`, small and random."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import math

import torch
from torch import nn

from tests.importers.torch.sweep.chains import chain
from tests.importers.torch.sweep.vision import unit

F = nn.functional
r = torch.randn


class Bottleneck(nn.Module):
    def __init__(self, have, inner, want, stride=1, groups=1):
        super().__init__()
        self.body = chain(
            unit(have, inner, 1), unit(inner, inner, 3, stride, groups),
            unit(inner, want, 1, act=nn.Identity),
        )  # fmt: skip
        self.short = nn.Identity()
        if have != want or stride != 1:
            self.short = unit(have, want, 1, stride, act=nn.Identity)

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


class Fire(nn.Module):
    def __init__(self, have, squeezed, want):
        super().__init__()
        self.squeeze = nn.Conv2d(have, squeezed, 1)
        self.one, self.three = (
            nn.Conv2d(squeezed, want, 1),
            nn.Conv2d(squeezed, want, 3, padding=1),
        )

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat((F.relu(self.one(x)), F.relu(self.three(x))), 1)


class CosineWindows(nn.Module):
    """Attention in shifted windows by cosines, with a bias computed of logarithms of distances."""

    def __init__(self, width=6, heads=2, window=3, shift=1):
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((heads, 1, 1), math.log(10.0)))
        self.bias = chain(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, heads, bias=False))
        self.norm = nn.LayerNorm(width)
        at = torch.stack(torch.meshgrid(*[torch.arange(window)] * 2, indexing="ij"), -1).view(-1, 2)
        apart = (at[:, None] - at).float() * 8 / (window - 1)
        self.register_buffer("apart", apart.sign() * (apart.abs() + 1).log2() / 3)

    def forward(self, x):
        (b, h, w, c), n = x.shape, self.window
        y = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        y = y.view(b, h // n, n, w // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
        q, k, v = self.qkv(y).view(-1, n * n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
        scores = scores * self.scale.clamp(max=math.log(100.0)).exp()
        scores = scores + 16 * torch.sigmoid(self.bias(self.apart)).permute(2, 0, 1)
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, n * n, c))
        y = y.view(b, h // n, w // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return x + self.norm(torch.roll(y, (self.shift, self.shift), (1, 2)))


class PixelAttention(nn.Module):
    """Attention among all pixels, as PyTorch's layer computes it."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.attend, self.norm = nn.MultiheadAttention(width, heads), nn.LayerNorm(width)

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, c, h * w).permute(2, 0, 1)
        y, _ = self.attend(x, x, x)
        return self.norm(y + x).permute(1, 2, 0).view(b, c, h, w)


class RectifiedAttention(nn.Module):
    """Causal attention whose scores are rectified, not normalized."""

    def __init__(self, width=8, heads=2, most=16):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("bias", torch.tril(torch.ones(most, most)).view(1, 1, most, most))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, -torch.inf)
        return self.out((F.relu(scores) @ v).transpose(1, 2).reshape(b, t, c))


class PatchTransformer(nn.Module):
    """Patches by a convolution, a class token, PyTorch's encoder."""

    def __init__(self, width=8, classes=5):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.flat = nn.Linear(4 * width, width)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.flat(self.patches(x).flatten(1)).unsqueeze(1)
        x = self.body(torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1))
        return self.head(x[:, 0])


class SoftUNet(nn.Module):
    """Down and up once, with a softmax along rows of pixels after each convolution."""

    def __init__(self):
        super().__init__()

        def two(have, want):
            return chain(
                *(
                    part
                    for a in (have, want)
                    for part in (
                        nn.Conv2d(a, want, 3, padding=1),
                        nn.BatchNorm2d(want),
                        nn.Softmax(-1),
                    )
                )
            )

        self.down, self.low, self.up = two(2, 4), two(4, 8), nn.ConvTranspose2d(8, 4, 2, 2)
        self.last, self.out = two(8, 4), nn.Conv2d(4, 3, 1)

    def forward(self, x):
        a = self.down(x)
        return self.out(self.last(torch.cat((self.up(self.low(F.max_pool2d(a, 2))), a), 1)))


class Steps(nn.Module):
    """A plain recurrent network, step by step."""

    def __init__(self, have=4, state=6, want=3):
        super().__init__()
        self.cell, self.out = nn.Linear(have + state, state), nn.Linear(state, want)

    def forward(self, x, state):
        made = []
        for row in x:
            state = torch.tanh(self.cell(torch.cat((row, state), 1)))
            made.append(self.out(state))
        return torch.stack(made)


def separable(have, want, stride):
    return chain(unit(have, have, 3, stride, have), unit(have, want, 1))


def alexnet():
    return chain(
        nn.Conv2d(3, 6, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(6, 8, 5, padding=2),
        nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(8, 6, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(24, 10), nn.ReLU(), nn.Dropout(0.0), nn.Linear(10, 5),
    )  # fmt: skip


IMAGE = (2, 3, 16, 16)

NETWORKS = {
    "AlexNet": lambda: (alexnet(), r(2, 3, 50, 51)),
    "MobileNetV1": lambda: (
        chain(unit(3, 4, 3, 2), separable(4, 6, 1), separable(6, 8, 2), nn.AvgPool2d(4)), r(*IMAGE),
    ),
    "ResNet of bottlenecks": lambda: (
        chain(Bottleneck(3, 2, 8), Bottleneck(8, 2, 8), Bottleneck(8, 4, 8, 2)), r(*IMAGE),
    ),
    "RegNet": lambda: (
        chain(Bottleneck(3, 4, 8, 2, groups=2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 3)),
        r(*IMAGE),
    ),
    "SqueezeNet": lambda: (
        chain(
            nn.Conv2d(3, 4, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(4, 2, 3),
            Fire(6, 2, 3), nn.Conv2d(6, 5, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        ),
        r(2, 3, 21, 20),
    ),
    "Swin by cosines": lambda: (CosineWindows(), r(2, 6, 6, 6)),
    "attention of pixels": lambda: (PixelAttention(), r(2, 8, 4, 3)),
    "attention, rectified": lambda: (RectifiedAttention(), r(2, 7, 8)),
    "convolution, then a transformer": lambda: (PatchTransformer(), r(3, 3, 8, 8)),
    "U-Net with softmax": lambda: (SoftUNet(), r(2, 2, 8, 6)),
    "deep and narrow": lambda: (
        chain(*(part for _ in range(12) for part in (nn.Linear(5, 5), nn.ReLU()))), r(3, 5),
    ),
    "steps of a network": lambda: (Steps(), r(4, 2, 4), r(2, 6)),
}  # fmt: skip

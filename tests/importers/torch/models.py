"""Small models in the forms that real ones have, with random weights."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 5),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.classes = nn.Sequential(nn.Flatten(), nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 5))

    def forward(self, x):
        return self.classes(self.features(x))


class ResidualBlock(nn.Module):
    def __init__(self, have: int, want: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(have, want, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(want)
        self.conv2 = nn.Conv2d(want, want, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(want)
        self.short = nn.Sequential()
        if stride != 1 or have != want:
            self.short = nn.Sequential(
                nn.Conv2d(have, want, 1, stride, bias=False), nn.BatchNorm2d(want)
            )

    def forward(self, x):
        out = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(out)) + self.short(x))


class ResNet18(nn.Module):
    def __init__(self, width: int = 2, classes: int = 5) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks: list[nn.Module] = []
        have = width
        for stage, stride in enumerate((1, 2, 2, 2)):
            want = width << stage
            blocks += [ResidualBlock(have, want, stride), ResidualBlock(want, want)]
            have = want
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(have, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Attention(nn.Module):
    """Self attention, or attention to `memory`."""

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x, mask=None, memory=None):
        memory = x if memory is None else memory
        k, v = self.kv(memory).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(x), k, v))
        made = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal)
        return self.out(made.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A transformer block: norm first as in GPT-2 and ViT, or last as in BERT."""

    def __init__(self, width: int, heads: int, *, causal=False, first=True, gelu="none") -> None:
        super().__init__()
        self.attention = Attention(width, heads, causal=causal)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(approximate=gelu), nn.Linear(2 * width, width)
        )
        self.first = first

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.mlp(x))


class ViT(nn.Module):
    def __init__(self, width: int = 8, patch: int = 4, patches: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.place = nn.Parameter(torch.randn(1, patches + 1, width))
        self.blocks = nn.Sequential(Block(width, 2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


class GPT2(nn.Module):
    def __init__(self, words: int = 17, width: int = 8, length: int = 6) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width, 2, causal=True, gelu="tanh"))
        self.norm = nn.LayerNorm(width)

    def forward(self, words):
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        return self.norm(self.blocks(x)) @ self.words.weight.T


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x32 = x.float()
        return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(
            x
        ) * self.weight


def rotate(x: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """Rotary positions over the last dimension of (batch, heads, length, width)."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, device=x.device) / half)
    angles = torch.arange(x.shape[-2], device=x.device)[:, None] * rates
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class LlamaBlock(nn.Module):
    def __init__(self, width: int = 8, heads: int = 4, shared: int = 2) -> None:
        super().__init__()
        size = width // heads
        self.heads, self.shared = heads, shared
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, heads * size, bias=False)
        self.k = nn.Linear(width, heads // shared * size, bias=False)
        self.v = nn.Linear(width, heads // shared * size, bias=False)
        self.out = nn.Linear(heads * size, width, bias=False)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        y = self.norm1(x)
        q = self.q(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (
            layer(y).unflatten(-1, (self.heads // self.shared, -1)).transpose(1, 2)
            for layer in (self.k, self.v)
        )
        k, v = (t.repeat_interleave(self.shared, 1) for t in (rotate(k), v))
        y = functional.scaled_dot_product_attention(rotate(q), k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, words: int = 17, width: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.Sequential(LlamaBlock(width))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, words):
        return self.head(self.norm(self.blocks(self.words(words))))


class Bert(nn.Module):
    """An encoder with padding: `kept` says which words count."""

    def __init__(self, words: int = 17, width: int = 8, length: int = 6) -> None:
        super().__init__()
        self.words, self.kinds = nn.Embedding(words, width, padding_idx=0), nn.Embedding(2, width)
        self.places, self.norm = nn.Embedding(length, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, 2, first=False) for _ in range(1))
        self.pool = nn.Linear(width, width)

    def forward(self, words, kinds, kept):
        x = self.words(words) + self.kinds(kinds) + self.places.weight[: words.shape[1]]
        x, mask = self.norm(x), kept[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask)
        return x, torch.tanh(self.pool(x[:, 0]))


class T5Block(nn.Module):
    """Relative positions are a bias of the scores, which are not scaled."""

    def __init__(self, width: int = 8, heads: int = 2, buckets: int = 4) -> None:
        super().__init__()
        self.norm1, self.norm2, self.heads = RMSNorm(width), RMSNorm(width), heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out, self.bias = nn.Linear(width, width, bias=False), nn.Embedding(buckets, heads)
        self.up, self.down = nn.Linear(width, 16, bias=False), nn.Linear(16, width, bias=False)
        self.buckets = buckets

    def forward(self, x):
        length = x.shape[1]
        places = torch.arange(length)
        apart = (places[None, :] - places[:, None]).abs().clamp(max=self.buckets - 1)
        bias = self.bias(apart).permute(2, 0, 1)
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        weights = functional.softmax(q @ k.transpose(-1, -2) + bias, -1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(functional.relu(self.up(self.norm2(x))))


class PixelAttention(nn.Module):
    """Attention among the pixels of an image, as diffusion models have it."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm, self.qkv = nn.GroupNorm(2, width), nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).chunk(3, 1)
        weights = torch.softmax(q.transpose(1, 2) @ k * q.shape[1] ** -0.5, 2)
        return x + self.out((v @ weights.transpose(1, 2)).unflatten(2, x.shape[2:]))


class Lstm(nn.Module):
    """A recurrence, unrolled."""

    def __init__(self, have: int = 4, width: int = 5) -> None:
        super().__init__()
        self.cell, self.width = nn.LSTMCell(have, width), width

    def forward(self, x):
        state = x.new_zeros(x.shape[1], self.width), x.new_zeros(x.shape[1], self.width)
        for step in x:
            state = self.cell(step, state)
        return state[0]


class MixerBlock(nn.Module):
    def __init__(self, tokens: int = 4, width: int = 8) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(tokens, 8), nn.GELU(), nn.Linear(8, tokens))
        self.along = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm2(x))


class UNet(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, width, 3, 2, 1)
        self.norm = nn.GroupNorm(2, width)
        self.middle = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.ConvTranspose2d(width, width, 2, 2)
        self.out = nn.Conv2d(width + 1, 1, 3, padding=1)

    def forward(self, x):
        y = functional.silu(self.norm(self.down(x)))
        y = functional.silu(self.middle(y))
        return self.out(torch.cat([self.up(y), x], 1))


class Diffusion(nn.Module):
    """A step of a diffusion model: noise is added at a time, and to be found again."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.time = UNet(), nn.Linear(8, 1)
        steps = torch.linspace(1e-4, 0.02, 10)
        self.register_buffer("kept", torch.cumprod(1 - steps, 0))

    def forward(self, x, noise, time):
        kept = self.kept[time][:, None, None, None]
        noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
        rates = torch.exp(-math.log(1000.0) * torch.arange(4) / 4)
        angles = time[:, None] * rates
        shift = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        return self.net(noisy + shift[:, :, None, None])


class Mixture(nn.Module):
    """Experts that all run, weighted by a gate of the best two."""

    def __init__(self, width: int = 6, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 8) / 3)
        self.down = nn.Parameter(torch.randn(experts, 8, width) / 3)

    def forward(self, x):
        scores = self.gate(x)
        best, chosen = scores.topk(2, -1)
        weights = torch.zeros_like(scores).scatter(-1, chosen, best.softmax(-1))
        hidden = functional.gelu(torch.einsum("bw,ewh->beh", x, self.up))
        return torch.einsum("beh,ehw,be->bw", hidden, self.down, weights)

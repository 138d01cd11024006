"""The models that `gpu_check.py` times: blocks of known networks at sizes that people run.

    network = NETWORKS["GPT-2 block, bf16"]
    module, inputs = network.made("cuda")           # in eval mode, or to be trained
    outputs = network.run(module, inputs)           # a loss and gradients where it is trained

>>> network = NETWORKS["perceptron"].small
>>> [tuple(one.shape) for one in network.run(*network.made("cpu"))]
[(4, 10)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

TOLERANCES = {torch.float16: 2e-2, torch.bfloat16: 6e-2, torch.float32: 1e-3}


class Attention(nn.Module):
    """Attention of heads, from [batch, tokens, width] to the same."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(seen.transpose(1, 2).reshape(x.shape))


class Feedforward(nn.Module):
    """Two layers with a GELU between them."""

    def __init__(self, width: int, inner: int, approximate: str = "none") -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x), approximate=self.approximate))


class PreNorm(nn.Module):
    """A block of GPT-2 (causal) or of a vision transformer: norms come first."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal)
        self.feedforward = Feedforward(width, 4 * width, "tanh" if causal else "none")

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before(x))
        return x + self.feedforward(self.after(x))


class PostNorm(nn.Module):
    """A layer of BERT's encoder: norms come last."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.middle, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=False)
        self.feedforward = Feedforward(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.middle(x + self.attention(x))
        return self.last(x + self.feedforward(x))


class Llama(nn.Module):
    """A block of LLaMA: RMS norms, rotated queries and keys, keys shared by heads, SwiGLU."""

    def __init__(self, width: int, heads: int, shared: int, inner: int, tokens: int) -> None:
        super().__init__()
        self.size, self.heads, self.shared = width // heads, heads, shared
        self.before, self.after = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        layer = nn.Linear
        self.q, self.out = layer(width, width, bias=False), layer(width, width, bias=False)
        self.k = layer(width, shared * self.size, bias=False)
        self.v = layer(width, shared * self.size, bias=False)
        self.gate, self.up = layer(width, inner, bias=False), layer(width, inner, bias=False)
        self.down = layer(inner, width, bias=False)
        steps = 1e4 ** -(torch.arange(0, self.size, 2) / self.size)
        angles = torch.outer(torch.arange(tokens), steps).repeat(1, 2)
        self.cos = nn.Parameter(angles.cos(), requires_grad=False)
        self.sin = nn.Parameter(angles.sin(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.before(x))
        h = self.after(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))

    def attend(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q = self.q(x).view(batch, tokens, self.heads, self.size).transpose(1, 2)
        k, v = (
            layer(x).view(batch, tokens, self.shared, self.size).transpose(1, 2)
            for layer in (self.k, self.v)
        )
        seen = functional.scaled_dot_product_attention(
            self.rotated(q), self.rotated(k), v, is_causal=True, enable_gqa=True
        )
        return self.out(seen.transpose(1, 2).reshape(x.shape))

    def rotated(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat([-second, first], -1) * self.sin


class Mixer(nn.Module):
    """A block of MLP-Mixer: perceptrons of tokens, then of channels."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = Feedforward(tokens, width // 2)
        self.channels = Feedforward(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.after(x))


class Basic(nn.Module):
    """ResNet-18's block: two convolutions beside a shortcut."""

    def __init__(self, inside: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        fit = [nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)]
        self.shortcut = nn.Sequential(*(fit if stride > 1 or inside != out else []))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm2(self.second(torch.relu(self.norm1(self.first(x)))))
        return torch.relu(inner + self.shortcut(x))


def resnet(width: int = 64) -> nn.Module:
    """ResNet-18."""
    stem = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    blocks: list[nn.Module] = []
    inside = width
    for stage in range(4):
        out = width << stage
        blocks += [Basic(inside, out, 2 if stage else 1), Basic(out, out)]
        inside = out
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000)]
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *blocks, *last)


def perceptron(hidden: int) -> nn.Module:
    """Digits of 28 x 28 cells, one hidden layer."""
    return nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))


@dataclass(frozen=True)
class Network:
    """A model: how it is made, its input's shape, and a smaller one of its kind.

    One that is `trained` gives the mean square of its outputs, and its gradients.
    """

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    tiny: tuple[Callable[[], nn.Module], tuple[int, ...]]
    dtype: torch.dtype = torch.float32
    trained: bool = False

    @property
    def small(self) -> Network:
        """One for an interpreter of kernels."""
        make, shape = self.tiny
        return replace(self, make=make, shape=shape)

    @property
    def tolerance(self) -> float:
        """How far results may be from float64, relative to the largest."""
        return TOLERANCES[self.dtype]

    def made(self, device: str, dtype: torch.dtype | None = None) -> tuple[nn.Module, list[Tensor]]:
        """The module and its input, the same each time but for what the dtype rounds."""
        torch.manual_seed(0)
        module, x = self.make(), torch.randn(self.shape)
        if not self.trained:
            module = module.eval().requires_grad_(requires_grad=False)
        # Rounded once, so that a wider dtype computes with the same weights.
        module, x = module.to(self.dtype), x.to(self.dtype)
        wanted = dtype or self.dtype
        return module.to(device, wanted), [x.to(device, wanted)]

    def run(
        self, module: nn.Module, inputs: Sequence[Tensor], call: Callable[..., Any] | None = None
    ) -> list[Tensor]:
        """Outputs; where it is trained, the loss and the gradients of the parameters.

        `call` is what a compiler made of the module.
        """
        outputs = module if call is None else call
        if not self.trained:
            with torch.no_grad():
                return [outputs(*inputs)]
        loss = outputs(*inputs).square().mean()
        learned = [one for one in module.parameters() if one.requires_grad]
        return [loss.detach(), *torch.autograd.grad(loss, learned)]


def gpt2(dtype: torch.dtype, *, trained: bool = False) -> Network:
    """A block of the smallest GPT-2."""
    tiny = lambda: PreNorm(32, 2, causal=True), (1, 16, 32)
    return Network(lambda: PreNorm(768, 12, causal=True), (8, 1024, 768), tiny, dtype, trained)


def llama(dtype: torch.dtype, *, trained: bool = False) -> Network:
    """A block of LLaMA 3.2 1B, but for its inner width."""
    tiny = lambda: Llama(32, 4, 2, 48, 16), (1, 16, 32)
    make = partial(Llama, 2048, 32, 8, 5632, 1024)
    return Network(make, (8, 1024, 2048), tiny, dtype, trained)


def vision(*, trained: bool = False) -> Network:
    """A block of the base vision transformer."""
    tiny = lambda: PreNorm(32, 2, causal=False), (1, 13, 32)
    make = partial(PreNorm, 768, 12, causal=False)
    return Network(make, (64, 197, 768), tiny, torch.float16, trained)


def digits(*, trained: bool = False) -> Network:
    """A perceptron in float32."""
    tiny = lambda: perceptron(16), (4, 784)
    return Network(lambda: perceptron(1024), (256, 784), tiny, trained=trained)


NETWORKS: dict[str, Network] = {
    "GPT-2 block, bf16": gpt2(torch.bfloat16),
    "LLaMA block, bf16": llama(torch.bfloat16),
    "GPT-2 block, bf16, training": gpt2(torch.bfloat16, trained=True),
    "BERT layer, f16": Network(
        lambda: PostNorm(768, 12),
        (16, 512, 768),
        (lambda: PostNorm(32, 2), (1, 16, 32)),
        torch.float16,
    ),
    "ViT block, f16": vision(),
    "ResNet-18 block, f16": Network(
        lambda: Basic(64, 128, 2),
        (64, 64, 56, 56),
        (lambda: Basic(4, 8, 2), (1, 4, 8, 8)),
        torch.float16,
    ),
    "MLP-Mixer block, f16": Network(
        lambda: Mixer(196, 768), (64, 196, 768), (lambda: Mixer(9, 32), (2, 9, 32)), torch.float16
    ),
    "perceptron": digits(),
    "ResNet-18, f16": Network(
        resnet, (64, 3, 224, 224), (lambda: resnet(4), (1, 3, 32, 32)), torch.float16
    ),
    "GPT-2 block, f16": gpt2(torch.float16),
    "LLaMA block, f16": llama(torch.float16),
    "perceptron, training": digits(trained=True),
    "LLaMA block, bf16, training": llama(torch.bfloat16, trained=True),
    "ViT block, f16, training": vision(trained=True),
}
"""What is worth most comes first."""

"""Attention as it is written for PyTorch: of functions, of modules, of language models.

    module, inputs = attention("causal", rows=8)

Each form is a module and what it is called with. `graph_of` traces it to core ATen operators,
scaled dot product attention by its definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its name everywhere)
from torch import Tensor, nn
from torch._decomp import core_aten_decompositions
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from tapestry.runtime.executor import Array

Form = Callable[[int], tuple[nn.Module, tuple[Tensor, ...]]]

_FORMS: dict[str, Form] = {}


def _form(build: Form) -> Form:
    _FORMS[build.__name__] = build
    return build


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def _heads(rows: int, heads: int = 4, columns: int = 16) -> Tensor:
    return torch.randn(2, heads, rows, columns)


def attention(name: str, rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A form of attention over so many rows."""
    torch.manual_seed(0)
    return _FORMS[name](rows)


def forms() -> list[str]:
    """What they are called."""
    return list(_FORMS)


@_form
def plain(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """More keys than queries."""
    call = _Function(F.scaled_dot_product_attention)
    return call, (_heads(rows), _heads(rows + 2), _heads(rows + 2))


@_form
def half(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Cast to float32 and back."""
    call = _Function(F.scaled_dot_product_attention)
    return call, (_heads(rows).half(), _heads(rows).half(), _heads(rows).half())


@_form
def causal(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A mask computed of ranges."""
    call = _Function(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    return call, (_heads(rows), _heads(rows), _heads(rows))


@_form
def truths(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A mask of truth values, of which one row sees nothing."""
    mask = torch.rand(rows, rows + 2) > 0.4
    mask[3] = False
    call = _Function(F.scaled_dot_product_attention)
    return call, (_heads(rows), _heads(rows + 2), _heads(rows + 2), mask)


@_form
def additive(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A mask that is added."""
    call = _Function(F.scaled_dot_product_attention)
    return call, (_heads(rows), _heads(rows), _heads(rows), torch.randn(4, rows, rows))


@_form
def grouped(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Heads of keys that serve two heads of queries each."""
    call = _Function(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    )
    return call, (_heads(rows).half(), _heads(rows, 2).half(), _heads(rows, 2).half())


@_form
def repeated(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The same, where the program repeats the heads."""

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        return torch.softmax(q @ k.mT / 4.0, -1) @ v

    return _Function(function), (_heads(rows), _heads(rows, 2), _heads(rows, 2))


@_form
def window(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The last three keys alone."""

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        i = torch.arange(rows)[:, None]
        j = torch.arange(rows)[None, :]
        scores = (q @ k.mT).masked_fill((j > i) | (j <= i - 3), float("-inf"))
        return torch.softmax(scores, -1) @ v

    return _Function(function), (_heads(rows), _heads(rows), _heads(rows))


@_form
def alibi(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Scores less a slope times the distance, a slope for each head."""

    def function(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Tensor:
        i = torch.arange(rows)
        far = (i[None, :] - i[:, None]).float()
        scores = q @ k.mT + slopes[:, None, None] * far
        return torch.softmax(scores.masked_fill(far > 0, float("-inf")), -1) @ v

    slopes = 2.0 ** -torch.arange(1, 5).float()
    return _Function(function), (_heads(rows), _heads(rows), _heads(rows), slopes)


@_form
def relative(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A bias looked up by how far apart a query and a key are."""

    def function(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
        i = torch.arange(rows)
        apart = (i[None, :] - i[:, None]).clamp(-4, 4) + 4
        bias = F.embedding(apart, table).permute(2, 0, 1)
        return torch.softmax(q @ k.mT + bias, -1) @ v

    return _Function(function), (_heads(rows), _heads(rows), _heads(rows), torch.randn(9, 4))


@_form
def softcap(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Scores kept small by a hyperbolic tangent."""

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = 5.0 * torch.tanh(q @ k.mT / 5.0)
        later = torch.ones(rows, rows, dtype=torch.bool).triu(1)
        return torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ v

    return _Function(function), (_heads(rows), _heads(rows), _heads(rows))


@_form
def sink(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """One more score for each head, of a key that has no value."""

    def function(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor) -> Tensor:
        scores = q @ k.mT
        most = torch.maximum(scores.amax(-1, keepdim=True), sinks[:, None, None])
        weights = torch.exp(scores - most)
        total = weights.sum(-1, keepdim=True) + torch.exp(sinks[:, None, None] - most)
        return (weights / total) @ v

    return _Function(function), (_heads(rows), _heads(rows), _heads(rows), torch.randn(4))


@_form
def dropped(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Weights of which some are left out, as given, and the others scaled."""

    def function(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
        weights = torch.softmax(q @ k.mT, -1)
        return (weights * keep / 0.75) @ v

    keep = torch.rand(4, rows, rows) < 0.75
    return _Function(function), (_heads(rows), _heads(rows), _heads(rows), keep)


@_form
def multihead(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A module of PyTorch, with its projections."""
    module = nn.MultiheadAttention(32, 4, batch_first=True).eval()

    def function(x: Tensor) -> Tensor:
        found, _ = module(x, x, x, need_weights=False)
        return found

    call = _Function(function)
    call.inner = module
    return call, (torch.randn(2, rows, 32),)


class _Gpt(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        parts = self.c_attn(x).split(width, dim=2)
        q, k, v = (
            t.view(batch, rows, self.heads, width // self.heads).transpose(1, 2) for t in parts
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / (width // self.heads) ** 0.5)
        seen = torch.ones(rows, rows, dtype=torch.bool).tril()
        weights = torch.where(seen, scores, float("-inf")).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).contiguous().view(batch, rows, width)
        return self.c_proj(mixed)


@_form
def gpt(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """GPT-2."""
    return _Gpt(), (torch.randn(2, rows, 32),)


def _turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


class _Llama(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        shared = width * groups // heads
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, shared, bias=False), nn.Linear(width, shared, bias=False)
        self.heads, self.groups = heads, groups

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, rows, width = x.shape
        size = width // self.heads

        def split(y: Tensor, heads: int) -> Tensor:
            return y.view(batch, rows, heads, size).transpose(1, 2)

        q, k = split(self.q(x), self.heads), split(self.k(x), self.groups)
        q, k = q * cosine + _turned(q) * sine, k * cosine + _turned(k) * sine
        v = split(self.v(x), self.groups)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o(mixed.transpose(1, 2).reshape(batch, rows, width))


@_form
def llama(rows: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """LLaMA, with positions as rotations and shared heads of keys."""
    return _Llama(), (torch.randn(2, rows, 32), torch.randn(rows, 8), torch.randn(rows, 8))


def graph_of(module: nn.Module, inputs: tuple[Tensor, ...]) -> ExportedProgram:
    """A module as core ATen operators; attention by its definition."""
    with sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        exported = torch.export.export(module, inputs)
        return exported.run_decompositions(core_aten_decompositions())


def arrays_of(exported: ExportedProgram, inputs: tuple[Tensor, ...]) -> dict[str, Array]:
    """What the program of a graph takes, by name: inputs, parameters and constants."""
    given = iter(inputs)
    found: dict[str, Array] = {}
    for spec in exported.graph_signature.input_specs:
        held: Any
        if spec.kind == InputKind.USER_INPUT:
            held = next(given)
        elif spec.kind == InputKind.CONSTANT_TENSOR:
            held = exported.constants[str(spec.target)]
        else:
            held = exported.state_dict[str(spec.target)]
        found[str(spec.arg.name)] = held.detach().numpy()
    return found


def gradient_graph(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], gradient: Tensor
) -> GraphModule:
    """The gradients of a function, forward pass included, as core ATen operators."""

    def gradients(*given: Tensor) -> tuple[Tensor, ...]:
        *taken, seed = given
        leaves = [x.detach().requires_grad_() for x in taken]
        with torch.enable_grad():
            return torch.autograd.grad(function(*leaves), leaves, seed)

    with sdpa_kernel(SDPBackend.MATH):
        trace = make_fx(gradients, core_aten_decompositions(), tracing_mode="fake")
        return trace(*inputs, gradient)

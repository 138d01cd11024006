"""Gradients as PyTorch and JAX give them, forward pass included, and a block written for PyTorch.

    torch_attention(causal=True)      scaled dot product attention by its definition, differentiated
    jax_attention(causal=True)        the same of JAX, where softmax is differentiated by jax.vjp
    torch_gpt2()                      a block of GPT-2 in training: gradients of all it is made of
    torch_llama()                     attention of LLaMA: halves turned, put side by side

Each gives a module before any pass. What is imported needs PyTorch or JAX, when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp


def _gradients(function: Callable[..., Any], inputs: Sequence[Any], out: Any) -> ModuleOp:
    """The gradients of a function of PyTorch in all its inputs, as core ATen operators."""
    import torch
    from torch._decomp import core_aten_decompositions
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from tapestry.importers.torch.graphs import program_of

    def gradients(*given: Any) -> Any:
        *taken, seed = given
        leaves = [x.detach().requires_grad_() for x in taken]
        with torch.enable_grad():
            return torch.autograd.grad(function(*leaves), leaves, seed)

    with sdpa_kernel(SDPBackend.MATH):
        graph = make_fx(gradients, core_aten_decompositions(), tracing_mode="fake")(*inputs, out)
    return program_of(graph).module


def torch_attention(
    *, causal: bool, rows: int = 2048, width: int = 128, heads: int = 16
) -> ModuleOp:
    """The gradients of queries, keys and values in bfloat16: 2 x 16 heads of queries, which share
    `heads` of keys and values.
    """
    import torch

    attend = torch.nn.functional.scaled_dot_product_attention
    shared = heads != 16
    inputs = [
        torch.empty(2, count, rows, width, dtype=torch.bfloat16) for count in (16, heads, heads, 16)
    ]
    return _gradients(
        lambda q, k, v: attend(q, k, v, is_causal=causal, enable_gqa=shared), inputs[:3], inputs[3]
    )


def jax_attention(*, causal: bool, rows: int = 2048, width: int = 128) -> ModuleOp:
    """The same, from JAX."""
    import jax
    import jax.numpy as jnp

    from tapestry.importers import stablehlo

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhid,bhjd->bhij", q, k, preferred_element_type=jnp.float32)
        scores *= width**-0.5
        if causal:
            i = jnp.arange(rows)
            scores = jnp.where(i[:, None] >= i[None, :], scores, -jnp.inf)
        weights = jax.nn.softmax(scores, -1).astype(q.dtype)
        return jnp.einsum("bhij,bhjd->bhid", weights, v)

    def gradients(q: Any, k: Any, v: Any, out: Any) -> Any:
        return jax.vjp(attend, q, k, v)[1](out)

    shape = jax.ShapeDtypeStruct((2, 16, rows, width), "bfloat16")
    return stablehlo.load(jax.jit(gradients).lower(*[shape] * 4).as_text())


def torch_gpt2(
    *, batch: int = 1, tokens: int = 1024, width: int = 768, heads: int = 12
) -> ModuleOp:
    """The gradients of a block of GPT-2 in float32, in its input and its twelve parameters."""
    import torch

    functional, size = torch.nn.functional, width // heads
    rows = (batch, tokens, width)

    def split(x: Any) -> Any:
        return x.view(batch, tokens, heads, size).transpose(1, 2)

    def block(x: Any, *parameters: Any) -> Any:
        g1, b1, w, b, wo, bo, g2, b2, wu, bu, wd, bd = parameters
        h = functional.layer_norm(x, (width,), g1, b1)
        q, k, v = map(split, functional.linear(h, w, b).split(width, 2))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + functional.linear(mixed.transpose(1, 2).reshape(rows), wo, bo)
        h = functional.layer_norm(x, (width,), g2, b2)
        wide = functional.gelu(functional.linear(h, wu, bu), approximate="tanh")
        return x + functional.linear(wide, wd, bd)

    linear = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    pairs = [((width,), (width,)), *(((out, taken), (out,)) for out, taken in linear)]
    pairs.insert(3, pairs[0])
    shapes = [rows, *(shape for pair in pairs for shape in pair)]
    return _gradients(block, [torch.empty(shape) for shape in shapes], torch.empty(rows))


def torch_llama(
    *, batch: int = 1, tokens: int = 2048, width: int = 4096, heads: int = 32, groups: int = 8
) -> ModuleOp:
    """Attention of LLaMA 3 with its projections, in bfloat16."""
    import torch
    from torch._decomp import core_aten_decompositions
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from tapestry.importers.torch.graphs import program_of

    functional, size = torch.nn.functional, width // heads

    def turned(x: Any) -> Any:
        first, second = x.chunk(2, -1)
        return torch.cat((-second, first), -1)

    class Attention(torch.nn.Module):
        def forward(self, x: Any, cosine: Any, sine: Any, *weights: Any) -> Any:
            q, k, v = (functional.linear(x, w) for w in weights[:3])
            q, k, v = (t.view(batch, tokens, -1, size).transpose(1, 2) for t in (q, k, v))
            q, k = (t * cosine + turned(t) * sine for t in (q, k))
            mixed = functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, enable_gqa=True
            )
            return functional.linear(mixed.transpose(1, 2).reshape(x.shape), weights[3])

    shapes = [(batch, tokens, width), *[(tokens, size)] * 2, (width, width)]
    shapes += [(groups * size, width)] * 2 + [(width, width)]
    inputs = tuple(torch.empty(shape, dtype=torch.bfloat16) for shape in shapes)
    with sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        exported = torch.export.export(Attention(), inputs)
        return program_of(exported.run_decompositions(core_aten_decompositions())).module

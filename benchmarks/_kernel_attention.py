"""The cases of `kernels.py` that are attention, and its gradients.

attention("causal d=64", 4, 16, 4096, 4096, 64, causal=True, kv=16)
attention_backward("causal d=64", 4, 16, 4096, 64, causal=True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from _kernel_case import WARPGROUP_ROWS, Case, Given

import tapestry as t
from tapestry.importers.expressions.nodes import Expression


def attention(
    name: str,
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    width: int,
    *,
    causal: bool,
    kv: int,
    dtype: str = "f16",
) -> Case:
    """Attention of `kv` heads of keys and values, which query heads share."""

    def given(b: int, h: int, m: int, n: int, d: int, g: int) -> list[Given]:
        shapes = {"q": (b, h, m, d), "k": (b, g, n, d), "v": (b, g, n, d)}
        return [Given(name, shape, dtype) for name, shape in shapes.items()]

    options = {"is_causal": causal, "enable_gqa": kv != heads}

    def peer(torch: Any, q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    def picked(torch: Any, q: Any, k: Any, v: Any) -> str:
        from torch.nn.attention import SDPBackend

        chosen = torch._fused_sdp_choice(q, k, v, **options)  # noqa: SLF001 - there is no other way
        return SDPBackend(chosen).name

    def program(q: Expression, k: Expression, v: Expression) -> Expression:
        if kv != heads:
            return t.grouped_query_attention(q, k, v, causal=causal)
        return t.scaled_dot_product_attention(q, k, v, causal=causal)

    sizes = (batch, heads, queries, keys, width, kv)
    half = dtype != "f32"
    return Case(
        f"attention {name}",
        "attention",
        sizes,
        given,
        program,
        peer,
        multiplies=queries >= WARPGROUP_ROWS,
        beside=_backends(peer, *(("flash", "cudnn") if half else ("efficient",))),
        picked=picked,
    )


def _backends(peer: Callable[..., Any], *names: str) -> dict[str, Callable[..., Any]]:
    """What PyTorch computes something with, by each of its implementations of attention."""

    def by(name: str) -> Callable[..., Any]:
        def forced(torch: Any, *given: Any) -> Any:
            from torch.nn.attention import SDPBackend, sdpa_kernel

            with sdpa_kernel(getattr(SDPBackend, f"{name.upper()}_ATTENTION")):
                return peer(torch, *given)

        return forced

    return {name: by(name) for name in names}


def attention_backward(
    name: str, batch: int, heads: int, rows: int, width: int, *, causal: bool, dtype: str = "f16"
) -> Case:
    """The gradients of attention in queries, keys and values, by that of its result.

    They are all that is computed: weights are computed anew from queries and keys. What PyTorch
    needs for that is its forward pass, which its time includes.
    """

    def given(b: int, h: int, n: int, d: int) -> list[Given]:
        return [Given(one, (b, h, n, d), dtype) for one in ("q", "k", "v", "gradient")]

    def program(*tensors: Expression) -> tuple[Expression, ...]:
        q, k, v, gradient = (t.cast(one, dtype="f32") for one in tensors)
        scale = tensors[0].shape[-1] ** -0.5
        scores = t.mask_scores(q @ _turned(k) * scale, causal=causal)
        weights = t.softmax(scores, axis=-1)
        of_scores = t.softmax_backward(gradient @ _turned(v), weights) * scale
        made = of_scores @ k, _turned(of_scores) @ q, _turned(weights) @ gradient
        return tuple(t.cast(one, dtype=dtype) for one in made)

    def peer(torch: Any, *tensors: Any) -> Any:
        *taken, gradient = tensors
        leaves = [one.detach().requires_grad_() for one in taken]
        attend = torch.nn.functional.scaled_dot_product_attention
        with torch.enable_grad():
            return torch.autograd.grad(attend(*leaves, is_causal=causal), leaves, gradient)

    return Case(
        f"attention backward {name}",
        "attention backward",
        (batch, heads, rows, width),
        given,
        program,
        peer,
        multiplies=rows >= WARPGROUP_ROWS,
        beside=_backends(peer, "flash", "cudnn"),
    )


def _turned(x: Expression) -> Expression:
    """The matrices of a tensor, with rows as columns."""
    return t.transpose(x, perm=[0, 1, 3, 2])

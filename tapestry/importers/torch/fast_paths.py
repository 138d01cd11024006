"""PyTorch's fast paths of attention, in terms of the operators that they stand for.

A `TransformerEncoderLayer` or `MultiheadAttention` that is only evaluated becomes one operator of
ATen, which hides what is to be derived. Here it is a function of PyTorch's again.
"""

# pyright: basic
# Methods of PyTorch's tensors have no complete types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """`aten._transformer_encoder_layer_fwd`."""

    def norm_1(x: Tensor) -> Tensor:
        return functional.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return functional.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return attention(
            x, x, x, embed_dim, num_heads, *weights, mask, need_weights=False, mask_type=mask_type
        )[0]

    def feed(x: Tensor) -> Tensor:
        inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
        active = functional.gelu(inner) if use_gelu else functional.relu(inner)
        return functional.linear(active, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed(x))


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """`aten._native_multi_head_attention`: batches first, and a mask of what is left out.

    `mask_type` says what a mask is of: queries and keys (0), keys of each batch (1), all (2).
    """
    inputs = (query, key, value)
    projected = [
        functional.linear(x, weight, bias)
        for x, weight, bias in zip(inputs, qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    ]
    q, k, v = (x.unflatten(-1, (num_head, -1)).transpose(1, 2) for x in projected)
    scores = q @ k.transpose(-2, -1) / (embed_dim // num_head) ** 0.5
    if mask is not None:
        left_out = mask[:, None, None, :] if mask_type == 1 else mask
        scores = scores.masked_fill(left_out.to(torch.bool), float("-inf"))
    weights = torch.softmax(scores, -1)
    mixed = (weights @ v).transpose(1, 2).flatten(-2)
    result = functional.linear(mixed, proj_weight, proj_bias)
    if not need_weights:
        return result, query.new_empty(0)
    return result, weights.mean(1) if average_attn_weights else weights


FAST_PATHS: dict[str, Callable[..., Any]] = {
    "_transformer_encoder_layer_fwd": encoder_layer,
    "_native_multi_head_attention": attention,
}
"""By the name of the operator of ATen, what it computes."""

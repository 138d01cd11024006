"""Attention, its heads and its rotations are PyTorch's."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
    Row,
    array,
    entries,
    examples_agree,
    law,
    parameters,
    positive,
    shapes,
    torch,
)

functional = torch.nn.functional

LOOSE: dict[str, Any] = {"ulps": 256, "absolute": 256}
WHETHER = st.booleans()


@st.composite
def attended(draw: Any, grouped: bool = False, scores: bool = False, **params: Any):
    """Queries, keys, values (or scores), and perhaps a mask that leaves every row its first key."""
    name = draw(st.sampled_from(("f32", "f64") if grouped or scores else ("f16", "f32", "f64")))
    size = {letter: draw(positive) for letter in "bglsev"}
    batch, heads = (size["b"],), (size["b"], size["g"])
    queries = (size["b"], size["g"] * draw(st.integers(1, 2))) if grouped else batch
    keys = heads if grouped else batch
    shape = (*queries, size["l"], size["s"])
    if scores:
        arrays = [draw(array((name,), shape))]
    else:
        arrays = [
            draw(array((name,), part)) for part in (
                (*queries, size["l"], size["e"]), (*keys, size["s"], size["e"]),
                (*keys, size["s"], size["v"]),
            )
        ]  # fmt: skip
    if draw(st.booleans()):
        mask = draw(array(draw(st.sampled_from((("i1",), (name,)))), shape[-2:]))
        if mask.dtype == np.bool_:
            mask[:, 0] = True
        arrays.append(mask)
    return arrays, draw(parameters(**params))


def masked(x, mask=None, causal=False, offset=0):
    """Scores with a mask, as PyTorch's attention applies it."""
    if mask is not None:
        x = x.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else x + mask
    if causal:
        later = torch.ones(x.shape[-2:], dtype=torch.bool).triu(1 + offset)
        x = x.masked_fill(later, float("-inf"))
    return x


def attention(query, key, value, mask=None, causal=False, scale=0.0):
    """PyTorch's attention; a mask and causality at once are one mask there."""
    shape = (query.shape[-2], key.shape[-2])
    if mask is not None or causal:
        mask = masked(torch.zeros(shape, dtype=query.dtype), mask, causal)
        mask = mask.to(query.dtype)
    return functional.scaled_dot_product_attention(
        query, key, value, mask, scale=scale or None, enable_gqa=query.dim() > 3
    )


@st.composite
def rotations(draw: Any, pairs: bool = False, **params: Any):
    """Vectors, and the cosines and sines of an angle for every two of their cells."""
    name, n = draw(st.sampled_from(("f32", "f64") if pairs else FLOATS)), draw(positive)
    batch = draw(shapes(0, 2))
    x = draw(array((name,), (*batch, 2, n) if pairs else (*batch, 2 * n)))
    angle = np.random.default_rng(draw(st.integers(0, 99))).random((*batch[-1:], n)) * 6
    kind = "f32" if name in ("f16", "bf16") else name
    dtype = np.float64 if kind == "f64" else np.float32
    circle = [np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)]
    return [x, *([x] if pairs else []), *circle], draw(parameters(**params))


def rotated(x, partner, cosine, sine):
    first, second = x.unbind(-2)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    assert partner is not None
    return torch.stack(turned, -2)


def rotary(x, cosine, sine, interleaved=False):
    shape = (*x.shape[:-1], -1, 2) if interleaved else (*x.shape[:-1], 2, x.shape[-1] // 2)
    pairs = x.reshape(shape)
    pairs = pairs.mT if interleaved else pairs
    turned = rotated(pairs, pairs, cosine, sine)
    return (turned.mT if interleaved else turned).reshape(x.shape).to(x.dtype)


@st.composite
def headed(draw: Any, split: bool):
    """Vectors of several heads, in one dimension or two."""
    heads, n, batch = draw(positive), draw(positive), draw(shapes(0, 1))
    length = draw(positive)
    shape = (*batch, length, heads * n) if split else (*batch, heads, length, n)
    return [draw(array(("f32", "i32"), shape))], {"heads": heads} if split else {}


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def merge_heads(x):
    return x.transpose(-2, -3).flatten(-2)


SCALE = st.sampled_from((0.0, 0.5, 1.0))

ROWS = {
    "mask_scores": Row(
        masked, attended(scores=True, causal=WHETHER, offset=st.integers(0, 2)), **LOOSE
    ),
    "scaled_dot_product_attention": Row(attention, attended(causal=WHETHER, scale=SCALE), **LOOSE),
    "grouped_query_attention": Row(
        attention, attended(grouped=True, causal=WHETHER, scale=SCALE), **LOOSE
    ),
    "split_heads": Row(split_heads, headed(split=True)),
    "merge_heads": Row(merge_heads, headed(split=False)),
    "rotate_pairs": Row(rotated, rotations(pairs=True), **LOOSE),
    "rotary_embedding": Row(rotary, rotations(interleaved=WHETHER), **LOOSE),
}

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("attention")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)

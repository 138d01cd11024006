"""Distances and similarities of vectors are PyTorch's."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    WIDE,
    Row,
    array,
    entries,
    examples_agree,
    floats,
    law,
    parameters,
    positive,
    shapes,
    torch,
)

functional = torch.nn.functional

REDUCTION = st.sampled_from(("none", "mean", "sum"))
LOOSE: dict[str, Any] = {"ulps": 256, "absolute": 256}


@st.composite
def vectors(draw: Any, count: int, sign: bool = False, **params: Any):
    """Arrays of vectors along the last dimension, perhaps with 1 or -1 for each."""
    name, batch = draw(st.sampled_from(WIDE)), draw(shapes(1, 2))
    shape = (*batch, draw(positive))
    arrays = [draw(array((name,), shape)) for _ in range(count)]
    if sign:
        arrays.append((2 * draw(array(("i1",), batch)) - 1).astype(arrays[0].dtype))
    return arrays, draw(parameters(**params))


@st.composite
def signed(draw: Any, **params: Any):
    """Similarities, and 1 or -1 for each."""
    name, shape = draw(st.sampled_from(WIDE)), draw(shapes())
    first = draw(array((name,), shape, -1, 1))
    second = (2 * draw(array(("i1",), shape)) - 1).astype(first.dtype)
    return [first, second], draw(parameters(**params))


def distance(a, b, ord=2.0, eps=1e-6, keepdim=False):  # noqa: A002
    return functional.pairwise_distance(a, b, ord, eps, keepdim)


def cosine(a, b, axis=1, eps=1e-8):
    return functional.cosine_similarity(a, b, axis, eps)


def similarity(x, target, reduction="mean", margin=0.0):
    losses = torch.where(target == 1, 1 - x, torch.clamp(x - margin, min=0))
    return {"none": losses, "mean": losses.mean(), "sum": losses.sum()}[reduction]


def embedding(a, b, target, reduction="mean", margin=0.0):
    return similarity(functional.cosine_similarity(a, b, -1), target, reduction, margin)


def triplet(a, p, n, reduction="mean", margin=1.0, ord=2.0, eps=1e-6):  # noqa: A002
    return functional.triplet_margin_loss(a, p, n, margin, ord, eps, reduction=reduction)


NORM = st.sampled_from((1.0, 2.0, 3.0))

ROWS = {
    "pairwise_distance": Row(distance, vectors(2, ord=NORM, keepdim=st.booleans()), **LOOSE),
    "cosine_similarity": Row(cosine, vectors(2, axis=st.sampled_from((-1, -1, 0))), **LOOSE),
    "similarity_loss": Row(similarity, signed(reduction=REDUCTION, margin=floats(0, 1)), **LOOSE),
    "cosine_embedding_loss": Row(
        embedding, vectors(2, sign=True, reduction=REDUCTION, margin=floats(0, 1)), **LOOSE
    ),
    "triplet_margin_loss": Row(
        triplet, vectors(3, reduction=REDUCTION, ord=NORM, margin=floats(0.5, 2)), **LOOSE
    ),
}

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("similarity")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)

"""Losses of classes are PyTorch's: weights, ignored targets, smoothing, every reduction."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    TORCH,
    WIDE,
    Row,
    array,
    entries,
    examples_agree,
    law,
    parameters,
    shapes,
    sizes,
    torch,
)

functional = torch.nn.functional

REDUCTION = st.sampled_from(("none", "mean", "sum"))
SMOOTHING = st.sampled_from((0.0, 0.25))
IGNORE = st.sampled_from((-100, 0, 1))
LOOSE: dict[str, Any] = {"ulps": 64, "absolute": 256}


@st.composite
def classes(draw: Any, soft: bool = False, scores: bool = True, **params: Any):
    """Scores, classes (or their probabilities), and perhaps a weight for each class."""
    name, count = draw(st.sampled_from(WIDE)), draw(st.integers(1, 4))
    batch = draw(st.sampled_from(((), (draw(sizes),))))
    rest = draw(shapes(0, 2)) if batch else ()
    full = (*batch, count, *rest)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = [draw(array((name,), full))] if scores else []
    if soft:
        arrays.append(draw(array((name,), full, 0, 1)))
    else:
        arrays.append(random.integers(0, count, (*batch, *rest)))
    if draw(st.booleans()):
        arrays.append(draw(array((name,), (count,), 0.5, 2)))
    given = draw(parameters(**params))
    return arrays, given if scores else {"classes": count, "dtype": name, **given}


def nll(x, target, weight=None, reduction="mean", ignore=-100):
    """The loss, and the sum of the weights of what is not ignored."""
    loss = functional.nll_loss(x, target, weight, ignore_index=ignore, reduction=reduction)
    ones = torch.ones(x.shape[0 if x.dim() == 1 else 1], dtype=x.dtype)
    used = (ones if weight is None else weight.to(x.dtype))[target]
    return loss, (used * (target != ignore)).sum()


def entropy(x, target, weight=None, reduction="mean", ignore=-100, smoothing=0.0):
    return functional.cross_entropy(
        x, target, weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing
    )


def soft_entropy(x, target, weight=None, reduction="mean", smoothing=0.0):
    return functional.cross_entropy(
        x, target, weight, reduction=reduction, label_smoothing=smoothing
    )


def cells(x, target, weight=None, ignore=-100, smoothing=0.0):
    """The losses of cells, from logarithms of probabilities, as PyTorch defines them."""
    axis = min(1, x.dim() - 1)
    hot = functional.one_hot(target, x.shape[axis]).movedim(-1, axis).to(x.dtype)
    share = hot * (1 - smoothing) + smoothing / x.shape[axis]
    return soft_cells(x, share, weight) * (target != ignore)


def soft_cells(x, target, weight=None, smoothing=0.0):
    axis = min(1, x.dim() - 1)
    shape = [1] * x.dim()
    shape[axis] = -1
    factor = 1 if weight is None else weight.to(x.dtype).reshape(shape)
    target = target * (1 - smoothing) + smoothing / x.shape[axis]
    return -(x * target * factor).sum(axis)


def weights(target, weight=None, classes=0, dtype="f32", ignore=-100):
    used = torch.ones(classes) if weight is None else weight
    return (used[target] * (target != ignore)).to(TORCH[dtype])


def whole(x, whole=True, mean=False):
    return (x.mean() if mean else x.sum()) if whole else x


def per_weight(x, weight, mean=True):
    return x / weight if mean else x


@st.composite
def weighted(draw: Any):
    """An array and a number."""
    return [draw(array(("f32",), draw(shapes()))), draw(array(("f32",), (), 1, 2))], {
        "mean": draw(st.booleans())
    }


@st.composite
def folded(draw: Any):
    """An array, and whether it is summed or averaged."""
    is_whole = draw(st.booleans())
    given = {"whole": is_whole, "mean": is_whole and draw(st.booleans())}
    return [draw(array(("f16", "f32", "f64"), draw(shapes())))], given


ROWS = {
    "class_losses": Row(cells, classes(ignore=IGNORE, smoothing=SMOOTHING), **LOOSE),
    "class_weights": Row(weights, classes(scores=False, ignore=IGNORE), **LOOSE),
    "probability_losses": Row(soft_cells, classes(soft=True, smoothing=SMOOTHING), **LOOSE),
    "total": Row(whole, folded(), **LOOSE),
    "per_weight": Row(per_weight, weighted(), **LOOSE),
    "nll_loss": Row(nll, classes(reduction=REDUCTION, ignore=IGNORE), **LOOSE),
    "cross_entropy_loss": Row(
        entropy, classes(reduction=REDUCTION, ignore=IGNORE, smoothing=SMOOTHING), **LOOSE
    ),
    "cross_entropy_probabilities_loss": Row(
        soft_entropy, classes(soft=True, reduction=REDUCTION, smoothing=SMOOTHING), **LOOSE
    ),
}

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("classification")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)

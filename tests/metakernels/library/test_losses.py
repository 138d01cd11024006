"""Losses are PyTorch's, for every reduction."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
    Row,
    array,
    entries,
    examples_agree,
    floats,
    law,
    parameters,
    shapes,
    torch,
)

functional = torch.nn.functional

REDUCTION = st.sampled_from(("none", "mean", "sum"))
LOOSE: dict[str, Any] = {"ulps": 64, "absolute": 256}


@st.composite
def pairs(
    draw: Any, low: float = -3, high: float = 3, target: tuple[float, float] = (-3, 3),
    count: int = 2, sign: bool = False, **params: Any,
):  # fmt: skip
    """Arrays of one shape and dtype, the others in the range of targets (or 1 and -1)."""
    name, shape = draw(st.sampled_from(FLOATS)), draw(shapes())
    arrays = [draw(array((name,), shape, low, high))]
    arrays += [draw(array((name,), shape, *target)) for _ in range(count - 1)]
    if sign:
        last = draw(array(("i1",), shape))
        arrays[-1] = (2 * last - 1).astype(arrays[-1].dtype)
    return arrays, draw(parameters(reduction=REDUCTION, **params))


def same(name, **given):
    """PyTorch's loss of the same name."""
    return Row(getattr(functional, name), pairs(**given), **LOOSE)


def cross_entropy(x, target, weight=None, reduction="mean"):
    return functional.binary_cross_entropy(x, target, weight, reduction=reduction)


def logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    return functional.binary_cross_entropy_with_logits(
        x, target, weight, reduction=reduction, pos_weight=pos_weight
    )


def hinge(x, target, reduction="mean", margin=1.0):
    return functional.hinge_embedding_loss(x, target, margin, reduction=reduction)


def gaussian(x, target, variance, reduction="mean", eps=1e-6):
    return functional.gaussian_nll_loss(x, target, variance, eps=eps, reduction=reduction)


def divergence(x, target, reduction="mean", log_target=False):
    return functional.kl_div(x, target, reduction=reduction, log_target=log_target)


def poisson(x, target, reduction="mean", log_input=True, eps=1e-8):
    return functional.poisson_nll_loss(x, target, log_input, eps=eps, reduction=reduction)


def ranking(a, b, target, reduction="mean", margin=0.0):
    return functional.margin_ranking_loss(a, b, target, margin, reduction=reduction)


HALF = floats(0.5, 2)

ROWS = {
    "mse_loss": same("mse_loss"),
    "l1_loss": same("l1_loss"),
    "smooth_l1_loss": same("smooth_l1_loss", beta=floats(0, 2)),
    "huber_loss": same("huber_loss", delta=HALF),
    "soft_margin_loss": same("soft_margin_loss", sign=True),
    "bce_loss": Row(
        cross_entropy,
        pairs(0.05, 0.95, target=(0, 1)) | pairs(0.05, 0.95, target=(0, 1), count=3), **LOOSE,
    ),
    "bce_with_logits_loss": Row(
        logits, pairs(target=(0, 1)) | pairs(target=(0, 1), count=4), **LOOSE
    ),
    "kl_div_loss": Row(
        divergence, pairs(target=(0, 1), log_target=st.booleans()), **LOOSE
    ),
    "hinge_embedding_loss": Row(hinge, pairs(sign=True, margin=HALF), **LOOSE),
    "margin_ranking_loss": Row(ranking, pairs(count=3, sign=True, margin=HALF), **LOOSE),
    "poisson_nll_loss": Row(
        poisson, pairs(0.5, 2, target=(0, 3), log_input=st.booleans()), **LOOSE
    ),
    "gaussian_nll_loss": Row(gaussian, pairs(target=(0.5, 2), count=3), **LOOSE),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("losses")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)

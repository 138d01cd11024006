"""Matrix products and their kin are PyTorch's, integers exactly."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
    NUMBERS,
    Row,
    array,
    check_row,
    entries,
    examples_agree,
    law,
    like,
    parameters,
    sizes,
    torch,
)

SUM: dict[str, Any] = {"ulps": 32, "absolute": 256}


@st.composite
def arrays(draw: Any, *shapes: str, dtypes=NUMBERS, **params: Any):
    """Arrays of one dtype; equal letters of their shapes are equal sizes, 1 stands for itself."""
    name = draw(st.sampled_from(dtypes))
    size = {letter: draw(sizes) for letter in sorted(set("".join(shapes)) - {"1"})} | {"1": 1}
    drawn = [draw(array((name,), tuple(size[letter] for letter in shape))) for shape in shapes]
    return drawn, draw(parameters(**params))


def exact(function):
    """PyTorch's product; of small integers in i64, and wrapped (it has no i8 matrices)."""

    def reference(*tensors, **given):
        if tensors[0].is_floating_point():
            return function(*tensors, **given)
        dtype = tensors[0].dtype
        return function(*(tensor.long() for tensor in tensors), **given).to(dtype)

    return reference


def scaled(function):
    """A product added to a tensor, both times numbers."""

    def reference(x, a, b, alpha=1.0, beta=1.0):
        factors = {"alpha": like(alpha, x), "beta": like(beta, x)}
        return function(x, a, b, **factors)

    return exact(reference)


def vecdot(a, b, axis=-1):
    return (a * b).sum(axis)


def tensordot(a, b, axes_a, axes_b):
    return torch.tensordot(a, b, (list(axes_a), list(axes_b)))


def linear(x, W, b=None):  # noqa: N803
    product = torch.matmul(x, W)
    return product if b is None else product + b


def bilinear(x, y, W, b=None):  # noqa: N803
    product = torch.einsum("...i,oij,...j->...o", x, W, y)
    return product if b is None else product + b


MATMUL = st.one_of(
    arrays("i", "i"), arrays("ri", "i"), arrays("i", "ic"), arrays("ri", "ic"),
    arrays("bri", "ic"), arrays("abri", "bic"), arrays("1bri", "a1ic"), arrays("bri", "i"),
    arrays("i", "bic"),
)  # fmt: skip
FACTOR = st.sampled_from((0.0, 1.0, 2.0, -3.0))
SCALE = {"alpha": FACTOR, "beta": FACTOR}
DOTS = st.one_of(
    arrays("ik", "kj", axes_a=st.just([1]), axes_b=st.just([0])),
    arrays("kil", "ljk", axes_a=st.just([-1, 0]), axes_b=st.just([0, 2])),
    arrays("i", "jk", axes_a=st.just([]), axes_b=st.just([])),
)

ROWS = {
    "matmul": Row(exact(torch.matmul), MATMUL, **SUM),
    "mm": Row(exact(torch.mm), arrays("ri", "ic"), **SUM),
    "bmm": Row(exact(torch.bmm), arrays("bri", "bic"), **SUM),
    "mv": Row(exact(torch.mv), arrays("ri", "i"), **SUM),
    "dot": Row(exact(torch.dot), arrays("i", "i"), **SUM),
    "vecdot": Row(
        exact(vecdot),
        arrays("bn", "n", axis=st.just(-1)) | arrays("anb", "1nb", axis=st.just(-2)), **SUM,
    ),
    "outer": Row(torch.outer, arrays("i", "j")),
    "tensordot": Row(exact(tensordot), DOTS, **SUM),
    "kron": Row(torch.kron, arrays("ij", "kl")),
    "trace": Row(exact(torch.trace), arrays("ij"), **SUM),
    "addmm": Row(
        scaled(torch.addmm), arrays("rc", "ri", "ic", **SCALE) | arrays("c", "ri", "ic"), **SUM
    ),
    "baddbmm": Row(
        scaled(torch.baddbmm), arrays("brc", "bri", "bic", **SCALE) | arrays("1c", "bri", "bic"),
        **SUM,
    ),
    "addmv": Row(scaled(torch.addmv), arrays("r", "ri", "i", **SCALE), **SUM),
    "linear": Row(exact(linear), arrays("abi", "io", "o") | arrays("i", "io", "o"), **SUM),
    "bilinear": Row(bilinear, arrays("bi", "bj", "oij", "o", dtypes=FLOATS), **SUM),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("contractions")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)


@pytest.mark.slow
def test_a_large_product() -> None:
    random = np.random.default_rng(1)
    left, right = (random.standard_normal(shape) for shape in ((65, 130), (130, 33)))
    check_row("matmul", Row(torch.matmul, None, absolute=4096), [left, right], {})

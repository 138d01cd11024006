"""Sorting and extrema with places are PyTorch's; equal cells keep their order."""

# pyright: basic
# PyTorch has no types to speak of.

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    INTS,
    WIDE,
    Row,
    array,
    entries,
    examples_agree,
    law,
    torch,
)

DTYPES = (*INTS, *WIDE)


@st.composite
def along(draw, least=0, **more):
    shape = tuple(draw(st.integers(least, 5)) for _ in range(draw(st.integers(1, 3))))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    x = draw(array(DTYPES, shape, special=True))
    given = {name: draw(kind) for name, kind in more.items()}
    return [x], {"axis": axis} | given


@st.composite
def some(draw, name):
    """An array without equal cells, and how many of them."""
    (x,), given = draw(along())
    cells = torch.randperm(x.size, generator=torch.Generator().manual_seed(x.size)).numpy()
    count = draw(st.integers(0, x.shape[given["axis"]]))
    cells = cells.reshape(x.shape).astype(x.dtype)
    if name == "k":
        given["largest"] = draw(st.booleans())
    return [cells], given | {name: count}


@st.composite
def rows(draw):
    (x,), _ = draw(along())
    return [x], {"descending": draw(st.booleans())}


def sort(x, axis=-1, descending=False):
    return tuple(torch.sort(x, dim=axis, descending=descending, stable=True))


def extremum(function):
    return lambda x, axis, keepdim=False: tuple(function(x, axis, keepdim))


ROWS = {
    "argsort_rows": Row(lambda x, descending=False: sort(x, -1, descending)[1], rows()),
    "first_cells": Row(lambda x, count, axis=-1: x.narrow(axis, 0, count), some("count")),
    "max_with_index": Row(extremum(torch.max), along(least=1, keepdim=st.booleans())),
    "min_with_index": Row(extremum(torch.min), along(least=1, keepdim=st.booleans())),
    "sort": Row(sort, along(descending=st.booleans())),
    "sort_rows": Row(lambda x, descending=False: sort(x, -1, descending)[0], rows()),
    "topk": Row(
        lambda x, k, axis=-1, largest=True: tuple(torch.topk(x, k, axis, largest)), some("k")
    ),
}

test_sorting = law(ROWS, examples=12)


def test_every_entry_is_compared():
    assert entries("sorting") == set(ROWS)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_worked_examples(name):
    examples_agree(ROWS, name)

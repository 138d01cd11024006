"""Sorting and extrema with places are PyTorch's; equal cells keep their order."""

# pyright: basic
# PyTorch has no types to speak of.

import numpy as np
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


@st.composite
def pairs(draw):
    """An array, and some of its cells along an axis, in any order."""
    (x,), given = draw(along())
    size = x.shape[given["axis"]]
    taken = draw(st.lists(st.integers(0, size - 1), max_size=5)) if size else []
    y = x.take(np.array(taken, int), given["axis"])
    return [x, y], given | {"descending": draw(st.booleans())}


@st.composite
def ranked(draw):
    """An array, and the places of its cells in some order."""
    (x,), given = draw(along())
    ranks = torch.rand(x.shape, generator=torch.Generator().manual_seed(x.size))
    ranks = ranks.argsort(given["axis"]).numpy()
    return [x, ranks], given | {"count": draw(st.integers(0, x.shape[given["axis"]]))}


@st.composite
def places(draw):
    (_, ranks), given = draw(ranked())
    return [ranks], given


def before(x, y, axis=-1, descending=False):
    """Where a cell of x comes among those of y, which equal ones at lower places come before."""
    x, y = x.movedim(axis, -1).unsqueeze(-1), y.movedim(axis, -1).unsqueeze(-2)
    less, equal = y < x, (y == x) | (y.isnan() & x.isnan())
    less = (~less & ~equal & ~x.isnan() | y.isnan() & ~x.isnan()) if descending else less
    less = less | (x.isnan() & ~y.isnan()) if not descending else less
    lower = torch.arange(y.shape[-1]) < torch.arange(x.shape[-2])[:, None]
    return (less | (equal & lower)).sum(-1).movedim(-1, axis)


def cells_at_ranks(x, ranks, axis=-1, count=0):
    return x.gather(axis, places_at_ranks(ranks, axis, count))


def places_at_ranks(ranks, axis=-1, count=0):
    return ranks.argsort(axis).narrow(axis, 0, count)


def first(x, k, axis=-1, largest=True):
    return tuple(one.narrow(axis, 0, k) for one in sort(x, axis, largest))


def extremum(function):
    return lambda x, axis, keepdim=False: tuple(function(x, axis, keepdim))


ROWS = {
    "argsort_rows": Row(lambda x, descending=False: sort(x, -1, descending)[1], rows()),
    "cells_at_ranks": Row(cells_at_ranks, ranked()),
    "count_before": Row(before, pairs()),
    "first_cells": Row(lambda x, count, axis=-1: x.narrow(axis, 0, count), some("count")),
    "max_with_index": Row(extremum(torch.max), along(least=1, keepdim=st.booleans())),
    "min_with_index": Row(extremum(torch.min), along(least=1, keepdim=st.booleans())),
    "places_at_ranks": Row(places_at_ranks, places()),
    "sort": Row(sort, along(descending=st.booleans())),
    "sort_by_rank": Row(sort, along(descending=st.booleans())),
    "sort_rows": Row(lambda x, descending=False: sort(x, -1, descending)[0], rows()),
    "topk": Row(
        lambda x, k, axis=-1, largest=True: tuple(torch.topk(x, k, axis, largest)), some("k")
    ),
    "topk_by_rank": Row(first, some("k")),
}

test_sorting = law(ROWS, examples=12)


def test_every_entry_is_compared():
    assert entries("sorting") == set(ROWS)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_worked_examples(name):
    examples_agree(ROWS, name)

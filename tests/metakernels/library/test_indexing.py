"""Gathers, scatters and searches of the library are PyTorch's; negative places are NumPy's."""

# pyright: basic
# PyTorch has no types to speak of.

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    ANY,
    NUMBERS,
    WIDE,
    Row,
    array,
    entries,
    examples_agree,
    law,
    torch,
    unary,
)
from tests.metakernels.library.applying import NUMPY

PLACES = ("i8", "i16", "i32", "i64")


@st.composite
def shaped(draw, low=0, high=4, least=1):
    rank = draw(st.integers(least, 3))
    return tuple(draw(st.integers(low, high)) for _ in range(rank))


@st.composite
def places(draw, shape, low, high):
    """Integers of `shape` from `low` to below `high`."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cells = random.integers(low, max(high, low + 1), shape)
    return cells.astype(NUMPY[draw(st.sampled_from(PLACES))])


@st.composite
def along(draw, dtypes=ANY, negative=False, smaller=True):
    """x, places along an axis that differ in that dimension alone, or are smaller in the others."""
    shape = list(draw(shaped()))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    n = shape[axis]
    other = [draw(st.integers(0, size)) if smaller else size for size in shape]
    other[axis] = draw(st.integers(0, 4)) if n else 0
    index = draw(places(tuple(other), -n if negative else 0, n))
    return [draw(array(dtypes, tuple(shape))), index], {"axis": axis}


@st.composite
def scattered(draw, dtypes, apart=False, vector=False):
    """x, places and what is written there; `apart` when no two places may be equal."""
    shape = list(draw(shaped()))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    n = shape[axis]
    m = draw(st.integers(0, n if apart else 4)) if n else 0
    source = list(shape)
    source[axis] = m
    if vector:
        index = draw(st.permutations(range(n)))[:m] if apart else draw(places((m,), 0, n))
        index = np.array(index, NUMPY[draw(st.sampled_from(PLACES))])
    else:
        index = draw(places(tuple(source), 0, n))
    if apart and not vector:
        random = np.random.default_rng(draw(st.integers(0, 99)))
        order = np.argsort(random.random(shape), axis=axis)
        index = np.take(order, np.arange(m), axis=axis).astype(index.dtype)
    dtype = (draw(st.sampled_from(dtypes)),)
    x, src = draw(array(dtype, tuple(shape))), draw(array(dtype, tuple(source)))
    return [x, index, src], {"axis": axis}


@st.composite
def selected(draw, vector=True, negative=False):
    shape = list(draw(shaped()))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    n = shape[axis]
    size = (draw(st.integers(0, 4)),) if vector else draw(shaped(least=0))
    if not n:
        size = (0,) if vector else (2, 0)
    index = draw(places(size, -n if negative else 0, n))
    return [draw(array(ANY, tuple(shape))), index], {"axis": axis}


@st.composite
def paired(draw):
    """x, and places along two axes, one after the other, in tensors of any shapes."""
    shape = list(draw(shaped(least=2)))
    axis = draw(st.integers(0, len(shape) - 2))
    given = []
    for n in shape[axis : axis + 2]:
        size = draw(shaped(low=1, least=0))[:2] if n else (2, 0)
        given.append(draw(places(size, -n, n)))
    return [draw(array(ANY, tuple(shape))), *given], {"axis": axis}


def at_pairs(x, first, second, axis=0):
    own = first.long().reshape(*first.shape, *[1] * second.dim())
    return x[(*[slice(None)] * axis, own, second.long())]


@st.composite
def numbered(draw, dtypes=ANY, pairs=False, written=False, apart=False):
    """x, numbers of its first dimension, or first two, and perhaps what is written there."""
    lead = tuple(draw(st.integers(1, 4)) for _ in range(1 + pairs))
    rest = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    cells = int(np.prod(lead))
    if written:
        count = (draw(st.integers(0, cells if apart else 5)),)
    else:
        count = draw(shaped(least=0))
    flat = (
        draw(st.permutations(range(cells)))[: count[0]] if apart else draw(places(count, 0, cells))
    )
    width = NUMPY[draw(st.sampled_from(PLACES))]
    index = [np.array(i).astype(width) for i in np.unravel_index(np.array(flat, np.int64), lead)]
    dtype = (draw(st.sampled_from(dtypes)),)
    x = draw(array(dtype, (*lead, *rest)))
    return [x, *index, *([draw(array(dtype, (*count, *rest)))] if written else [])], {}


def numbers(arguments):
    return tuple(argument.long() for argument in arguments)


@st.composite
def rows(draw):
    batch = draw(shaped(least=0))[:2]
    dtype = (draw(st.sampled_from((*PLACES, *WIDE))),)
    row = np.sort(draw(array(dtype, (*batch, draw(st.integers(0, 5))))), axis=-1)
    values = draw(array(dtype, (*batch, draw(st.integers(0, 4)))))
    return [row, values], {"right": draw(st.booleans())}


@st.composite
def buckets(draw):
    dtype = (draw(st.sampled_from((*PLACES, *WIDE))),)
    x = draw(array(dtype, draw(shaped(least=0))))
    return [x, np.sort(draw(array(dtype, (draw(st.integers(0, 5)),))))], {
        "right": draw(st.booleans())
    }


@st.composite
def tables(draw):
    vocab = draw(st.integers(1, 5))
    ids = draw(places(draw(shaped(least=0)), 0, vocab))
    return [draw(array(NUMBERS, (vocab, draw(st.integers(0, 4))))), ids], {}


def numpy_like(function):
    def reference(x, index, **parameters):
        x16 = x.float() if x.dtype == torch.bfloat16 else x
        found = torch.tensor(function(x16.numpy(), index.numpy().astype(np.int64), **parameters))
        return found.to(x.dtype)

    return reference


def reduced(how):
    return Row(
        lambda x, index, src, axis: x.scatter_reduce(axis, index.long(), src, how),
        scattered(NUMBERS),
        ulps=16,
        wide=True,
    )


def from_front(x, size):
    return torch.where(x < 0, x.long() + size, x.long())


ROWS = {
    "bucketize": Row(
        lambda x, boundaries, right=False: torch.bucketize(x, boundaries, right=right), buckets()
    ),
    "count_from_front": Row(from_front, unary(PLACES, size=st.integers(1, 300)), dtype=False),
    "embedding": Row(lambda table, ids: table[ids.long()], tables(), dtype=False),
    "gather": Row(lambda x, index, axis: torch.gather(x, axis, index.long()), along()),
    "index": Row(lambda x, *index: x[numbers(index)], st.one_of(numbered(), numbered(pairs=True))),
    "index_put": Row(
        lambda x, *rest: x.index_put(numbers(rest[:-1]), rest[-1]),
        numbered(written=True, apart=True),
    ),
    "index_put_pairs": Row(
        lambda x, *rest: x.index_put(numbers(rest[:-1]), rest[-1]),
        numbered(pairs=True, written=True, apart=True),
    ),
    "index_add_pairs": Row(
        lambda x, *rest: x.index_put(numbers(rest[:-1]), rest[-1], accumulate=True),
        numbered(NUMBERS, pairs=True, written=True), absolute=8,
    ),
    "index_add": Row(
        lambda x, index, src, axis=0: x.index_add(axis, index.long(), src),
        scattered(NUMBERS, vector=True), absolute=8,
    ),
    "index_copy": Row(
        lambda x, index, src, axis=0: x.index_copy(axis, index.long(), src),
        scattered(NUMBERS, apart=True, vector=True),
    ),
    "index_select": Row(
        lambda x, index, axis: torch.index_select(x, axis, index.long()), selected()
    ),
    "scatter": Row(
        lambda x, index, src, axis: x.scatter(axis, index.long(), src),
        scattered(NUMBERS, apart=True),
    ),
    "scatter_add": Row(
        lambda x, index, src, axis: x.scatter_add(axis, index.long(), src), scattered(NUMBERS),
        absolute=8,
    ),
    "scatter_max": reduced("amax"),
    "scatter_min": reduced("amin"),
    "scatter_mul": reduced("prod"),
    "searchsorted": Row(
        lambda row, values, right=False: torch.searchsorted(row, values, right=right), rows()
    ),
    "take": Row(
        numpy_like(lambda x, index, axis=0: np.take(x, index, axis)),
        selected(vector=False, negative=True),
    ),
    "take_pairs": Row(at_pairs, paired()),
    "take_along_axis": Row(
        numpy_like(lambda x, index, axis=-1: np.take_along_axis(x, index, axis)),
        along(negative=True, smaller=False),
    ),
}  # fmt: skip

test_indexing = law(ROWS)


def test_every_entry_is_compared():
    assert entries("indexing") == set(ROWS)


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"embedding"}))
def test_worked_examples(name):
    examples_agree(ROWS, name)

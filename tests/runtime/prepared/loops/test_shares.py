"""Folds of shares that are gone along at once: of each row, and of every cell of an only axis."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.codegen.loops import Folded, Graph
from tapestry.codegen.loops.graphs import FOLDS
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared.loops.loop import Loop

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

ROWS = (1, 3, 4, 5, 8, 11)
COLUMNS = (1, 31, 32, 33, 100, 1056, 2500)
LENGTHS = (1, 31, 127, 128, 129, 160, 4095, 4096, 4097, 33_000, 140_001)

ZERO = {"arith.addf": 0.0, "arith.mulf": 1.0, "arith.maximumf": -np.inf, "arith.minimumf": np.inf}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("primitive", sorted(ZERO))
def test_rows_fold_to_the_same_bits_wherever_they_are(primitive: str, dtype: str) -> None:
    """Also those that are left when all shares have as many."""
    kind = "float" if dtype == "f4" else "double"
    for columns in COLUMNS:
        row = np.random.default_rng(columns).lognormal(0, 0.1, columns).astype(dtype)
        for rows in ROWS:
            x = np.broadcast_to(row, (rows, columns)).copy()
            graph = Graph((kind,), (), (), (), (Folded(0, primitive, ZERO[primitive]),))
            (found,) = Loop(graph, x.shape, (1,))([x])
            assert set(found.ravel().tolist()) == {found.flat[0]}


@pytest.mark.parametrize("length", LENGTHS)
def test_every_cell_of_an_only_axis_is_folded_once(length: int) -> None:
    x = np.random.default_rng(length).integers(-(2**62), 2**62, length, np.int64)
    for primitive, want in (("arith.addi", x.sum()), ("arith.xori", np.bitwise_xor.reduce(x))):
        graph = Graph(("i64",), (), (), (), (Folded(0, primitive, 0),))
        (found,) = Loop(graph, x.shape, (0,))([x])
        assert found.item() == want


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("primitive", sorted(FOLDS & ZERO.keys()))
def test_one_that_is_not_a_number_is_found_wherever_it_is(primitive: str, length: int) -> None:
    graph = Graph(("float",), (), (), (), (Folded(0, primitive, ZERO[primitive]),))
    loop = Loop(graph, (length,), (0,))
    for at in {0, length // 4, length // 2, 3 * length // 4, length - 1}:
        x = np.ones(length, "f4")
        x[at] = np.nan
        (found,) = loop([x])
        assert np.isnan(found.item())


def test_sums_of_many_floats_lose_little() -> None:
    """As shares and blocks of them are folded apart."""
    x = np.random.default_rng(0).random(1 << 22, np.float32)
    (found,) = Loop(Graph(("float",), (), (), (), (Folded(0, "arith.addf", 0.0),)), x.shape, (0,))(
        [x]
    )
    want = x.sum(dtype=np.float64)
    assert abs(found.item() - want) <= 4 * np.spacing(np.float32(want))

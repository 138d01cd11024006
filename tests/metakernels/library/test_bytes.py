"""Integer metakernels on bytes (ui8) give what NumPy's uint8 gives, for every pair of bytes."""

# pyright: basic

import numpy as np
import pytest

from tests.metakernels.library.applying import run

A, B = (grid.ravel().astype(np.uint8) for grid in np.mgrid[:256, :256])
EACH = np.arange(256, dtype=np.uint8)
NO_ZERO = np.maximum(B, 1)


def where_nonzero(result):
    """A quotient or remainder is 0 where bytes are divided by zero."""
    return np.where(B == 0, 0, result).astype(np.uint8)


def shifted(function):
    """A shift in wider integers, of which bytes keep the low bits; far ones leave nothing."""
    return function(A.astype(np.uint16), np.minimum(B, 8)).astype(np.uint8)


@pytest.mark.parametrize(
    ("name", "wanted"),
    {
        "add": A + B,
        "sub": A - B,
        "mul": A * B,
        "div": (A / np.where(B == 0, np.nan, B)).astype(np.float32),
        "floor_divide": where_nonzero(A // NO_ZERO),
        "trunc_divide": where_nonzero(A // NO_ZERO),
        "remainder": where_nonzero(A % NO_ZERO),
        "fmod": where_nonzero(np.fmod(A, NO_ZERO)),
        "maximum": np.maximum(A, B),
        "minimum": np.minimum(A, B),
        "fmax": np.fmax(A, B),
        "fmin": np.fmin(A, B),
        "bitwise_and": A & B,
        "bitwise_or": A | B,
        "bitwise_xor": A ^ B,
        "shift_left": shifted(np.left_shift),
        "shift_right": shifted(np.right_shift),
        "eq": A == B,
        "ne": A != B,
        "lt": A < B,
        "le": A <= B,
        "gt": A > B,
        "ge": A >= B,
    }.items(),
)
def test_pairs(name, wanted):
    (found,) = run(name, [A, B], {})
    keep = slice(None) if name != "div" else B != 0
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found[keep], wanted[keep])


@pytest.mark.parametrize(
    ("name", "wanted"),
    {
        "abs": EACH,
        "neg": -EACH,
        "sign": np.sign(EACH),
        "square": EACH * EACH,
        "relu": EACH,
        "bitwise_not": ~EACH,
        "floor": EACH,
        "ceil": EACH,
        "round": EACH,
        "trunc": EACH,
        "logical_not": EACH == 0,
        "max": EACH.max(),
        "min": EACH.min(),
        "sum": EACH.sum(dtype=np.uint8),
        "any": EACH.any(),
        "all": EACH.all(),
    }.items(),
)
def test_single_bytes(name, wanted):
    (found,) = run(name, [EACH], {})
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "i1"])
def test_casts(dtype):
    numpy = {"f": "float", "i": "int"}[dtype[0]] + dtype[1:] if dtype != "i1" else "bool"
    (found,) = run("cast", [EACH], {"dtype": dtype})
    np.testing.assert_array_equal(found, EACH.astype(numpy))


def test_the_order_of_bytes():
    mixed = np.array([200, 3, 255, 0, 127, 128], np.uint8)
    for name in ("sort", "cummax", "cummin"):
        found = run(name, [mixed], {"axis": 0})[0]
        numpy = {"sort": np.sort, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate}
        np.testing.assert_array_equal(found, numpy[name](mixed))
    assert run("argmax", [mixed], {"axis": 0})[0] == 2
    assert run("argmin", [mixed], {"axis": 0})[0] == 3


@pytest.mark.parametrize("name", ["shift_right", "trunc_divide", "fmod", "sign"])
def test_kernels_agree(name):
    """A few bytes of both halves, in Triton."""
    a, b = np.array([200, 255, 255, 7], np.uint8), np.array([1, 2, 0, 250], np.uint8)
    given = [a] if name == "sign" else [a, b]
    (found,), (wanted,) = run(name, given, {}, "triton"), run(name, given, {})
    np.testing.assert_array_equal(found, wanted)

"""Products of matrices by BLAS, called with addresses: what `np.matmul` gives, however they lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.blas import NUMPY, Blas, find_fortran, find_function
from tapestry.runtime.cpu.multiplying import product_step

pytestmark = pytest.mark.skipif(
    not native.is_ready() or find_function("cblas_sgemm") is None,
    reason="nothing is compiled here, or NumPy multiplies by another library",
)

_Lay = Callable[[np.ndarray], np.ndarray]


def _turned(matrix: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(matrix.mT).mT


def _padded(matrix: np.ndarray) -> np.ndarray:
    """Rows that are further apart than they are long."""
    room = np.full((*matrix.shape[:-1], matrix.shape[-1] + 3), np.nan, matrix.dtype)
    room[..., : matrix.shape[-1]] = matrix
    return room[..., : matrix.shape[-1]]


def _same(matrix: np.ndarray) -> np.ndarray:
    return matrix


def _apart(matrix: np.ndarray) -> np.ndarray:
    """Dense along neither axis."""
    return np.repeat(np.repeat(matrix, 2, -1), 2, -2)[..., ::2, ::2]


def _random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def _case(
    dtype: str, lays: tuple[_Lay, _Lay, _Lay], stack: tuple[int, ...], sizes: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two factors of so many rows, columns and terms, and where their product goes."""
    rows, columns, terms = sizes
    lay_a, lay_b, lay_out = lays
    a = lay_a(_random((*stack, rows, terms), dtype))
    b = lay_b(_random((*stack, terms, columns), dtype))
    return a, b, lay_out(np.full((*stack, rows, columns), np.nan, dtype))


def _multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray, by: Blas = NUMPY) -> None:
    step = product_step(a, b, out, by)
    assert step is not None
    arguments = np.array(step.arguments, np.int64)
    arguments[list(step.addresses)] = [one.ctypes.data for one in (a, b, out)]
    step.function(arguments.ctypes.data)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("lay_a", [_same, _turned, _padded])
@pytest.mark.parametrize("lay_b", [_same, _turned, _padded])
@pytest.mark.parametrize("lay_out", [_same, _padded])
@pytest.mark.parametrize("stack", [(), (1,), (3,)])
@pytest.mark.parametrize("sizes", [(5, 7, 9), (2, 3, 1)])
def test_products(
    dtype: str,
    lay_a: _Lay,
    lay_b: _Lay,
    lay_out: _Lay,
    stack: tuple[int, ...],
    sizes: tuple[int, int, int],
) -> None:
    a, b, out = _case(dtype, (lay_a, lay_b, lay_out), stack, sizes)
    _multiply(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-6)


def test_one_matrix_for_a_whole_stack() -> None:
    a, b, out = _random((4, 5, 6), "f4"), _random((6, 7), "f4"), np.zeros((4, 5, 7), "f4")
    wide = np.broadcast_to(b, (4, 6, 7))
    _multiply(a, wide, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("lay_a", [_same, _turned, _padded])
@pytest.mark.parametrize("lay_b", [_same, _turned, _padded])
@pytest.mark.parametrize("lay_out", [_same, _padded])
@pytest.mark.parametrize("stack", [(), (3,)])
@pytest.mark.parametrize("sizes", [(1, 70, 90), (70, 1, 90), (1, 2, 2), (2, 1, 3)])
def test_vectors_are_multiplied_as_numpy_does(
    dtype: str,
    lay_a: _Lay,
    lay_b: _Lay,
    lay_out: _Lay,
    stack: tuple[int, ...],
    sizes: tuple[int, int, int],
) -> None:
    a, b, out = _case(dtype, (lay_a, lay_b, lay_out), stack, sizes)
    _multiply(a, b, out)
    np.testing.assert_array_equal(out, np.matmul(a, b, out=np.empty_like(out)))


def test_what_is_left_to_numpy() -> None:
    a, b, out = _random((5, 6), "f4"), _random((6, 7), "f4"), np.zeros((5, 7), "f4")
    assert product_step(a, b, out) is not None
    assert product_step(_apart(a), b, out) is None
    assert product_step(a, _apart(b), out) is None
    assert product_step(a, b, _turned(out)) is None
    assert product_step(a[:1], b[:, :1], out[:1, :1]) is None  # two vectors
    assert product_step(a[:1], _apart(b), out[:1]) is None
    assert product_step(a[:, :1], b[:1], out) is not None  # one term, of matrices all the same
    assert product_step(a[:, :1], b[:1, :1], out[:, :1]) is None
    assert product_step(a, b.astype("f8"), out.astype("f8")) is None
    assert product_step(*(one.astype("i4") for one in (a, b, out))) is None
    assert product_step(a, np.zeros((3, 6, 7), "f4"), np.zeros((3, 5, 7), "f4")) is None


def test_sizes_that_the_library_has_no_numbers_for() -> None:
    found = NUMPY.find("sgemm")
    assert found is not None
    cells = _random((5, 6), "f4")
    far = np.lib.stride_tricks.as_strided(cells, cells.shape, (1 << 34, 4))
    b, out = _random((6, 7), "f4"), np.zeros((5, 7), "f4")
    for wide in (False, True):
        by = Blas({"sgemm": (found[0], wide)}.get)
        assert product_step(cells, b, out, by) is not None
        is_multiplied = product_step(far, b, out, by) is not None
        assert is_multiplied == wide


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("lay_a", [_same, _turned, _padded])
@pytest.mark.parametrize("lay_b", [_same, _turned, _padded])
@pytest.mark.parametrize("lay_out", [_same, _padded])
@pytest.mark.parametrize("stack", [(), (3,)])
@pytest.mark.parametrize("sizes", [(5, 7, 9), (2, 3, 1), (1, 70, 90), (70, 1, 90), (40, 50, 300)])
def test_another_host_multiplies_by_functions_of_fortran(
    dtype: str,
    lay_a: _Lay,
    lay_b: _Lay,
    lay_out: _Lay,
    stack: tuple[int, ...],
    sizes: tuple[int, int, int],
) -> None:
    torch = pytest.importorskip("torch")
    if not torch.backends.mkl.is_available():
        pytest.skip("this PyTorch multiplies by another library than MKL")
    by = find_fortran(torch._C.__file__)
    assert by is not None
    a, b, out = _case(dtype, (lay_a, lay_b, lay_out), stack, sizes)
    _multiply(a, b, out, by)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)


def test_a_library_without_blas_has_none() -> None:
    assert find_fortran("/nowhere/lib.so") is None
    assert find_fortran(native.__file__) is None

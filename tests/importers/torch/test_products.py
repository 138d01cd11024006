"""Matrix products by PyTorch are NumPy's, whatever the factors' memory is like."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tapestry.importers.torch import products  # noqa: E402
from tests.importers.torch.compare import compiled  # noqa: E402


@pytest.fixture
def calls(monkeypatch):
    """The shapes of PyTorch's products."""
    made: list[tuple[int, ...]] = []

    def counted(by):
        def count(a, b, out):
            made.append(tuple(out.shape))
            return by(a, b, out=out)

        return count

    for name in ("_mm", "_bmm"):
        monkeypatch.setattr(products, name, counted(getattr(products, name)))
    return made


def _cells(*shape: int, dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def _readonly(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("a", "b", "by_torch"),
    [
        (_cells(80, 70), _cells(70, 90), True),
        (_cells(80, 70, dtype="f8"), _cells(70, 90, dtype="f8"), True),
        (_cells(70, 80).T, _cells(90, 70).T, True),
        (_cells(160, 140)[::2, ::2], _cells(70, 90), True),
        (_cells(3, 80, 70), _cells(3, 90, 70).transpose(0, 2, 1), True),
        (_cells(1, 80, 70), _cells(1, 90, 70).transpose(0, 2, 1), True),
        (_cells(8, 7), _cells(7, 9), False),
        (_cells(0, 7), _cells(7, 90), False),
        (_cells(80, 70)[::-1], _cells(70, 90), False),
        (_readonly(_cells(80, 70)), _cells(70, 90), False),
        (_cells(80, 70, dtype="i4"), _cells(70, 90, dtype="i4"), False),
        (_cells(80, 70, dtype="c8"), _cells(70, 90, dtype="c8"), False),
    ],
)
def test_products(a: np.ndarray, b: np.ndarray, by_torch: bool, calls: list[object]) -> None:
    got = products.product(a, b)
    want = np.matmul(a, b)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    assert len(calls) == by_torch


def test_a_compiled_model_multiplies_by_pytorch(calls: list[object]) -> None:
    model = torch.nn.Linear(64, 96)
    x = torch.randn(100, 64, requires_grad=True)
    compiled(model)(x).sum().backward()
    assert {(100, 96), (100, 64), (96, 64)} <= set(calls)


@pytest.mark.parametrize("function", list(products.LIBRARY.functions))
@pytest.mark.parametrize("rows", [3, 1 << 10])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions(function, rows: int, dtype: str) -> None:
    by = products.LIBRARY.functions[function]
    x = np.linspace(-5, 5, rows * 40, dtype=dtype).reshape(rows, 40)
    count = getattr(function, "nin", 1)
    for other in (x[::-1].copy(), x[:, :1].copy(), x[1], np.asarray(3, dtype), _readonly(x * 2)):
        given = [x.copy(), other][:count]
        want = function(*given)
        np.testing.assert_array_equal(by(*given), want)
        for out in (np.empty_like(want), given[0], np.empty_like(want.T).T):
            assert by(*given, out=out) is out
            np.testing.assert_allclose(out, want, rtol=1e-6)
            given[0] = x.copy()


def test_autocasting_does_not_reach_into_a_program() -> None:
    a = _cells(80, 70) + np.float32(1 / 512)  # not a number of bfloat16's
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = products.product(a, _cells(70, 90))
    np.testing.assert_allclose(got, np.matmul(a, _cells(70, 90)), rtol=1e-6)

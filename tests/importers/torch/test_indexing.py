"""Tensors of indices that count are coordinates of the result, and look nothing up."""

import pytest

torch = pytest.importorskip("torch")

from tapestry.diagnostics import TapestryError  # noqa: E402
from tests.importers.torch.compare import compiled  # noqa: E402

N, C = torch.arange(3), torch.arange(4)
BESIDE = {
    "the batch": lambda x, at: x[N[:, None], :, at, at],
    "the batch and channels": lambda x, at: x[
        N[:, None, None], C[:, None], at[:, None], at[:, None]
    ],
    "apart": lambda x, at: x[N[:, None], :, :, at],
    "turned": lambda x, at: x[N[:, None], C, :, at[:, :1]],
    "the same twice": lambda x, at: x[N, :, N, at[:, 0]],
    "short": lambda x, at: x[torch.arange(2)[:, None], C[:, None].mT, at[:2, :1], at[:1, :1]],
}


@pytest.mark.parametrize("name", BESIDE)
def test_indices_that_count_are_coordinates(name: str) -> None:
    x = torch.arange(360.0).reshape(3, 4, 5, 6)
    at = torch.tensor([[0, 4, -1, 2], [3, -5, 1, 1], [2, 2, 0, -2]])
    got = compiled(BESIDE[name], strict=True)(x, at)
    torch.testing.assert_close(got, BESIDE[name](x, at), rtol=0, atol=0)
    with pytest.raises(TapestryError, match="index"):
        compiled(BESIDE[name])(x, at + 7)

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


PAIRS = {
    "rows and columns": lambda x, at: x[:, :, at[0, :, None], at[1]],
    "of other ranks": lambda x, at: x[:, at[:, :, None], at[2, None, None]],
    "in the front": lambda x, at: x[at[0, :3, None], at[1]],
    "one of one": lambda x, at: x[:, :, at[:, :1], at[0, :1]],
    "the other way": lambda x, at: x[:, :, at[0], at[1, :, None]],
    "not beside": lambda x, at: x[:, at[0, :, None], :, at[1]],
}


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("name", PAIRS)
def test_indices_with_dimensions_of_their_own(name: str, on: str) -> None:
    """Those of neighbouring axes, in order, are looked up as they are; others are merged."""
    x = torch.arange(360.0).reshape(3, 4, 5, 6)
    at = torch.tensor([[0, 2, -1, 2], [-2, -1, 1, 1], [2, 2, 0, -2]])
    got = compiled(PAIRS[name], strict=True, on=on)(x, at)
    torch.testing.assert_close(got, PAIRS[name](x, at), rtol=0, atol=0)


@pytest.mark.parametrize("wrong", [0, 1])
def test_an_index_of_a_pair_that_is_not_there(wrong: int) -> None:
    x, at = torch.zeros(2, 5, 6), [torch.tensor([[0], [1]]), torch.tensor([2, 3])]
    at[wrong] = at[wrong] + 9
    with pytest.raises(TapestryError, match="index"):
        compiled(lambda x, rows, columns: x[:, rows, columns])(x, *at)


@pytest.mark.parametrize("kind", [torch.bool, torch.int8, torch.float16])
def test_what_is_put_has_the_type_of_what_it_is_put_into(kind: torch.dtype) -> None:
    x = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(kind)
    source = torch.tensor([2.0, 0.0])

    def put(x, source):
        return x.select_scatter(source, 1, -1), x.slice_scatter(source[:, None], 1, 0, 1)

    torch.testing.assert_close(compiled(put)(x, source), put(x, source))

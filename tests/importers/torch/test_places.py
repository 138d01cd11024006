"""Places that are not there: refused where PyTorch refuses them, on each executor."""

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from tapestry.diagnostics import TapestryError  # noqa: E402
from tests.importers.torch.compare import compiled  # noqa: E402

X = torch.arange(12.0).reshape(3, 4)
SOURCE = torch.tensor([[1.0, -2.0], [30.0, 4.0], [5.0, 0.5]])


def _written(x, at, src):
    y = x.clone()
    y[:, at] = src
    return y


BY_CELL = {
    "gather": lambda x, at, _: x.gather(1, at),
    "take": lambda x, at, _: x.take(3 * at),
    "put": lambda x, at, src: x.put(3 * at, src),
    "scatter": lambda x, at, src: x.scatter(1, at, src),
    "scatter of a value": lambda x, at, _: x.scatter(1, at, 3.0),
    "scatter_add": lambda x, at, src: x.scatter_add(1, at, src),
    "sum": lambda x, at, src: x.scatter_reduce(1, at, src, "sum"),
    "mean": lambda x, at, src: x.scatter_reduce(1, at, src, "mean"),
    "prod": lambda x, at, src: x.scatter_reduce(1, at, src, "prod", include_self=False),
    "amax": lambda x, at, src: x.scatter_reduce(1, at, src, "amax"),
    "pairs": lambda x, at, _: x[at.clamp(0, 2), at],
    "pairs put": lambda x, at, src: x.index_put((torch.arange(3)[:, None], at), src),
    "pairs added": lambda x, at, src: x.index_put((at.clamp(0, 2), at), src, accumulate=True),
}
BY_SLICE = {
    "index": lambda x, at, _: x[:, at],
    "index_select": lambda x, at, _: x.index_select(1, at),
    "index_add": lambda x, at, src: x.index_add(1, at, src, alpha=2),
    "index_copy": lambda x, at, src: x.index_copy(1, at, src),
    "index_fill": lambda x, at, _: x.index_fill(1, at, 2.0),
    "index_reduce": lambda x, at, src: x.index_reduce(1, at, src, "amin"),
    "index_put": lambda x, at, src: x.t().index_put((at,), src.t()),
    "written": _written,
    "embedding": lambda x, at, _: functional.embedding(at, x.t()),
    "nll_loss": lambda x, at, _: functional.nll_loss(x[:2], at),
    "cross_entropy": lambda x, at, _: functional.cross_entropy(x[:2], at),
}


def _same(function: Callable[..., object], *args: object, **options: object) -> bool:
    """Check that eager and compiled agree; whether they give something."""
    try:
        want = function(*args)
    except (IndexError, RuntimeError):
        with pytest.raises(TapestryError, match="index"):
            compiled(function, **options)(*args)
        return False
    torch.testing.assert_close(compiled(function, **options)(*args), want)
    return True


@pytest.mark.sweep(4)
@pytest.mark.parametrize("place", [3, 4, -1, -4, -5])
@pytest.mark.parametrize("name", [*BY_CELL, *BY_SLICE])
@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
def test_places_from_end_to_end(name: str, place: int) -> None:
    if name in BY_CELL:
        at, source = torch.tensor([[0, place], [1, 2], [2, 0]]), SOURCE
    else:
        at, source = torch.tensor([0, place]), SOURCE
    given = _same({**BY_CELL, **BY_SLICE}[name], X, at, source)
    assert given or place != 3
    assert not given or place not in (4, -5)


@pytest.mark.parametrize("place", [0, 1, -1, -2])
def test_the_only_place(place: int) -> None:
    one = X[:, :1]
    at = torch.full((3, 1), place)
    for name in ("gather", "scatter", "scatter_add", "pairs put"):
        _same(BY_CELL[name], one, at, SOURCE[:, :1])
    for name in ("index", "index_select", "index_copy", "embedding"):
        _same(BY_SLICE[name], one, at[0], SOURCE[:, :1])
    _same(lambda x, at: (2 * x + torch.arange(1)).gather(1, at), one, at)


@pytest.mark.parametrize("on", ["reference", "triton"])
def test_places_on_other_executors(on: str) -> None:
    if on == "triton":
        pytest.importorskip("triton")
    for place, there in ((3, True), (4, False), (-1, False)):
        at = torch.tensor([[0, place], [1, 2], [2, 0]])
        assert _same(BY_CELL["scatter_add"], X, at, SOURCE, on=on) is there
    one = torch.ones(3, 1, dtype=torch.int64)
    assert not _same(BY_CELL["gather"], X[:, :1], one, SOURCE, on=on)


@pytest.mark.parametrize("on", ["numpy", "triton"])
def test_places_that_not_all_points_need(on: str) -> None:
    """A gradient is looked up along what is folded, and needed on a diagonal alone."""
    if on == "triton":
        pytest.importorskip("triton")

    def put(x, at):
        rows = torch.diag_embed(x)
        return rows.index_add(0, at.clamp(0, 4), rows[:1].expand(3, 3, 3)).double()

    x = torch.randn(5, 3, requires_grad=True)
    at = torch.tensor([1, 4, -2])
    want, got = (
        torch.autograd.grad(torch.sin(function(x, at)).sum(), x)
        for function in (put, compiled(put, on=on))
    )
    torch.testing.assert_close(got, want)


def test_places_that_are_known_are_not_looked_up() -> None:
    from tapestry.importers.torch import export

    class Put(torch.nn.Module):
        def forward(self, x):
            return x.index_put((torch.arange(3)[:, None], torch.tensor([0, 3])), SOURCE)

    assert "@take" not in str(export(Put(), (X,)))

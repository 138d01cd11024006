"""Tensors as people have them: empty, of one cell, of any dtype, strided, written to, returned.

A table of programs against eager: results, gradients, and what is left in the inputs.
"""

import warnings
from collections.abc import Callable, Sequence

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from tapestry.diagnostics import TapestryError  # noqa: E402
from tests.importers.torch.compare import compiled  # noqa: E402

_CODES = {
    "f": torch.float32, "d": torch.float64, "h": torch.float16, "b": torch.bfloat16,
    "i": torch.int64, "s": torch.int8, "u": torch.uint8, "t": torch.bool,
}  # fmt: skip

_LOSSES = [
    getattr(functional, f"{name}_loss")
    for name in ("mse", "l1", "smooth_l1", "huber", "poisson_nll")
]

EMPTY = {
    "folds": (
        "f0,3",
        lambda x: (x.sum(), x.sum(0), x.sum(1), x.prod(), x.mean(), x.any(), x.all()),
    ),
    "statistics": ("f0,3", lambda x: (x.var(1), x.std(0), x.norm(), x.logsumexp(0))),
    "extremes": ("f0,3", lambda x: (x.amax(1), x.argmax(1), x.sort(1)[0], x.topk(2, 1)[0])),
    "no extreme": ("f0,3", lambda x: x.max()),
    "products": ("f3,0 f0,4", lambda x, y: (x @ y, y.t() @ x.t())),
    "rows": ("f0,3 f3,4", lambda x, y: x @ y),
    "cat": ("f0,3 f2,3", lambda x, y: torch.cat([x, y])),
    "convolution": ("f0,3,5,5 f4,3,3,3", functional.conv2d),
    "losses": ("f0,3 f0,3", lambda x, y: [loss(x, y) for loss in _LOSSES]),
    "norms": ("f0,3", lambda x: (functional.layer_norm(x, (3,)), x.softmax(0), x.softmax(1))),
    "loss": ("f0,3 i0", functional.cross_entropy),
    "index": (
        "f4,3 i0",
        lambda x, at: (x[at], x.index_add(0, at, x[at]), x.gather(1, at[:, None])),
    ),
    "cumulative": ("f0,3", lambda x: (x.cumsum(1), x.cumsum(0), x.flip(0))),
}
SINGLE = {
    "number": ("f f", lambda x, y: (x + y, x.sum(), x.max(), x.softmax(0), x.cumsum(0), x[None])),
    "number as tensor": ("f", lambda x: (x.sort()[0], x.argmax(), x.flatten(), x.expand(3))),
    "axes of one": ("f4,1,1 f1,1,3", lambda x, y: (x + y, x.mean(1), x.squeeze(), x.softmax(1))),
    "norms of one": (
        "f4,1,1",
        lambda x: (functional.layer_norm(x, (1,)), x.cumsum(1), x.max(1)[0]),
    ),
    "no variance": ("f4,1", lambda x: x.var(1)),
}
DTYPES = {
    "sums": ("?4,5", lambda x: (x.sum(), x.sum(0), x.prod(1), x.cumsum(0), x.any(), x.all(1))),
    "compared": ("?4,5 ?4,5", lambda x, y: (x > y, x == y, torch.maximum(x, y), x.amax(1))),
    "promoted": ("?4,5 f4,5 i4,5", lambda x, y, z: (x + y, x * z, x * 2, x * 2.5, x / 2)),
    "cast": ("?4,5", lambda x: [x.to(one) for one in _CODES.values() if one != torch.uint8]),
    "wraps": ("?4,5 ?4,5", lambda x, y: (x * y, x + y, torch.where(x > y, x, y))),
}
LAYOUTS = {
    "reversed": ("f5,6", lambda x: (x.flip(0), x[::2], x[1::3, ::2], torch.rot90(x), x.roll(2, 0))),
    "written": ("f4,4", lambda x: (x[0].zero_(), x[:, 1].add_(5), x.t()[2].mul_(3), x * 1)[-1]),
    "written after": ("f3,4 f4", lambda x, y: _written(x * 1, y)),
    "added to": ("f3,4 f3,4", lambda x, y: (x.add_(y), y.mul_(2))[0]),
    "itself": ("f3,4", lambda x: (x, x.view(-1), x[0], x + 1, x)),
    "twice": ("f3", lambda x: (x * 2,) * 2),
    "windows": ("f7,5", lambda x: (x.unfold(0, 3, 2), x.unfold(1, 2, 1).sum(-1))),
    "placed": ("f3,4 f2,2", lambda x, y: x.as_strided_scatter(y, (2, 2), (3, 1), 1)),
    "detached": ("f3", lambda x: ((x * 2).detach(), (x * 2).detach() * x)),
    "structure": ("f3", lambda x: {"a": x + 1, "b": [x * 2, (x, None)], "c": x.shape[0]}),
}
NANS = {
    "ordered": ("n", lambda x: (x.max(), x.amin(0), x.sort()[0], x.argmax(), x.argmin())),
    "signs": ("n", lambda x: (x.sign(), x.relu(), x.clamp(-1, 1), x.abs(), x.isnan(), x.sgn())),
    "rows": ("r", lambda x: (x.logsumexp(1), x.softmax(1), x.log_softmax(1), x.logsumexp(0))),
    "folded": ("n", lambda x: (x.sum(), x.nansum(), x.softmax(0), x.logsumexp(0), x.nan_to_num())),
}


_REFUSED = "it is refused"


def _written(x, y):
    x[0].copy_(y)
    x.mul_(2)
    return x


def _tensor(code: str) -> torch.Tensor:
    if code == "n":
        return torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), -0.0, -2.0])
    if code == "r":
        pairs = torch.cartesian_prod(*[_tensor("n")] * 2)
        return torch.cat((pairs, pairs[:, :1].expand(-1, 7)), 1)
    dtype, sizes = _CODES[code[0]], [int(size) for size in code[1:].split(",") if size]
    if dtype.is_floating_point:
        return torch.randn(sizes).to(dtype).requires_grad_()
    return torch.randint(0, 2 if dtype == torch.bool else 100, sizes).to(dtype)


def _leaves(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    known = isinstance(value, dict | list | tuple)
    return [one for item in items for one in _leaves(item)] if known else []


def _run(function: Callable[..., object], given: list[torch.Tensor]) -> object:
    """Results and gradients, or that there is an error."""
    try:
        made = function(*given)
        smooth = [one for one in _leaves(made) if one.requires_grad]
        slopes: Sequence[torch.Tensor | None] = []
        if smooth:
            own = [one for one in given if one.requires_grad]
            total = sum(one.double().square().sum() for one in smooth)
            slopes = torch.autograd.grad(total, own, allow_unused=True)
        return made, [one is None for one in slopes], [one for one in slopes if one is not None]
    except (RuntimeError, IndexError, ValueError, TapestryError):
        return _REFUSED


def _check(codes: str, function: Callable[..., object], *, written: bool = False) -> None:
    torch.manual_seed(0)
    given = [_tensor(code) for code in codes.split()]
    if written:
        given = [one.detach() for one in given]
    other = [one.detach().clone().requires_grad_(one.requires_grad) for one in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, have = _run(function, other), _run(compiled(function), given)
    if want is _REFUSED:
        assert have is _REFUSED
        return
    near = 2e-2 if any(one.dtype in (torch.float16, torch.bfloat16) for one in given) else 1e-5
    torch.testing.assert_close(have, want, rtol=near, atol=near, equal_nan=True)
    torch.testing.assert_close(given, other, rtol=near, atol=near, equal_nan=True)


_WRITTEN = ("written", "added to")


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (table, name)
        for table in ("EMPTY", "SINGLE", "LAYOUTS", "NANS")
        for name in globals()[table]
    ],
)
def test_programs(table: str, name: str) -> None:
    _check(*globals()[table][name], written=name in _WRITTEN)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("code", "dhbisut")
@pytest.mark.parametrize("name", DTYPES)
def test_programs_of_any_dtype(name: str, code: str) -> None:
    codes, function = DTYPES[name]
    _check(codes.replace("?", code), function)


def test_a_graph_that_returns_one_value() -> None:
    from torch import fx

    from tapestry.importers.torch import ImportingError
    from tapestry.importers.torch.graphs import program_of

    def graph_of(shape: str) -> fx.GraphModule:
        graph = fx.Graph()
        x = graph.placeholder("x")
        x.meta["val"] = torch.ones(3)
        y = graph.call_function(torch.ops.aten.neg.default, (x,))
        y.meta["val"] = -torch.ones(3)
        graph.output({"one": y, "pair": (y, x), "dict": {"y": y}, "nested": (y, [x])}[shape])
        return fx.GraphModule(torch.nn.Module(), graph)

    assert len(program_of(graph_of("one")).outputs) == 1
    assert len(program_of(graph_of("pair")).outputs) == 2
    for shape in ("dict", "nested"):
        with pytest.raises(ImportingError, match="cannot be imported"):
            program_of(graph_of(shape))

"""What the backward pass of attention takes from the forward pass, instead of rows of scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, fx, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812 (its name everywhere)
from torch.utils.checkpoint import CheckpointPolicy  # noqa: E402

from tapestry.importers.torch.partitioning import partitioned  # noqa: E402
from tapestry.importers.torch.recomputing import RECOMPUTE  # noqa: E402
from tests.importers.torch.passes import Graphs, divided  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd"),
    pytest.mark.usefixtures("as_on_a_gpu"),
]

ROWS, WIDTH = 40, 8


def _plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT, -1) @ v


def _column(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Weights of each column add up to one."""
    return torch.softmax(q @ k.mT, -2) @ v


def _attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _shared(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = k[:, :1], v[:, :1]
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def _returned(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """With the weights, which are not computed again."""
    weights = torch.softmax(q @ k.mT, -1)
    return weights @ v, weights


def _otherwise(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The weights are multiplied by other values than their gradient is of."""
    weights = torch.softmax(q @ k.mT, -1)
    return (weights * weights.detach().cos()) @ v


def _truncated(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    made = _plain(q, k, v)
    return made, made.to(torch.int32)


def _rounded(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    made = _plain(q, k, v)
    return made, made.to(torch.bfloat16)


class _Straight(torch.autograd.Function):
    """Rounded to whole numbers, with the gradient of what is not."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x.to(torch.int32).to(x.dtype)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        return gradient


def _whole_weights(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights: Tensor = torch.softmax(q @ k.mT, -1)
    return _Straight.apply(weights * 9) @ v


def _twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.softmax(q @ k.mT, -1)
    return (weights @ v) * (weights.detach() @ v.sin())


def _no_axes(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q.sum(), 0) * _plain(q, k, v)


def _trained(
    function: Callable[..., Any],
    *inputs: Tensor,
    dynamic: bool = False,
    divide: Callable[..., Any] = partitioned,
) -> tuple[list[Tensor], Graphs]:
    """The gradients of a function's first result, and the graphs of both passes."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    with divided(function, divide, dynamic=dynamic) as (run, graphs):
        made = run(*leaves)
        made = made if isinstance(made, Tensor) else made[0]
        return list(torch.autograd.grad(made, leaves, _seed(made))), graphs


def _seed(made: Tensor) -> Tensor:
    return torch.linspace(-1, 1, made.numel(), dtype=made.dtype).reshape(made.shape)


def _operators(graph: fx.GraphModule) -> Counter[str]:
    called = (node.target for node in graph.graph.nodes if node.op == "call_function")
    return Counter(str(target).removeprefix("aten.").split(".")[0] for target in called)


def _inputs(dtype: torch.dtype = torch.float32, axes: int = 4) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 2, ROWS, WIDTH).to(dtype)[(0,) * (4 - axes)] for _ in range(3)]


@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("function", [_plain, _column])
def test_gradients_are_the_same(function: Callable[..., Tensor], axes: int) -> None:
    _check(function, _inputs(axes=axes), 1e-5)


SEVERAL = (_attended, _shared, _returned, _otherwise, _truncated, _rounded, _whole_weights, _twice)


@pytest.mark.parametrize("function", [*SEVERAL, _no_axes])
def test_gradients_of_heads_are_the_same(function: Callable[..., Any]) -> None:
    _check(function, _inputs(), 1e-5)


@pytest.mark.parametrize("function", [_plain, _attended])
def test_gradients_in_16_bits_are_as_exact(function: Callable[..., Tensor]) -> None:
    inputs = _inputs(torch.bfloat16)
    got, _ = _trained(function, *inputs)
    leaves = [x.detach().requires_grad_() for x in inputs]
    made = function(*leaves)
    eager = torch.autograd.grad(made, leaves, _seed(made))
    wide = [x.detach().double().requires_grad_() for x in inputs]
    made = function(*wide)
    for one, plain, exact in zip(
        got, eager, torch.autograd.grad(made, wide, _seed(made)), strict=True
    ):
        errors = [float((x.double() - exact).abs().max()) for x in (one, plain)]
        assert errors[0] <= 1.5 * errors[1]


@pytest.mark.parametrize("function", [_plain, _attended])
def test_sizes_that_are_open_stay_open(function: Callable[..., Tensor]) -> None:
    _check(function, _inputs(), 1e-5, dynamic=True)
    _, graphs = _trained(function, *_inputs(), dynamic=True)
    sizes = [
        size
        for node in graphs["backward"].graph.find_nodes(op="placeholder")
        if isinstance(node.meta["val"], Tensor)
        for size in node.meta["val"].shape
    ]
    assert any(isinstance(size, torch.SymInt) for size in sizes)
    assert not any(isinstance(size, int) and size == ROWS for size in sizes)
    assert not {"amax", "_softmax"} & set(_operators(graphs["backward"]))


def _check(
    function: Callable[..., Any], inputs: list[Tensor], tolerance: float, *, dynamic: bool = False
) -> None:
    got, _ = _trained(function, *inputs, dynamic=dynamic)
    leaves = [x.detach().double().requires_grad_() for x in inputs]
    made = function(*leaves)
    made = made if isinstance(made, Tensor) else made[0]
    for one, other in zip(got, torch.autograd.grad(made, leaves, _seed(made)), strict=True):
        scale = float(other.abs().max())
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance * scale)


def test_rows_are_kept_as_what_they_fold_to() -> None:
    _, graphs = _trained(_plain, *_inputs())
    assert _operators(graphs["forward"])["amax"] == 1
    backward = _operators(graphs["backward"])
    assert not {"amax", "_softmax"} & set(backward)
    assert backward["exp"] == 1
    kept = [node.meta["val"] for node in graphs["backward"].graph.find_nodes(op="placeholder")]
    assert max(one.numel() for one in kept) == 4 * ROWS * WIDTH
    assert sum(one.numel() == 4 * ROWS for one in kept) == 2


@pytest.mark.parametrize("function", [_plain, _attended, _shared, _truncated, _rounded])
def test_sums_along_rows_of_scores_are_along_rows_of_the_result(function: Any) -> None:
    _, graphs = _trained(function, *_inputs())
    folded = [
        node.args[0].meta["val"].shape
        for node in graphs["backward"].graph.nodes
        if node.target == torch.ops.aten.sum.dim_IntList and node.meta["val"].shape[-1] == 1
    ]
    assert [shape[-1] for shape in folded] == [WIDTH]


@pytest.mark.parametrize("function", [_column, _returned, _otherwise])
def test_other_sums_are_as_they_were(function: Any) -> None:
    _, graphs = _trained(function, *_inputs())
    found = graphs["backward"].graph.find_nodes(
        op="call_function", target=torch.ops.aten.sum.dim_IntList
    )
    assert any(node.args[0].meta["val"].numel() == 4 * ROWS * ROWS for node in found)


def test_what_is_said_to_be_kept_is_kept_whole() -> None:
    def divide(joint: fx.GraphModule, *given: Any, **options: Any) -> Any:
        for node in joint.graph.nodes:
            if "_softmax" in str(node.target):
                node.meta[RECOMPUTE] = CheckpointPolicy.MUST_SAVE
                node.meta["ac_graph_id"] = 0
        return partitioned(joint, *given, **options)

    _, graphs = _trained(_plain, *_inputs(), divide=divide)
    assert _operators(graphs["forward"])["_softmax"] == 1
    kept = [node.meta["val"] for node in graphs["backward"].graph.find_nodes(op="placeholder")]
    assert max(one.numel() for one in kept) == 4 * ROWS * ROWS


def test_the_result_is_read_as_it_is_kept_anyway() -> None:
    """What follows attention keeps the heads side by side, which are not kept apart as well."""
    out = nn.Linear(2 * WIDTH, 2 * WIDTH)

    def layer(q: Tensor, k: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        heads = _attended(q, k, v)
        return heads.transpose(1, 2).reshape(2, ROWS, -1) @ weight

    _, graphs = _trained(layer, *_inputs(), out.weight)
    shapes = [
        tuple(node.meta["val"].shape)
        for node in graphs["backward"].graph.find_nodes(op="placeholder")
        if node.meta["val"].numel() == 4 * ROWS * WIDTH
    ]
    # Queries, keys, values, the heads side by side, and the gradient.
    assert len(shapes) == 5

"""Attention is trained without its weights: the backward pass computes them again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, fx, nn  # noqa: E402
from torch._functorch.aot_autograd import aot_function  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812 (its name everywhere)
from xdsl.dialects import scf  # noqa: E402

import tapestry  # noqa: E402
from tapestry.codegen.module_printer import print_module  # noqa: E402
from tapestry.dialects import loom, triton  # noqa: E402
from tapestry.frontend import run_pipeline  # noqa: E402
from tapestry.importers.torch import recomputing  # noqa: E402
from tapestry.importers.torch.graphs import program_of  # noqa: E402
from tapestry.importers.torch.partitioning import partitioned  # noqa: E402
from tapestry.importers.torch.recomputing import RECOMPUTE, mark_recomputed  # noqa: E402
from tapestry.passes.triton.alternatives.storing import (  # noqa: E402
    apply_stores,
    computed_factors,
)
from tapestry.pipelines import DEFAULT_PIPELINE  # noqa: E402
from tapestry.runtime.executor import NoWatch, find_executor  # noqa: E402
from tapestry.runtime.triton.devices import Cpu  # noqa: E402
from tapestry.runtime.triton.executor import TritonExecutor  # noqa: E402
from tests.importers.torch.compare import compiled  # noqa: E402
from tests.importers.torch.passes import Graphs, divided  # noqa: E402

ROWS = 40
"""Ten times the columns: scores are five times as large as what they are of."""

COLUMNS = 4

attend: Callable[..., Tensor] = F.scaled_dot_product_attention


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(q, k, v, is_causal=True)


def _masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    near = torch.arange(ROWS)[:, None] < torch.arange(ROWS) + 9
    return attend(q, k, v, attn_mask=near)


def _biased(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    far = torch.arange(ROWS, dtype=q.dtype)[:, None] - torch.arange(ROWS, dtype=q.dtype)
    return attend(q, k, v, attn_mask=-0.1 * far.abs())


def _grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(q, k[:, :1], v[:, :1], is_causal=True, enable_gqa=True)


def _shared(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(q, q, attend(q, k, v))


FORMS = [attend, _causal, _masked, _biased, _grouped, _shared]


def _inputs(rows: int = ROWS, columns: int = COLUMNS, dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    return [torch.randn(2, 2, rows, columns, dtype=dtype, requires_grad=True) for _ in range(3)]


def _called(run: Callable[..., Tensor], inputs: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """A result, and the tensors that are kept for its gradients."""
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        return run(*inputs), kept


@pytest.mark.sweep(3)
@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__.strip("_"))
def test_gradients_are_those_of_eager_mode(form: Callable[..., Tensor], dtype: torch.dtype) -> None:
    """Without a tensor of rows by rows among those that are kept."""
    inputs = _inputs(dtype=dtype)
    grad = torch.randn_like(inputs[0])
    want = torch.autograd.grad(form(*inputs), inputs, grad)
    made, kept = _called(compiled(form), inputs)
    got = torch.autograd.grad(made, inputs, grad)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(got, want, rtol=10 * tolerance, atol=tolerance)
    assert kept
    assert max(x.numel() for x in kept) < ROWS * ROWS


@pytest.mark.usefixtures("as_on_a_gpu")
def test_what_is_dropped_is_dropped_again() -> None:
    """The result is `weights @ v`, so `<result, w>` is `<v, gradient>` with the same weights."""
    q, k, v = _inputs(dtype=torch.float64)
    grad = torch.randn_like(v)
    run = compiled(lambda q, k, v: attend(q, k, v, dropout_p=0.5))
    results: list[Tensor] = []
    for _ in range(2):
        made, kept = _called(run, (q, k, v))
        # PyTorch's own generator is asked in between: its state is not what is gone back to.
        torch.rand(3)
        (found,) = torch.autograd.grad(made, v, grad)
        torch.testing.assert_close((made * grad).sum(), (v * found).sum())
        assert max(x.numel() for x in kept if x.is_floating_point()) < ROWS * ROWS
        assert not any(x.dtype == torch.bool and x.numel() >= ROWS * ROWS for x in kept)
        results.append(made.detach())
    assert not torch.equal(*results)


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        parts = self.into(x).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        made = attend(*parts, is_causal=True)
        return self.out(made.transpose(1, 2).reshape(batch, rows, width))


def _parts(function: Callable[..., Any], inputs: Any) -> Graphs:
    """The graphs of the forward and the backward pass."""
    with divided(function) as (run, graphs):
        run(*inputs).sum().backward()
    return graphs


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_each_pass_is_a_few_kernels_that_store_no_scores() -> None:
    rows = 1024
    counts: dict[str, int] = {}
    inputs = [x.detach().repeat(2, 2, 1, 1) for x in _inputs(rows, 64, torch.bfloat16)]
    for part, graph in _parts(_causal, [x.requires_grad_() for x in inputs]).items():
        module = program_of(graph).module
        run_pipeline(module, 'default,loom-to-triton{device="h100" numerics="mixed"}')
        printed = print_module(module)
        counts[part] = len(printed.kernels)
        shapes = re.findall(r"allocate\(\(([\d, ]+)\)", printed.source)
        cells = [math.prod(map(int, re.findall(r"\d+", shape))) for shape in shapes]
        assert cells
        assert max(cells) <= inputs[0].numel()
    assert counts == {"forward": 1, "backward": 2}


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_rotated_heads_that_are_stored_give_the_same() -> None:
    random = np.random.default_rng(0)
    inputs = [x.detach().repeat(1, 2, 1, 1) for x in _inputs(48, 16, torch.float16)]
    for part, graph in _parts(_rotated, [x.requires_grad_() for x in inputs]).items():
        module = program_of(graph).module
        # Rotated where they are read, however much is computed again for it.
        run_pipeline(module, DEFAULT_PIPELINE.replace("loom-fuse,", "loom-fuse{recompute=1000},"))
        given = {one.name: _drawn(one.type, random) for one in tapestry.arguments(module)}
        stored = module.clone()
        groups = [op for op in stored.walk() if isinstance(op, loom.FusedOp)]
        factors = {group: tuple(range(len(computed_factors(group)))) for group in groups}
        assert len([1 for places in factors.values() if places]) == (1 if part == "forward" else 2)
        apply_stores(stored, factors)
        want = find_executor("numpy").run(module, given, NoWatch()).outputs
        got = TritonExecutor(device=Cpu()).run(stored, given, NoWatch()).outputs
        for one, other in zip(got, want, strict=True):
            scale = np.abs(other.astype(np.float64)).max()
            # What is multiplied is rounded to 11 bits, of which NumPy's executor knows nothing.
            np.testing.assert_allclose(one, other, rtol=1e-2, atol=2**-11 * scale)


def _drawn(kind: loom.TensorType, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Numbers for an input; those in float32 are what rows fold to, which they are divided by."""
    drawn = random.normal(size=kind.box.shape) / 2
    if str(kind.element_type) == "i1":
        return drawn > -2
    if str(kind.element_type) == "f32":
        return (1 + np.abs(drawn)).astype(np.float32)
    return drawn.astype(np.float16)


def _marked(function: Callable[..., Any], *inputs: Tensor) -> set[str]:
    """The operators of what is computed again."""
    found: set[str] = set()

    def divide(joint: fx.GraphModule, given: Any, *, num_fwd_outputs: int, **options: Any) -> Any:
        marked = mark_recomputed(joint.graph, num_fwd_outputs)
        assert all(RECOMPUTE in node.meta for node in marked)
        found.update(node.target.overloadpacket.__name__ for node in marked)
        return partitioned(joint, given, num_fwd_outputs=num_fwd_outputs, **options)

    def compiler(graph: fx.GraphModule, _: Any) -> Any:
        return graph

    run = aot_function(function, fw_compiler=compiler, bw_compiler=compiler, partition_fn=divide)
    results = run(*inputs)
    first = results if isinstance(results, Tensor) else results[0]
    first.sum().backward()
    return found


@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_what_is_computed_again() -> None:
    q, k, _ = (x[:, 0] for x in _inputs())

    def weigh(q: Tensor, k: Tensor) -> Tensor:
        return (q @ k.mT).exp()

    assert {"bmm", "exp"} <= _marked(lambda q, k: weigh(q, k) @ k, q, k)
    # What leaves the chain is there anyway, and then it is kept.
    assert not _marked(lambda q, k: (lambda w: (w @ k, w))(weigh(q, k)), q, k)
    assert not _marked(lambda q, k: weigh(q, k), q, k)
    # Few rows: scores are no larger than what they are of.
    assert not _marked(lambda q, k: weigh(q, k) @ k, q[:, :8], k[:, :8])
    assert {"bmm", "exp"} <= _marked(lambda q, k: weigh(q, k) @ k, q[:, :9], k[:, :9])
    # Many operations for each cell of the result.
    wide = torch.randn(2, 1200, 130, requires_grad=True)
    assert not _marked(lambda q, k: weigh(q, k) @ k, wide, wide)


def test_what_has_several_results_is_counted_by_all_of_them() -> None:
    """The gradients of a convolution to its image and to its kernel take as many each."""
    image, kernel, steps = torch.ones(2, 4, 6, 6), torch.ones(8, 4, 3, 3), [1, 1]

    def gradients(ends: Tensor, x: Tensor, w: Tensor) -> Any:
        wanted = [True, True, False]
        of = torch.ops.aten.convolution_backward
        return of(ends, x, w, None, steps, steps, steps, False, [0, 0], 1, wanted)[:2]

    graph = make_fx(gradients, tracing_mode="fake")(torch.ones(2, 8, 6, 6), image, kernel).graph
    (node,) = graph.find_nodes(
        op="call_function", target=torch.ops.aten.convolution_backward.default
    )
    assert recomputing._flops(node) == 2 * (2 * 2 * 8 * 6 * 6) * (4 * 3 * 3)


def test_what_selects_among_cells_is_no_map_but_a_view_of_all_is() -> None:
    def parts(x: Tensor) -> Any:
        best, _ = torch.topk(x, 3)
        pooled, _ = F.max_pool2d_with_indices(x[None], (1, 2))
        return best, pooled, *torch.split(x, 3, -1)

    graph = make_fx(parts, tracing_mode="fake")(torch.ones(2, 6)).graph
    maps = {
        node.target.overloadpacket.__name__: recomputing._is_map(node)
        for node in graph.nodes
        if hasattr(node.target, "overloadpacket")
    }
    assert not maps["topk"]
    assert not maps["max_pool2d_with_indices"]
    assert maps["split"]


@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_ordinary_layers_are_left_as_they_are() -> None:
    x, first, second = torch.randn(64, 64), torch.randn(256, 64), torch.randn(64, 256)
    weights = [first.requires_grad_(), second.requires_grad_()]
    assert not _marked(lambda x, a, b: F.linear(F.gelu(F.linear(x, a)), b), x, *weights)


def test_nothing_more_is_computed_again_on_the_cpu() -> None:
    _, kept = _called(compiled(attend), _inputs())
    assert max(x.numel() for x in kept) >= ROWS * ROWS


@pytest.mark.usefixtures("as_on_a_gpu")
def test_a_layer_is_trained() -> None:
    torch.manual_seed(0)
    layer, x = _Layer(8, 2), torch.randn(2, 48, 8)
    leaves = list(layer.parameters())
    want = torch.autograd.grad(layer(x).square().sum(), leaves)
    got = torch.autograd.grad(compiled(layer)(x).square().sum(), leaves)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def _rotated(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Halves of queries and keys, which are results of one operator, turned by their places."""
    angles = torch.outer(torch.arange(q.shape[2]), torch.ones(q.shape[3])).to(q.dtype)

    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

    heads = k.shape[1] // 2
    return attend(turned(q), turned(k[:, :heads]), v[:, :heads], is_causal=True, enable_gqa=True)


@pytest.mark.usefixtures("as_on_a_gpu")
def test_what_is_made_of_one_of_several_results_is_trained() -> None:
    inputs = _inputs(160, 8)
    grad = torch.randn_like(inputs[0])
    want = torch.autograd.grad(_rotated(*inputs), inputs, grad)
    made, kept = _called(compiled(_rotated), inputs)
    got = torch.autograd.grad(made, inputs, grad)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    # Nothing is kept in a wider type, or repeated for each head, that can be made of less.
    assert max(x.numel() for x in kept) <= inputs[0].numel()


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_rotated_heads_are_turned_once_and_multiplied_by_matrix_units() -> None:
    inputs = [x.detach().repeat(1, 4, 1, 1) for x in _inputs(1024, 64, torch.bfloat16)]
    parts = _parts(_rotated, [x.requires_grad_() for x in inputs])
    for part, graph in parts.items():
        module = program_of(graph).module
        run_pipeline(module, 'default,loom-to-triton{device="h100" numerics="mixed"}')
        kernels = [op for op in module.walk() if isinstance(op, triton.KernelOp)]
        loops = [loop for op in kernels for loop in op.walk() if isinstance(loop, scf.ForOp)]
        dots = [one for one in module.walk() if isinstance(one, triton.DotOp)]
        assert len(dots) >= (2 if part == "forward" else 7)
        # Of what is folded, nothing but products is.
        assert all(any(isinstance(one, triton.DotOp) for one in loop.walk()) for loop in loops)
        shapes = re.findall(r"allocate\(\(([\d, ]+)\)", print_module(module).source)
        cells = [math.prod(map(int, re.findall(r"\d+", shape))) for shape in shapes]
        assert max(cells) <= inputs[0].numel()


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_gradients_of_the_parts_of_a_projection_lie_side_by_side() -> None:
    """Whoever reads the gradient of all three reads one tensor, of which no copy is made."""

    def projected(x: Tensor, weight: Tensor) -> Tensor:
        parts = (x @ weight).view(2, 48, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return attend(parts[0], parts[1], parts[2], is_causal=True)

    inputs = [
        torch.randn(shape, dtype=torch.bfloat16, requires_grad=True)
        for shape in ((2, 48, 8), (8, 24))
    ]
    module = program_of(_parts(projected, inputs)["backward"]).module
    run_pipeline(module, "default")
    (whole,) = (op for op in module.walk() if isinstance(op, loom.AssembleOp))
    readers = {use.operation for use in whole.result.uses}
    assert len(readers) > 1
    assert all(isinstance(one, loom.OperationOp) and one.fold_dims for one in readers)
    run_pipeline(module, "loom-to-triton")
    assert not any(kernel.name.startswith("copy") for kernel in print_module(module).kernels)

"""PyTorch's own inputs for tests of its operators, run through the importer and compared.

    outcomes("cumsum", "float32")          # an Outcome per sample: passed, or why not
    outcomes("cumsum", "gradient")         # float32 again, and the backward graph as well

A sample is traced by AOT autograd as the backend traces a model, imported with no operator left to
PyTorch (`strict`), run on the numpy executor, and compared with what PyTorch computes. With
`TAPESTRY_TESTS_ON=gpu` tensors are on the GPU, and programs run there as kernels, as a model's do.
"""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import itertools
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_function
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from tapestry.importers.torch.compiling import CompiledGraph
from tapestry.importers.torch.decompositions import decompositions
from tapestry.importers.torch.options import Options
from tapestry.importers.torch.overloads import overload_of
from tapestry.importers.torch.tracing import own_gradients
from tests import on_gpu

KINDS = {"float32": 6, "gradient": 3, "int64": 3, "int32": 1, "uint8": 2, "bool": 3}
"""How many samples of each kind are taken at most."""

TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3}
"""What results differ by, relative to the greatest, in types that PyTorch itself rounds often to;
1e-4 and 1e-5 of the greatest in others."""

_ROOT = Path(__file__).parents[4]

_FREE_AMONG_EQUALS = ("sort", "argsort", "topk", "kthvalue")
"""Operators that may put any of equal cells first: their places are compared among floats alone,
which are all different, and elsewhere only their values."""

_OPTIONS = Options.of(
    {
        "pipeline": "default" if on_gpu.ASKED else "weft-apply",
        "on": on_gpu.executor("numpy"),
        "strict": True,
    }
)


@dataclass(frozen=True)
class Outcome:
    """What came of one sample: nothing, or why it did not pass."""

    reason: str | None = None

    @property
    def passed(self) -> bool:
        return self.reason is None


@cache
def operators() -> dict[str, Any]:
    """PyTorch's descriptions of its operators, by name."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db if not op.name.startswith("jiterator")}


def outcomes(name: str, kind: str, most: int | None = None) -> list[Outcome]:
    """What comes of the samples of an operator; none where PyTorch has none of this kind."""
    op, gradient = operators()[name], kind == "gradient"
    dtype = torch.float32 if gradient else getattr(torch, kind)
    known = op.dtypesIfCUDA if on_gpu.ASKED else op.dtypes
    if dtype not in known or (gradient and not op.supports_autograd):
        return []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = op.sample_inputs(on_gpu.device(), dtype, requires_grad=gradient)
        taken = list(itertools.islice(samples, most or KINDS[kind]))
        return [_outcome(op, sample, gradient) for sample in taken]


def _outcome(op: Any, sample: Any, gradient: bool) -> Outcome:
    logging.disable(logging.CRITICAL)
    try:
        call = _Call.of(op, sample)
        tied = op.name in _FREE_AMONG_EQUALS and not sample.input.is_floating_point()
        _check(call.values_alone() if tied else call, gradient)
    except Exception as error:  # noqa: BLE001 (whatever it is, this sample does not pass)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(text.replace(f"{_ROOT}/", "")[:200])
    finally:
        logging.disable(logging.NOTSET)
    return Outcome()


@dataclass(frozen=True)
class _Call:
    """An operator as a function of the tensors among its arguments, to a list of tensors."""

    function: Callable[..., list[torch.Tensor]]
    tensors: list[torch.Tensor]

    @staticmethod
    def of(op: Any, sample: Any) -> _Call:
        flat, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        places = [n for n, value in enumerate(flat) if isinstance(value, torch.Tensor)]

        def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
            given = list(flat)
            for place, tensor in zip(places, tensors, strict=True):
                given[place] = tensor
            args, kwargs = pytree.tree_unflatten(given, spec)
            return _tensors(op.op(*args, **kwargs))

        return _Call(function, [flat[place] for place in places])

    def values_alone(self) -> _Call:
        """The call without its second result, and without a first one that is of places."""

        def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
            first, *rest = self.function(*tensors)
            return [first] if rest else []

        return _Call(function, self.tensors)

    def copies(self) -> list[torch.Tensor]:
        return [x.detach().clone().requires_grad_(x.requires_grad) for x in self.tensors]


def _check(call: _Call, gradient: bool) -> None:
    ours, theirs = call.copies(), call.copies()
    drawn: list[bool] = []

    def compiled(graph: torch.fx.GraphModule, _: object) -> Callable[[list[Any]], Any]:
        overloads = [overload_of(node.target) for node in graph.graph.nodes]
        drawn.append(any(one is not None and one.random for one in overloads))
        drawn.append(any("empty" in one.name for one in overloads if one is not None))
        program = CompiledGraph(graph, _OPTIONS)

        def run(given: list[Any]) -> Any:
            return program(given)

        vars(run)["_boxed_call"] = True
        return run

    traced = aot_function(call.function, compiled, compiled, decompositions=decompositions())
    want = call.function(*theirs)
    # Tensors that an operator makes of Python's numbers are constants of the graph.
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with (
        torch.set_grad_enabled(gradient),
        sdpa_kernel(SDPBackend.MATH),
        own_gradients(),
        tracing(TracingContext(mode)),
    ):
        got = traced(*ours)
    _compare(got, want, values=not any(drawn))
    roots = [place for place, value in enumerate(want) if value.requires_grad]
    if gradient and roots:
        seeds = [torch.randn_like(want[place]) for place in roots]
        pairs = [
            torch.autograd.grad(
                [made[place] for place in roots],
                [x for x in given if x.requires_grad],
                seeds,
                allow_unused=True,
                materialize_grads=True,
            )
            for made, given in ((got, ours), (want, theirs))
        ]
        _compare(*pairs, values=not any(drawn))


def _compare(got: Sequence[torch.Tensor], want: Sequence[torch.Tensor], *, values: bool) -> None:
    """Equal dtypes and shapes and, but for random numbers, equal up to rounding."""
    for one, other in zip(got, want, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if not values:
            continue
        if not other.is_floating_point():
            torch.testing.assert_close(one, other, rtol=0, atol=0)
            continue
        finite = other[other.isfinite()].abs()
        size = max(1.0, float(finite.max())) if finite.numel() else 1.0
        rough = TOLERANCE.get(other.dtype)
        rtol, atol = (1e-4, 1e-5 * size) if rough is None else (rough, rough * size)
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]

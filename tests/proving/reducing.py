"""Programs at smaller sizes, for tests of what such sizes keep."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.proving.reduction import Literals, Reduced, reduce_sizes
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.program import arguments


def tensor(*shape: int, dtype: str = "f64") -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, {dtype}>"


def main(arguments: dict[str, str], body: str, **results: str) -> str:
    taken = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    types, values = ", ".join(results.values()), ", ".join(f"%{name}" for name in results)
    return f"func.func @main({taken}) -> ({types}) {{ {body} func.return {values} : {types} }}"


def inputs_for(module: ModuleOp, seed: int = 0) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {x.name: generator.uniform(-2, 2, x.type.box.shape) for x in arguments(module)}


def run_all(module: ModuleOp, inputs: dict[str, Array]) -> tuple[Array, ...]:
    return find_executor("numpy").run(module, inputs, NoWatch()).outputs


def reduce_both(
    a: str,
    b: str,
    pipeline: str = "weft-apply",
    *,
    seed: int = 0,
    literals: Literals = "scale",
    equal: bool = True,
) -> Reduced:
    """Reduce both programs, `b` after a pipeline, and run them: they have to be equal or not."""
    one, other = parse_module(a), parse_module(b)
    run_pipeline(one, "weft-apply")
    run_pipeline(other, pipeline)
    reduced = reduce_sizes(one, other, seed=seed, literals=literals)
    assert reduced.reason is None
    verify_module(reduced.a)
    verify_module(reduced.b)
    names = [[argument.name for argument in arguments(module)] for module in (one, reduced.a)]
    assert names[0] == names[1]
    inputs = inputs_for(reduced.a)
    same = [
        np.allclose(x, y, rtol=1e-9, atol=1e-9)
        for x, y in zip(run_all(reduced.a, inputs), run_all(reduced.b, inputs), strict=True)
    ]
    assert all(same) == equal
    return reduced


def operations_of(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def shape_of(reduced: Reduced, name: str = "x") -> tuple[int, ...]:
    return next(size.after for size in reduced.sizes if size.name == name)

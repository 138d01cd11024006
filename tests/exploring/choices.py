"""Kernels as any cost model might choose them for a device, against float64 or the reference.

`loom-to-triton{device=...}` cuts groups, stores factors, copies inputs with another axis last,
splits folds and takes other schedules where the cost model says that it pays, which is seldom in
small programs. Here what things take is drawn, so that all of it happens, in any combination; with
each `numerics` and any `tile`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any
from unittest.mock import patch

from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.passes.triton.alternatives import splitting
from tapestry.passes.triton.cost import predicting
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of
from tapestry.passes.triton.loom_to_triton import NUMERICS
from tapestry.passes.triton.schedules import choosing
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.triton import executor as triton_executor
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tests.exploring import executors, schedules
from tests.passes import pipelines
from tests.passes.random_graphs import random_graph

DEVICES = ("h100", "h200", "a100", "none")

_FEW = 4
"""How many schedules of a kernel are looked at, of those that there are."""


class Pretended(Cpu):
    """The interpreter, with kernels that are made for a device."""

    def __init__(self, model: str) -> None:
        self.model = model  # pyright: ignore[reportIncompatibleVariableOverride]


def check(seed: int) -> str:
    """What ran; raises where kernels give other numbers than they should."""
    random = Random(seed)
    device, numerics = random.choice(DEVICES), random.choice(sorted(NUMERICS))
    tile = 1 << random.choice([4, 5, 7, 9, 11, 11, 16])
    executor = TritonExecutor(Pretended(device), tile, numerics, fallback=False)
    try:
        with _drawn(random):
            run = _library if random.random() < 0.4 else _graph
            return f"{run(random, executor)}, {device}"
    except Exception as error:
        error.add_note(f"device {device}, numerics {numerics}, tile {tile}")
        raise


def _library(random: Random, executor: TritonExecutor) -> str:
    name = random.choice(sorted(schedules.PROGRAMS))
    kind = schedules.PROGRAMS[name]
    dtype = random.choice(kind.dtypes)
    shapes = kind.shapes(*(random.choice(schedules.SIZES) for _ in range(3)))
    module = t.compile(schedules.expression(kind, shapes, dtype), on="reference").module.clone()
    pipeline = random.choice(schedules.PIPELINES_OF_LOOM)
    run_pipeline(module, pipeline)
    given = schedules.inputs(shapes, dtype, random.randrange(1 << 30))
    try:
        got = executor.run(module, given, NoWatch()).outputs
        for one, other in zip(got, schedules.wanted(kind, shapes, dtype, given), strict=True):
            schedules.agree(one, other, dtype)
    except Exception as error:
        error.add_note(f"{name} of {shapes} in {dtype} after {pipeline}\n{module}")
        raise
    return "library"


def _graph(random: Random, executor: TritonExecutor) -> str:
    graph = random_graph(random, random.choice([3, 5]), random.choice([1, 1, 2]))
    module = parse_text(graph.text)
    verify_module(module)
    run_pipeline(module, "weft-apply")
    want = find_executor("reference").run(module, graph.inputs, NoWatch()).outputs
    done: list[str] = []
    try:
        for step in _steps(random):
            pipelines.apply(module, step, random)
            done.append(step)
        run_pipeline(module, "loom-inline")
        got = executor.run(module, graph.inputs, NoWatch()).outputs
        for value, one, other in zip(graph.outputs, got, want, strict=True):
            executors.agree(value, one, other, special=False)
    except Exception as error:
        error.add_note(f"after {', '.join(done)}\n{graph.text}\n{module}")
        raise
    return "graph"


def _steps(random: Random) -> list[str]:
    if random.random() < 0.4:
        return ["default"]
    return [step for step in pipelines.steps(random) if step != "weft-apply"]


@contextmanager
def _drawn(random: Random) -> Generator[None]:
    """What kernels take is drawn, and what is tried is less; nothing is kept of it."""

    def estimated(*given: Any) -> Estimate:
        found = estimate_of(*given)
        waves = random.choice([0.1, found.waves, 10.0])
        return replace(found, seconds=found.seconds * 10 ** random.gauss(0, 1), waves=waves)

    def few(*given: Any, **how: Any) -> Iterator[Any]:
        first, *others = islice(schedules.candidates(*given, **how), 400)
        yield first
        yield from random.sample(others, min(_FEW, len(others)))

    def anew(module: ModuleOp, _: Any, make: Callable[[ModuleOp], None], **__: Any) -> ModuleOp:
        make(module)
        return module

    with ExitStack() as patches:
        for where in (choosing, predicting):
            patches.enter_context(patch.object(where, "estimate_of", estimated))
        patches.enter_context(patch.object(choosing, "candidates", few))
        patches.enter_context(patch.object(splitting, "LEAST", random.choice([1, 2, 8])))
        patches.enter_context(patch.object(splitting, "PARTS", (2, 3, 4, 5)))
        patches.enter_context(patch.object(triton_executor, "kept", anew))
        yield

"""What passes cost as programs grow, in calls of Python functions; and that once is enough.

Work is counted, not timed: a pass that visits each layer once makes as many calls for the layers
7 and 8 as for the layers 5 and 6. What grows with the square of the program would make more.
"""

from __future__ import annotations

import sys
from functools import cache
from random import Random
from types import FrameType

import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import make_context, parse_passes, parse_text, run_pipeline
from tests.passes import pipelines
from tests.passes.random_graphs import random_graph
from tests.passes.transformers import transformer

SIMPLE = "weft-apply,loom-simplify"

BEFORE = {
    "weft-apply": "",
    "loom-inline": "loom-outline,weft-apply",
    "loom-propagate": "weft-apply,loom-shard{op=t0 grid=4,1}",
    "loom-expand-shards": "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=4}",
    "loom-reshard": "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=4},loom-expand-shards",
    "loom-ungroup": "default",
    "loom-shard": "default",
    "loom-mask-to-domain": f"{SIMPLE},loom-fuse,loom-derive,loom-simplify,loom-fuse",
    "loom-derive": f"{SIMPLE},loom-fuse",
    "loom-group": f"{SIMPLE},loom-fuse,loom-derive,loom-simplify,loom-fuse",
    "loom-to-triton": "default,loom-shard{shards=2}",
}
"""What a pass is given, so that it finds something to do; others see operations, simplified."""

LAYERS = (6, 8, 10)
"""The first layers of a program are not like those after them: these are."""


def calls(module: ModuleOp, step: str) -> int:
    """How many Python functions are called while a step runs."""
    (one,) = parse_passes(step)
    count = 0

    def counted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    ctx = make_context()
    sys.setprofile(counted)
    try:
        one.apply(ctx, module)
    finally:
        sys.setprofile(None)
    return count


def prepared(step: str, layers: int) -> ModuleOp:
    """A transformer as a pass expects programs."""
    return _after(BEFORE.get(step.partition("{")[0], SIMPLE), layers).clone()


@cache
def _after(pipeline: str, layers: int) -> ModuleOp:
    module = parse_text(transformer(layers))
    if pipeline:
        run_pipeline(module, pipeline)
    return module


STEPS = [
    "weft-apply",
    *(
        name + option
        for name in pipelines.PASSES
        for option in dict.fromkeys(pipelines.OPTIONS.get(name, ("",)))
    ),
]


GROWING = [*{step.partition("{")[0]: step for step in reversed(STEPS)}.values()]
"""One choice of options per pass."""


QUICK = ("loom-simplify", "loom-fuse", "loom-propagate", "loom-expand-shards")


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "step",
    [
        step if step in QUICK else pytest.param(step, marks=pytest.mark.slow)
        for step in (*reversed(GROWING), "loom-to-triton")
    ],
)
def test_work_is_linear_in_the_layers(step: str) -> None:
    calls(prepared(step, LAYERS[0]), step)  # what is kept from program to program
    counts = [calls(prepared(step, layers), step) for layers in LAYERS]
    early, late = counts[1] - counts[0], counts[2] - counts[1]
    assert late <= 1.1 * early + 200, counts


AGAIN = ("weft-apply", "loom-outline", "loom-relayout", "loom-split-fold", "loom-split-scan")
ONCE = [step for step in STEPS if step.partition("{")[0] not in AGAIN]
"""All are done in one go, but for functions of functions that repeat, copies of copies, and parts
of parts."""


def again(module: ModuleOp, step: str) -> None:
    run_pipeline(module, step)
    once = str(module)
    run_pipeline(module, step)
    assert str(module) == once


@pytest.mark.sweep(4)
@pytest.mark.parametrize("step", ONCE)
def test_once_is_enough(step: str) -> None:
    again(prepared(step, 2), step)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))]
)
def test_once_is_enough_on_random_graphs(seed: int) -> None:
    random = Random(seed)
    text = random_graph(random).text
    before = random.choice(["", ",loom-simplify,loom-fuse", ",loom-shard{shards=3}", ",loom-group"])
    for step in ONCE:
        module = parse_text(text)
        run_pipeline(module, f"weft-apply{before}")
        again(module, step)

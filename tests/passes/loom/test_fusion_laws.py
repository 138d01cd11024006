"""Joining and taking apart change no value, on random graphs, one way and back."""

from __future__ import annotations

from random import Random

import pytest

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor
from tests.passes.random_graphs import random_graph
from tests.passes.test_random_pipelines import agree

JOINED = (
    "loom-simplify,loom-fuse{recompute=100 cells=1},loom-derive,"
    "loom-fuse{kinds=keep,beside parts=8}"
)
PIPELINES = (
    f"{JOINED},loom-canonicalize,loom-group",
    f"{JOINED},loom-expand{{shared=true}},loom-unfuse,loom-canonicalize",
    "loom-fuse,loom-group,loom-recompute{recompute=1000},loom-unfuse,loom-fuse",
)


@pytest.mark.parametrize("seed", range(8))
def test_values_stay(seed: int) -> None:
    graph = random_graph(Random(seed))
    module = parse_text(graph.text)
    run_pipeline(module, "weft-apply")
    want = find_executor("reference").run(module, graph.inputs, NoWatch()).outputs
    for pipeline in PIPELINES:
        changed = module.clone()
        run_pipeline(changed, pipeline)
        verify_module(changed)
        got = find_executor("numpy").run(changed, graph.inputs, NoWatch()).outputs
        for value, a, b in zip(graph.outputs, got, want, strict=True):
            agree(value, a, b, pipeline)

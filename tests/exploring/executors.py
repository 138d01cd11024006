"""Random graphs on every executor: prepared in parts and loops, stored and read, as kernels.

Inputs are small numbers, or NaN and infinities among them; integers of 8 and 32 bits take all their
values where nothing makes floats of them. Rewrites here keep every scalar operation, so special
values are the same too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from random import Random

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.stored import NotStorableError, restored, stored
from tapestry.runtime.program import arguments
from tests.passes.graphs import Graph, Value
from tests.passes.random_graphs import random_graph

KEEPING = ("", "loom-simplify", "loom-simplify,loom-fuse", "loom-simplify,loom-fuse,loom-group")
"""Pipelines after which special values are what they were."""

_KERNELS = 0.15
"""How often a program runs as kernels, which are interpreted and slow."""

_TOLERANCE = 4.0


def check(seed: int) -> str:
    """What ran; raises where an executor gives other numbers than the reference."""
    random = Random(seed)
    kernels = random.random() < _KERNELS
    graph = random_graph(random, 3 if kernels else 6, 1 if kernels else random.choice([1, 1, 3]))
    special = random.random() < 0.4
    inputs = _special(graph, random) if special else graph.inputs
    naive = parse_text(graph.text)
    verify_module(naive)
    run_pipeline(naive, "weft-apply")
    want = find_executor("reference").run(naive, inputs, NoWatch()).outputs
    module = naive.clone()
    pipeline = random.choice(KEEPING if special or random.random() < 0.5 else ("default",))
    if random.random() < 0.3:
        pipeline += f",loom-shard{{shards={random.randint(2, 5)}}}"
        pipeline += random.choice(["", ",loom-expand-shards"])
    ran = [pipeline]
    try:
        run_pipeline(module, pipeline.lstrip(","))
        for where, outputs in _runs(module, inputs, random, kernels=kernels):
            ran.append(where)
            for value, got, expected in zip(graph.outputs, outputs, want, strict=True):
                agree(value, got, expected, special=special)
    except Exception as error:
        given = {name: array.tolist() for name, array in inputs.items() if array.size < 50}
        error.add_note(f"-p {', '.join(ran)}, special: {special}:\n{graph.text}\n{given}")
        raise
    return f"{'kernels' if kernels else 'arrays'}, {'special' if special else 'plain'}"


def _runs(module: ModuleOp, inputs: Mapping[str, Array], random: Random, *, kernels: bool):
    if kernels:
        yield "triton", find_executor("triton").run(module, inputs, NoWatch()).outputs
        return
    yield "numpy", find_executor("numpy").run(module, inputs, NoWatch()).outputs
    given = [inputs[argument.name] for argument in arguments(module)]
    least = random.choice([0, 0, 1 << 28])
    loops = Loops(least) if native.is_ready() else None
    cache, threads = random.choice([64, 1000, 1 << 16]), random.randint(1, 3)
    parts = partial(in_parts, small=0, threads=threads, cache=cache, loops=loops)
    library = Library(loops=loops) if loops is not None else Library()
    how = f"prepared, cache {cache}, {threads} threads, loops from {least}"
    prepared = PreparedProgram(module, library, parts if random.random() < 0.7 else None)
    for time in range(2):
        yield f"{how}, call {time}", prepared(given)
    yield f"{how}, strided", prepared([_strided(array, random) for array in given])
    try:
        read = restored(json.loads(json.dumps(stored(prepared.run, library))), library)
    except NotStorableError:
        return
    yield f"{how}, stored", read(given)


def _strided(array: Array, random: Random) -> Array:
    """The same cells otherwise in memory."""
    if not array.ndim:
        return array
    if random.random() < 0.5:
        flipped = (slice(None, None, -1),) * array.ndim
        return np.ascontiguousarray(array[flipped])[flipped]
    return np.asfortranarray(array)


def _special(graph: Graph, random: Random) -> Mapping[str, Array]:
    """Inputs with values that no arithmetic keeps."""
    rng = np.random.default_rng(random.randrange(1 << 30))
    all_bits = not any(word in graph.text for word in ("@cast", "@mean", "sitofp"))
    kinds = [np.inf, -np.inf, -0.0]
    if "by @online" not in graph.text:  # its zero is none where the exponent is NaN
        kinds.append(np.nan)
    values = rng.choice(kinds, rng.integers(1, 4))
    made: dict[str, Array] = {}
    for value in graph.arguments:
        own = graph.inputs[value.name]
        if value.is_float:
            where = rng.random(own.shape) < 0.15
            made[value.name] = np.where(where, rng.choice(values, own.shape), own).astype(own.dtype)
        elif value.dtype in ("i8", "i32") and all_bits:
            limits = np.iinfo(own.dtype)
            ends = np.array([limits.min, limits.max, -1, 0, limits.min + 1], own.dtype)
            where = rng.random(own.shape) < 0.4
            made[value.name] = np.where(where, rng.choice(ends, own.shape), own).astype(own.dtype)
        else:
            made[value.name] = own
    return made


def agree(value: Value, got: Array, want: Array, *, special: bool) -> None:
    what = f"%{value.name}"
    assert got.dtype == want.dtype, what
    assert got.shape == want.shape == value.shape, what
    if not value.is_float:
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    near = _TOLERANCE * value.error
    if special:
        # Sums of what was special, but clamped, may be of the bound's size.
        near = max(near, 1e-6 * value.bound * bool(value.error))
    np.testing.assert_allclose(got, want, rtol=0, atol=near, equal_nan=True, err_msg=what)

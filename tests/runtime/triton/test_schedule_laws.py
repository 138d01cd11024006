"""Any legal schedule of any kernel gives what the reference executor gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapestry as t
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects import loom
from tapestry.dialects.triton import AGAIN, EXTRAS, MASKS, ORDERS, PIPELINES, Schedule
from tapestry.frontend import run_pipeline
from tapestry.passes.triton.schedules.schedule import is_legal
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.tasks import give, tasks
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.program import arguments
from tapestry.runtime.reference import ReferenceExecutor
from tapestry.runtime.triton.executor import TritonExecutor
from tests.amounts import drawn

SETTINGS = settings(
    max_examples=drawn(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

SIZES = [1, 7, 16, 24, 32, 40]


def given_inputs(dtype, **shapes):
    return [t.input(name, shape, dtype) for name, shape in shapes.items()]


def layer_norm(x, w, b):
    return t.layer_norm(x, w, b)


def attention(q, k, v):
    return t.scaled_dot_product_attention(q, k, v, causal=True)


PROGRAMS = {
    "product": (lambda x, w: t.relu(x @ w), lambda a, b, c: {"x": (a, b), "w": (b, c)}),
    "linear": (
        lambda x, w, b, r: t.gelu(x @ w + b) + r,
        lambda a, b, c: {"x": (a, b), "w": (b, c), "b": (c,), "r": (a, c)},
    ),
    "transposed": (lambda x, w: x @ w.T, lambda a, b, c: {"x": (a, b), "w": (c, b)}),
    "batched": (lambda x, w: x @ w, lambda a, b, c: {"x": (3, a, b), "w": (3, b, c)}),
    "softmax": (t.softmax, lambda a, b, _: {"x": (a, b)}),
    "columns": (lambda x: x.sum(axis=0), lambda a, b, _: {"x": (a, b)}),
    "layer norm": (layer_norm, lambda a, b, _: {"x": (a, b), "w": (b,), "b": (b,)}),
    "attention": (attention, lambda a, *_: dict.fromkeys("qkv", (3, a + 1, 16))),
    "decoding": (
        t.scaled_dot_product_attention,
        lambda a, b, _: {"q": (2, 1, 8), "k": (2, a, 8), "v": (2, a, b)},
    ),
    "pointwise": (lambda x: t.tanh(x) * 2, lambda a, b, _: {"x": (a, b)}),
}

powers = st.sampled_from([1, 2, 8, 16, 32, 64])


@st.composite
def schedules(draw, task: Task):
    """Legal schedules of a task, whether sensible or not."""
    tile = {}
    for axis, length in task.lengths.items():
        least = 16 if axis in task.multiplied else 1
        least = max(least, length if axis in task.held else 1)
        tile[axis] = draw(powers.filter(lambda n, least=least: n >= least))
    has_rows = "M" in task.grid and "M" in task.lengths
    schedule = Schedule(
        tile,
        swizzle=draw(st.integers(1, 3)) if task.swizzles or task.staggers else 1,
        programs=draw(st.sampled_from([0, 1, 3])),
        order=draw(st.sampled_from(ORDERS if has_rows else ORDERS[:1])),
        segments=draw(st.sampled_from([1, 2])),
        loads=draw(st.sampled_from(["pointer", "descriptor"])) if task.described else "pointer",
    )
    if not is_legal(task, schedule):
        schedule = replace(schedule, segments=1)
    for how, values in (
        ("masks", MASKS),
        ("unroll", (1, 2, 3, 64)),
        ("pipeline", PIPELINES),
        ("parts", (1, 2, 5)),
        ("again", AGAIN),
        ("extras", EXTRAS),
    ):
        other = replace(schedule, **{how: draw(st.sampled_from(values))})
        if is_legal(task, other):
            schedule = other
    assert is_legal(task, schedule)
    return schedule


def run(module, executor, inputs):
    return executor.run(module, inputs, NoWatch()).outputs


@SETTINGS
@given(st.data())
def test_any_legal_schedule_gives_the_reference(data):
    program, shapes = PROGRAMS[data.draw(st.sampled_from(sorted(PROGRAMS)))]
    sizes = [data.draw(st.sampled_from(SIZES)) for _ in range(3)]
    dtype = data.draw(st.sampled_from(["f32", "f16"]))
    pipeline = data.draw(st.sampled_from(["default", "default,loom-shard{shards=2}"]))
    check(program(*given_inputs(dtype, **shapes(*sizes))), pipeline, data.draw)


def check(expression, pipeline, draw):
    module = t.compile(expression, on="reference").module.clone()
    lowered = module.clone()
    run_pipeline(module, "weft-apply")
    run_pipeline(lowered, pipeline)
    known = {task.name: task for task in tasks(lowered)}
    for op in lowered.walk():
        if isinstance(op, loom.OperationOp | loom.FusedOp) and op.label.data in known:
            parent = op.parent_op()
            if not isinstance(parent, loom.FusedOp):
                give(op, draw(schedules(known[op.label.data])))
    compare(module, lowered)


def compare(module, lowered):
    """Compare what the reference executor gives with what Triton's interpreter does."""
    rng = np.random.default_rng(0)
    inputs = {a.name: draws(rng, a.type) for a in arguments(module)}
    expected = run(module, ReferenceExecutor(), inputs)
    got = run(lowered, TritonExecutor(), inputs)
    for a, b in zip(got, expected, strict=True):
        tolerance = 1e-2 if b.dtype == np.float16 else 1e-5
        size = np.abs(b.astype(np.float64)).max(initial=1.0)
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance * size
        )


EDGES = {
    "sum": (lambda x: x.sum(axis=1), "P = 2, K = 16, parts = 3, masks = boundary, unroll = 2"),
    "maximum": (lambda x: x.max(axis=1), "P = 4, K = 16, parts = 4"),
    "root": (lambda x: t.sqrt((x * x).sum(axis=1)), "P = 4, K = 32, parts = 7"),
    "product": (lambda x: t.relu(x @ x.T), "M = 16, N = 16, K = 16, parts = 3"),
    "full product": (lambda x: x @ x.T, "M = 16, N = 16, K = 16, masks = boundary, segments = 2"),
    "softmax": (t.softmax, "M = 2, K = 16, masks = boundary, segments = 2"),
    "softmax backward": (t.softmax, "M = 2, K = 16, again = backward, unroll = 2"),
    "scan": (lambda x: t.cumsum(x, axis=1), "P = 2, K = 16, masks = boundary, segments = 2"),
    "transposed": (lambda x: x.T * 2.0, "M = 16, N = 8, masks = boundary"),
}


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("name", EDGES)
def test_schedules_that_treat_edges_apart_give_the_reference(name, shards):
    program, schedule = EDGES[name]
    expression = program(*given_inputs("i32" if name == "maximum" else "f32", x=(33, 71)))
    module = t.compile(expression, on="reference").module.clone()
    lowered = module.clone()
    run_pipeline(module, "weft-apply")
    run_pipeline(lowered, f"default,loom-shard{{shards={shards}}}")
    (task,) = tasks(lowered)
    for op in lowered.walk():
        if isinstance(op, loom.OperationOp | loom.FusedOp) and op.label.data == task.name:
            give(op, Schedule.parse(schedule))
    compare(module, lowered)


def draws(rng, kind):

    return rng.standard_normal(kind.box.shape).astype(numpy_dtype(kind.element_type))

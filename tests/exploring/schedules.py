"""Random legal schedules of kernels of every kind, in every element type, against float64.

Each operation of a program is given a schedule that it may have, sensible or not: tiles of any
size, persistent programs, descriptors, masks and segments at boundaries, unrolled or pipelined
loops, parts by atomics, folds split in two kernels. The same program in float64 on NumPy says what
is right. A schedule that a GPU refuses, for its registers say, is no failure: it is counted.

On a GPU sizes are up to some hundreds; in the interpreter they are small.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from random import Random
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.dialects import loom
from tapestry.dialects.triton import AGAIN, MASKS, ORDERS, PIPELINES, Schedule
from tapestry.frontend import run_pipeline
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.passes.triton.schedules.schedule import is_legal
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.tasks import give, tasks
from tapestry.runtime.executor import Array
from tapestry.runtime.program import arguments
from tapestry.runtime.triton.devices import find_device
from tapestry.runtime.triton.executor import TritonExecutor
from tapestry.runtime.triton.ladder import Ladder
from tests import on_gpu

Shapes = dict[str, tuple[int, ...]]

MOST_CELLS = 1 << 15
"""Cells of a tile, over all its axes: more take compilers long."""

SIZES = (1, 3, 7, 16, 17, 24, 32, 40)
GPU_SIZES = (1, 5, 16, 24, 33, 64, 100, 127, 128, 200, 256, 264, 301)

PIPELINES_OF_LOOM = (
    "default",
    "default",
    "default,loom-shard{shards=3}",
    "default,loom-split-fold{parts=3 least=1}",
    "default,loom-split-scan{parts=3 least=1}",
)

FLOATS = ("f32", "f16", "bf16")
WHOLE = ("i32", "i64", "i8")
TOLERANCE = {"f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}
"""What errors are at most, of the size of the greatest cell: a few roundings of the type."""


@dataclass(frozen=True)
class Kind:
    """A program over inputs whose shapes are made of three sizes."""

    program: Callable[..., Any]
    shapes: Callable[[int, int, int], Shapes]
    dtypes: tuple[str, ...] = FLOATS


def _rows(a: int, b: int, _: int) -> Shapes:
    return {"x": (a, b)}


def _matrices(a: int, b: int, c: int) -> Shapes:
    return {"x": (a, b), "w": (b, c)}


def _attention(x: Any, k: Any, v: Any, **how: Any) -> Any:
    return t.scaled_dot_product_attention(x, k, v, **how)


def _wide(c: int) -> int:
    """A number of columns of heads."""
    return 16 if c < 64 else 64


PROGRAMS = {
    "product": Kind(lambda x, w: x @ w, _matrices, (*FLOATS, "i32", "i8")),
    "layer": Kind(
        lambda x, w, b: t.gelu(x @ w + b) + x.sum(axis=1, keepdim=True),
        lambda a, b, c: {**_matrices(a, b, c), "b": (c,)},
        ("f32", "f16"),
    ),
    "transposed": Kind(lambda x, w: x @ w.T, lambda a, b, c: {"x": (a, b), "w": (c, b)}),
    "turned": Kind(lambda x, w: t.relu(x.T @ w), lambda a, b, c: {"x": (b, a), "w": (b, c)}),
    "batched": Kind(lambda x, w: x @ w, lambda a, b, c: {"x": (3, a, b), "w": (3, b, c)}),
    "vector": Kind(lambda x, w: x @ w, lambda a, b, _: {"x": (a, b), "w": (b,)}),
    "normed": Kind(
        lambda x, g, w: t.rms_norm(x, g) @ w,
        lambda a, b, c: {"x": (a, b), "g": (b,), "w": (b, c)},
    ),
    "gated": Kind(
        lambda x, w, u: t.silu(x @ w) * (x @ u),
        lambda a, b, c: {"x": (a, b), "w": (b, c), "u": (b, c)},
    ),
    "softmax": Kind(t.softmax, _rows),
    "log softmax": Kind(t.log_softmax, _rows),
    "layer norm": Kind(t.layer_norm, lambda a, b, _: {"x": (a, b), "w": (b,), "b": (b,)}),
    "variance": Kind(lambda x: t.var(x, axis=1), lambda a, b, _: {"x": (a, b + 1)}),
    "row sums": Kind(lambda x: x.sum(axis=1), _rows, (*FLOATS, *WHOLE)),
    "columns": Kind(lambda x: x.sum(axis=0), _rows, (*FLOATS, *WHOLE)),
    "all": Kind(lambda x: x.sum(), _rows, (*FLOATS, *WHOLE)),
    "greatest": Kind(lambda x: x.max(axis=1), _rows, (*FLOATS, *WHOLE)),
    "least": Kind(lambda x: x.min(axis=0), _rows, (*FLOATS, *WHOLE)),
    "place": Kind(lambda x: x.argmax(axis=1), _rows, (*FLOATS, *WHOLE)),
    "root": Kind(lambda x: t.sqrt((x * x).sum(axis=1)), _rows, ("f32",)),
    "scan": Kind(lambda x: t.cumsum(x, axis=1), _rows, ("f32", "i32", "i64")),
    "scan of columns": Kind(lambda x: t.cumsum(x, axis=0), _rows, ("f32", "i32")),
    "sort": Kind(lambda x: x.sort(axis=1)[0], _rows, (*FLOATS, "i32")),
    "causal": Kind(
        lambda x, k, v: _attention(x, k, v, causal=True),
        lambda a, _, c: dict.fromkeys("xkv", (2, a, _wide(c))),
    ),
    "attention": Kind(
        _attention,
        lambda a, b, c: {"x": (2, a, _wide(c)), "k": (2, b, _wide(c)), "v": (2, b, _wide(c))},
    ),
    "decoding": Kind(
        _attention,
        lambda a, _, c: {"x": (3, 1, _wide(c)), "k": (3, a, _wide(c)), "v": (3, a, _wide(c))},
    ),
    "pointwise": Kind(lambda x: t.tanh(x) * 2, _rows),
    "transposition": Kind(lambda x: x.T * 2, _rows, (*FLOATS, *WHOLE)),
    "bias": Kind(lambda x, b: x + b, lambda a, b, _: {"x": (a, b), "b": (b,)}),
    "convolution": Kind(
        lambda x, w: t.conv2d(x, w, padding=(1, 1)),
        lambda a, _, c: {"x": (2, min(a, 40), 9, 11), "w": (min(c, 72), min(a, 40), 3, 3)},
    ),
    "pooling": Kind(
        lambda x: t.max_pool2d(x, kernel=(3, 3), stride=(2, 2), padding=(1, 1)),
        lambda a, b, _: {"x": (2, 3, min(a, 40) + 3, min(b, 40) + 3)},
    ),
}


def check(seed: int) -> str:
    """What ran; raises where kernels give other numbers than float64."""
    random = Random(seed)
    name = random.choice(sorted(PROGRAMS))
    kind = PROGRAMS[name]
    dtype = random.choice(kind.dtypes)
    sizes = [random.choice(GPU_SIZES if on_gpu.ASKED else SIZES) for _ in range(3)]
    shapes = kind.shapes(*sizes)
    module = t.compile(expression(kind, shapes, dtype), on="reference").module.clone()
    pipeline = random.choice(PIPELINES_OF_LOOM)
    run_pipeline(module, pipeline)
    chosen = _schedule_all(module, random)
    given = inputs(shapes, dtype, random.randrange(1 << 30))
    try:
        with _said() as said:
            ladder = Ladder(module, TritonExecutor(fallback=False), find_device())
            cells = [given[one.name] for one in arguments(module)]
            got, again = (ladder.on_arrays(cells) for _ in range(2))
        want = wanted(kind, shapes, dtype, given)
        for one, other, twice in zip(got, want, again, strict=True):
            agree(one, other, dtype)
            if not any(schedule.parts > 1 for schedule in chosen.values()):
                np.testing.assert_array_equal(one, twice, err_msg="the second call")
    except Exception as error:
        how = "; ".join(f"{label}: {schedule}" for label, schedule in chosen.items())
        error.add_note(f"{name} of {shapes} in {dtype} after {pipeline}\n{how}")
        raise
    return f"{name}, {'refused' if said else 'as asked'}"


def expression(kind: Kind, shapes: Shapes, dtype: str) -> Any:
    own = {"i8": "int8"}.get(dtype, dtype)  # which NumPy's int64 is called too
    return kind.program(*(t.input(name, shape, own) for name, shape in shapes.items()))


def inputs(shapes: Shapes, dtype: str, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    element = type_named(dtype)
    assert element is not None
    cells = numpy_dtype(element)
    if dtype in WHOLE:
        return {n: rng.integers(-5, 6, shape).astype(cells) for n, shape in shapes.items()}
    return {n: rng.standard_normal(shape).astype(cells) for n, shape in shapes.items()}


def wanted(kind: Kind, shapes: Shapes, dtype: str, given: dict[str, Array]) -> list[Array]:
    """The results in float64, or those of whole numbers, by NumPy."""
    wide = dtype if dtype in WHOLE else "f64"
    program = t.compile(expression(kind, shapes, wide), on="numpy")
    cells = {n: a if dtype in WHOLE else a.astype(np.float64) for n, a in given.items()}
    made = program(**cells)
    return list(made) if isinstance(made, tuple | list) else [made]


def agree(got: Array, want: Array, dtype: str) -> None:
    assert got.shape == want.shape
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
        return
    size = float(np.abs(want).max(initial=1e-3))
    near = TOLERANCE[dtype] * size
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=TOLERANCE[dtype], atol=near)


def _schedule_all(module: ModuleOp, random: Random) -> dict[str, Schedule]:
    """Give the operations of a program schedules; most of them."""
    known = {task.name: task for task in tasks(module)}
    chosen: dict[str, Schedule] = {}
    for op in module.walk():
        if not isinstance(op, loom.OperationOp | loom.FusedOp):
            continue
        inside = isinstance(op.parent_op(), loom.FusedOp)
        if op.label.data in known and not inside and random.random() < 0.9:
            chosen[op.label.data] = schedule = _schedule(known[op.label.data], random)
            give(op, schedule)
    return chosen


def _schedule(task: Task, random: Random) -> Schedule:
    """A schedule that a task may have: one that tuning would try, or any."""
    if random.random() < 0.4:
        return random.choice(list(islice(candidates(task, descriptors=True), 300)))
    tile: dict[str, int] = {}
    for axis in task.lengths:
        least = 16 if axis in task.multiplied else 1
        if axis in task.held:
            least = max(least, 1 << (task.lengths[axis] - 1).bit_length())
        most = max(least, min(256, MOST_CELLS // max(1, prod(tile.values()))))
        sides = [1 << n for n in range(16) if least <= 1 << n <= most]
        tile[axis] = random.choice(sides or [least])
    schedule = Schedule(tile, warps=random.choice([1, 2, 4, 8]), stages=random.randint(1, 4))
    changes: list[tuple[str, list[Any]]] = [
        ("swizzle", [1, 2, 3, 8]),
        ("programs", [0, 0, 1, 3, 132]),
        ("order", list(ORDERS)),
        ("loads", ["pointer", "descriptor"]),
        ("segments", [1, 2]),
        ("masks", list(MASKS)),
        ("unroll", [1, 2, 3, 4, 64]),
        ("pipeline", list(PIPELINES)),
        ("parts", [1, 1, 2, 5]),
        ("again", list(AGAIN)),
    ]
    random.shuffle(changes)
    for how, values in changes:
        other = replace(schedule, **{how: random.choice(values)})
        if is_legal(task, other):
            schedule = other
    assert is_legal(task, schedule), schedule
    return schedule


@contextmanager
def _said() -> Iterator[list[str]]:
    """What is said of kernels that were made otherwise than asked."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("tapestry.fallbacks")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)

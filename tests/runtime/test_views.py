"""Views, reshapes and assemblies: what every executor makes of them, against NumPy."""

import json

import numpy as np
import pytest

from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.stored import restored, stored
from tapestry.runtime.program import arguments as arguments_of

EXECUTORS = ("reference", "numpy", "triton", "prepared")


def tensor(box, dtype="f32"):
    start, end = box
    return f"!loom.tensor<{list(start)} : {list(end)}, {dtype}>"


def run(executor, arguments, body, result, inputs):
    """The one result of @main, given the text of its body; it returns %y."""
    parameters = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    text = f"func.func @main({parameters}) -> {result} {{\n{body}\nfunc.return %y : {result}\n}}"
    module = parse_text(text)
    verify_module(module)
    if executor == "prepared":
        return prepared(module, inputs)
    return find_executor(executor).run(module, inputs, NoWatch()).outputs[0]


def prepared(module, inputs):
    """The same of the prepared program, its first call and the next ones, and what is kept of it.

    None of them is left to another executor.
    """
    library, program = Library(), PreparedProgram(module)
    assert not program.left
    kept = restored(json.loads(json.dumps(stored(program.run, library))), library)
    given = [inputs[argument.name] for argument in arguments_of(module)]
    first, *others = [run(given)[0] for run in (program, program, kept, kept)]
    for other in others:
        np.testing.assert_array_equal(other, first)
    return first


X = np.arange(12, dtype=np.float32).reshape(3, 4)
"""Stored on [2, -1] : [5, 3]."""

VIEWS = {
    "slice": ("(d0, d1) -> (d0 + 3, d1)", ((0, 0), (2, 3)), X[1:, 1:]),
    "step": ("(d0, d1) -> (2 * d0 + 2, 3 * d1 - 1)", ((0, 0), (2, 2)), X[::2, ::3]),
    "reverse": ("(d0, d1) -> (4 - d0, 2 - 2 * d1)", ((0, 0), (3, 2)), X[::-1, ::-2]),
    "transpose": ("(d0, d1) -> (d1, d0)", ((-1, 2), (3, 5)), X.T),
    "broadcast": (
        "(d0, d1, d2) -> (d1, d2)",
        ((7, 2, -1), (9, 5, 3)),
        np.broadcast_to(X, (2, 3, 4)),
    ),
    "expand": ("(d0, d1, d2) -> (d0, d2)", ((2, 5, -1), (5, 6, 3)), X[:, None, :]),
    "squeeze": ("(d0) -> (3, d0)", ((-1,), (3,)), X[1]),
    "diagonal": ("(d0) -> (d0 + 2, d0 - 1)", ((0,), (3,)), np.diagonal(X)),
    "windows": (
        "(d0, d1) -> (2, d0 + d1 - 1)",
        ((0, 0), (3, 2)),
        np.stack([X[0, 0:3], X[0, 1:4]], 1),
    ),
    "one cell": ("() -> (3, 0)", ((), ()), X[1, 1]),
    "empty": ("(d0, d1) -> (d0 + 90, d1)", ((0, 0), (0, 4)), X[:0]),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", VIEWS)
def test_view(name, executor):
    projection, box, want = VIEWS[name]
    source, result = tensor(((2, -1), (5, 3))), tensor(box)
    body = f"%y = loom.view %x : {projection} : {source} -> {result}"
    got = run(executor, {"x": source}, body, result, {"x": X})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("before", "after"),
    [((3, 4), (12,)), ((12,), (2, 6)), ((3, 4), (2, 3, 2)), ((1, 12), (12, 1, 1)), ((0, 4), (0,))],
)
def test_reshape(before, after, executor):
    source = tensor(((5,) * len(before), [5 + n for n in before]))
    result = tensor(((-1,) * len(after), [n - 1 for n in after]))
    x = np.arange(np.prod(before), dtype=np.float32).reshape(before)
    body = f"%y = loom.reshape %x : {source} -> {result}"
    got = run(executor, {"x": source}, body, result, {"x": x})
    np.testing.assert_array_equal(got, x.reshape(after))


ASSEMBLIES = {
    "interleave": (
        ["(d0) -> (2 * d0)", "(d0) -> (2 * d0 + 1)"],
        [((0,), (3,)), ((0,), (2,))],
        ((0,), (5,)),
        lambda a, b: np.insert(a, [1, 2], b),
    ),
    "reversed": (
        ["(d0) -> (9 - d0)", "(d0) -> (d0 + 3)"],
        [((0,), (3,)), ((7,), (9,))],
        ((7,), (12,)),
        lambda a, b: np.concatenate([a[::-1], b]),
    ),
    "stack": (
        ["(d0) -> (0, d0)", "(d0) -> (1, d0)"],
        [((0,), (3,)), ((0,), (3,))],
        ((0, 0), (2, 3)),
        lambda a, b: np.stack([a, b]),
    ),
    "columns": (
        ["(d0, d1) -> (d1, d0)", "(d0) -> (2, d0)"],
        [((0, 0), (3, 2)), ((0,), (3,))],
        ((0, 0), (3, 3)),
        lambda a, b: np.concatenate([a.T, b[None]]),
    ),
    "nothing of one": (
        ["(d0) -> (2 * d0)", "(d0) -> (d0)"],
        [((0,), (0,)), ((2,), (6,))],
        ((2,), (6,)),
        lambda a, b: np.concatenate([a, b]),
    ),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", ASSEMBLIES)
def test_assemble(name, executor):
    placements, boxes, whole, expected = ASSEMBLIES[name]
    parts, arrays = {}, {}
    for part, (start, end) in zip("ab", boxes, strict=True):
        shape = np.subtract(end, start)
        parts[part] = tensor((start, end))
        base = 100 * len(arrays)
        arrays[part] = base + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    placed = ", ".join(f"%{part} at {at}" for part, at in zip(parts, placements, strict=True))
    result = tensor(whole)
    body = f"%y = loom.assemble {placed} : {', '.join(parts.values())} -> {result}"
    got = run(executor, parts, body, result, arrays)
    np.testing.assert_array_equal(got, expected(**arrays))

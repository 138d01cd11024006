"""Views by name, run on the reference executor against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

from tapestry.dialects import views
from tapestry.dialects.loom import TensorType
from tapestry.frontend import run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.zspace import Range, ZSpaceError


def built(make, arrays, starts):
    """What `make(builder, *tensors)` gives on arrays stored from the given starts."""
    kinds = [
        TensorType.of(Range.of(a.shape).translate(s), f32)
        for a, s in zip(arrays, starts, strict=True)
    ]
    block = Block(arg_types=kinds)
    for number, argument in enumerate(block.args):
        argument.name_hint = f"x{number}"
    result = make(Builder(InsertPoint.at_end(block)), *block.args)
    block.add_op(func.ReturnOp(result))
    module = ModuleOp([func.FuncOp("main", (kinds, [result.type]), Region(block))])
    verify_module(module)
    inputs = {f"x{number}": array for number, array in enumerate(arrays)}
    whole = find_executor("reference").run(module, inputs, NoWatch()).outputs[0]
    run_pipeline(module, "loom-simplify")
    verify_module(module)
    simplified = find_executor("numpy").run(module, inputs, NoWatch()).outputs[0]
    np.testing.assert_array_equal(simplified, whole)
    return whole


A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
B = 100 + np.arange(16, dtype=np.float32).reshape(2, 2, 4)
AT, BT = (5, -2, 1), (0, 0, 0)

ONE = {
    "sliced": (lambda b, x: views.sliced(b, x, (5, -1, 4), (2, 2, 2), (1, 1, -2)), A[:, 1:, 3::-2]),
    "transposed": (lambda b, x: views.transposed(b, x, (2, 0, 1)), A.transpose(2, 0, 1)),
    "flipped": (lambda b, x: views.flipped(b, x, (0, -1)), A[::-1, :, ::-1]),
    "broadcast": (
        lambda b, x: views.broadcast(
            b, views.sliced(b, x, (5, 0, 1), (2, 1, 4)), Range.of((3, 2, 5, 4))
        ),
        np.broadcast_to(A[:, 2:], (3, 2, 5, 4)),
    ),
    "expanded": (lambda b, x: views.expanded(b, x, 1), A[:, None]),
    "expanded behind": (lambda b, x: views.expanded(b, x, -1), A[..., None]),
    "squeezed": (lambda b, x: views.squeezed(b, views.expanded(b, x, 2), 2), A),
    "diagonal": (lambda b, x: views.diagonal(b, x, 0, 2), np.diagonal(A, 0, 0, 2)),
}
TWO = {
    "concatenated": (lambda b, x, y: views.concatenated(b, (x, y), 1), np.concatenate([A, B], 1)),
    "interleaved": (
        lambda b, x, y: views.interleaved(b, (x, y), -2),
        np.stack([A[:, 0], B[:, 0], A[:, 1], B[:, 1], A[:, 2]], 1),
    ),
    "stacked": (
        lambda b, x, y: views.stacked(b, (y, views.sliced(b, x, AT, (2, 2, 4))), 1),
        np.stack([B, A[:, :2]], 1),
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_of_one(name):
    make, want = ONE[name]
    np.testing.assert_array_equal(built(make, [A], [AT]), want)


@pytest.mark.parametrize("name", TWO)
def test_of_two(name):
    make, want = TWO[name]
    np.testing.assert_array_equal(built(make, [A, B], [AT, BT]), want)


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
widths = st.tuples(st.integers(0, 7), st.integers(0, 7))


@given(st.sampled_from(sorted(MODES)), st.tuples(widths, widths), st.data())
@settings(deadline=None, max_examples=40)
def test_padded(mode, around, data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got = built(lambda b, v: views.padded(b, v, around, mode, 0), [x], [(3, -1)])
    np.testing.assert_array_equal(got, np.pad(x, around, MODES[mode]))


def test_padded_by_a_value_and_by_less_than_nothing():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    got = built(lambda b, v: views.padded(b, v, ((2, -1), (-1, 1)), value=-np.inf), [x], [(0, 0)])
    want = np.pad(x[:2, 1:], ((2, 0), (0, 1)), constant_values=-np.inf)
    np.testing.assert_array_equal(got, want)
    nothing = np.empty((0, 2), np.float32)
    got = built(lambda b, v: views.padded(b, v, ((1, 1), (0, 0)), value=7), [nothing], [(0, 0)])
    np.testing.assert_array_equal(got, np.full((2, 2), 7, np.float32))


def test_what_does_not_fit_is_said():
    nothing = np.empty((0,), np.float32)
    with pytest.raises(ValueError, match="nothing to reflect"):
        built(lambda b, v: views.padded(b, v, ((1, 1),), "reflect"), [nothing], [(0,)])
    with pytest.raises(ValueError, match="does not broadcast"):
        built(lambda b, v: views.broadcast(b, v, Range.of((4, 5, 4))), [A], [AT])
    with pytest.raises(ZSpaceError):
        built(lambda b, v: views.transposed(b, v, (0, 0, 1)), [A], [AT])
    with pytest.raises(ValueError, match="has 3 cells, not 1"):
        built(lambda b, v: views.squeezed(b, v, 1), [A], [AT])

"""Masks that became domains: same values under any shards, and less that is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.graph import flops
from tapestry.runtime import numpy_executor
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.zspace import Range
from tests.amounts import drawn
from tests.end_to_end import derivable

DERIVE = "loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse"
MASK = f"{DERIVE},loom-mask-to-domain"


def _masked_sum(low: int, high: int, slope: int) -> str:
    """Row sums of what lies from `low` before to `high` after the diagonal `j = slope * i`."""
    return f"""
!x = !loom.tensor<[0, 0] : [8, 10], f32>
!y = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !y {{
  %y = loom.operation @sum over <[0, 0] : [8, 10]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {{
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %s = arith.constant {slope} : i64
           %si = arith.muli %i, %s : i64
           %d = arith.subi %j, %si : i64
           %low = arith.constant {-low} : i64
           %high = arith.constant {high} : i64
           %p = arith.cmpi sge, %d, %low : i64
           %q = arith.cmpi sle, %d, %high : i64
           %b = arith.andi %p, %q : i1
           %n = arith.constant 0.0 : f32
           %r = arith.select %b, %c, %n : f32
           loom.yield %r : f32 }} : (!x) -> !y
  func.return %y : !y
}}"""


def _run(module: ModuleOp, inputs: dict[str, Array], on: str) -> Array:
    verify_module(module)
    (out,) = find_executor(on).run(module, inputs, NoWatch()).outputs
    return out


@given(st.integers(-3, 9), st.integers(-3, 9), st.sampled_from([-1, 1, 2]), st.data())
@settings(max_examples=drawn(40), deadline=None)
def test_any_window_and_shards_equal_the_mask(
    low: int, high: int, slope: int, data: st.DataObject
) -> None:
    text = _masked_sum(low, high, slope)
    inputs = {"x": np.random.default_rng(1).integers(-9, 9, (8, 10)).astype(np.float32)}
    module = parse_module(text)
    run_pipeline(module, "loom-mask-to-domain")
    (fold,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    assert not any(op.name == "arith.select" for op in fold.wrap_block.ops) or low + high < 0
    grid = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    run_pipeline(module, f"loom-shard{{grid={grid[0]},{grid[1]}}}")
    if data.draw(st.booleans()):
        run_pipeline(module, "loom-expand-shards")
    want = _run(parse_module(text), inputs, "reference")
    for on in ("numpy", "reference"):
        np.testing.assert_array_equal(_run(module, inputs, on), want)


def _operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def test_a_causal_mask_halves_what_is_computed() -> None:
    masked, plain = (parse_module(derivable.attention("causal")) for _ in range(2))
    run_pipeline(masked, MASK)
    run_pipeline(plain, DERIVE)
    pairs = list(zip(_operations(masked), _operations(plain), strict=True))
    assert len(pairs) == 2
    for less, more in pairs:
        assert less.inside is not None
        assert flops(less) < 0.7 * flops(more)


@pytest.mark.parametrize("on", ["numpy", "triton"])
def test_attention_is_the_same(on: str) -> None:
    text = derivable.attention("causal", guarded=True)
    module = parse_module(text)
    run_pipeline(module, MASK)
    random = np.random.default_rng(2)
    shapes = {"q": (4, 8, 4), "k": (2, 10, 4), "v": (2, 10, 4), "b": (8, 10)}
    inputs = {n: random.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
    want = _run(parse_module(text), inputs, "reference")
    np.testing.assert_allclose(_run(module, inputs, on), want, rtol=2e-5, atol=2e-6)


def test_shards_that_are_masked_as_a_whole_are_not_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes: list[Range] = []
    wrapped = numpy_executor.wrapped

    def watched(op: loom.BlockSignature, box: Range, *rest: object) -> list[Array]:
        boxes.append(box)
        return wrapped(op, box, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(numpy_executor, "wrapped", watched)
    module = parse_module(_masked_sum(0, 0, 1))
    run_pipeline(module, "loom-mask-to-domain,loom-shard{grid=4,5}")
    inputs = {"x": np.ones((8, 10), np.float32)}
    np.testing.assert_array_equal(_run(module, inputs, "numpy"), np.ones(8))
    assert len(boxes) == 4
    assert all(box.size == 4 for box in boxes)


def test_what_has_to_be_finite_is_recorded_and_printed() -> None:
    module = parse_module(derivable.attention("causal"))
    run_pipeline(module, MASK)
    text = str(module)
    assert 'assumes = ["finite(v)"]' in text
    assert str(parse_module(text)) == text

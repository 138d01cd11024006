"""Folds derived into one pass give what they are defined to give, however they are split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.graph import peak_live_bytes
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.program import arguments
from tests.end_to_end import derivable

PROGRAMS = {
    "softmax": derivable.SOFTMAX,
    "logsumexp": derivable.LOGSUMEXP,
    "entropy": derivable.ENTROPY,
    "cross entropy": derivable.CROSS_ENTROPY,
    "variance": derivable.VARIANCE,
    "covariance": derivable.COVARIANCE,
    "correlation": derivable.CORRELATION,
    "moments": derivable.MOMENTS,
    **{f"attention, {mask}": derivable.attention(mask) for mask in derivable.MASKS},
    "attention, guarded": derivable.attention("bias", guarded=True),
}
APART = {"cross entropy": 1}
"""Folds left besides the derived one: those whose sums may cancel when they are taken apart."""
PIPELINE = "loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse"


def _inputs(module: ModuleOp, seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for argument in arguments(module):
        cells = random.standard_normal(argument.type.box.shape).astype(np.float32)
        if argument.name == "b":
            # An additive mask: some keys, all of the first half, and all of one query.
            cells[random.random(cells.shape) < 0.3] = -np.inf
            cells[2, :5] = cells[3] = -np.inf
        found[argument.name] = cells
    return found


def _run(module: ModuleOp, inputs: dict[str, Array], on: str) -> tuple[Array, ...]:
    return tuple(find_executor(on).run(module, inputs, NoWatch()).outputs)


def _derived(label: str) -> tuple[ModuleOp, loom.OperationOp]:
    module = parse_module(PROGRAMS[label])
    run_pipeline(module, PIPELINE)
    folds = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.monoid_name]
    derived = [op for op in folds if "derivation" in op.attributes]
    assert len(derived) == 1
    assert len(folds) == (2 if "attention" in label else 1 + APART.get(label, 0))
    return module, derived[0]


def _agree(got: tuple[Array, ...], want: tuple[Array, ...]) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("label", PROGRAMS)
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_any_shards_equal_the_definition(label: str, data: st.DataObject):
    plain = parse_module(PROGRAMS[label])
    inputs = _inputs(plain, data.draw(st.integers(0, 9)))
    module, derived = _derived(label)
    # Two parts along some dimension but the head within its group: those would not write boxes.
    grid = [1] * derived.index.rank
    grid[data.draw(st.sampled_from([d for d in range(len(grid)) if d != len(grid) - 4]))] = 2
    grid[-1] = data.draw(st.integers(1, 4))
    run_pipeline(module, f"loom-shard{{grid={','.join(map(str, grid))} op={derived.label.data}}}")
    if data.draw(st.booleans()):
        run_pipeline(module, f"loom-expand-shards{{arity={data.draw(st.integers(2, 3))}}}")
    _agree(_run(module, inputs, "numpy"), _run(plain, inputs, "reference"))


@pytest.mark.parametrize("label", PROGRAMS)
def test_on_triton(label: str):
    plain = parse_module(PROGRAMS[label])
    inputs = _inputs(plain, 5)
    module, derived = _derived(label)
    grid = [1] * derived.index.rank
    grid[-1] = 3
    run_pipeline(module, f"loom-shard{{grid={','.join(map(str, grid))} op={derived.label.data}}}")
    _agree(_run(module, inputs, "triton"), _run(plain, inputs, "reference"))


def test_queries_that_see_nothing_are_what_they_are_written_to_be():
    for label, row in (("attention, bias", np.nan), ("attention, guarded", 0.0)):
        module, _ = _derived(label)
        (got,) = _run(module, _inputs(module, 1), "numpy")
        assert np.array_equal(got[:, 3], np.full_like(got[:, 3], row), equal_nan=True)
        assert np.isfinite(np.delete(got, 3, axis=1)).all()


def test_scores_never_leave_the_group():
    module, _ = _derived("attention, causal")
    before = peak_live_bytes(module)
    run_pipeline(module, "loom-group")
    inputs_and_output = 4 * (2 * 4 * 8 * 4 + 2 * 2 * 10 * 4 + 8 * 10)
    assert peak_live_bytes(module) == inputs_and_output < before
    (group,) = [op for op in module.walk() if isinstance(op, loom.FusedOp)]
    # Heads, queries and columns are grid; keys are folded by what also uses them.
    assert group.dim_classes.count("cascade") == 1
    plain = parse_module(PROGRAMS["attention, causal"])
    inputs = _inputs(plain, 3)
    _agree(_run(module, inputs, "numpy"), _run(plain, inputs, "reference"))


def test_attention_of_the_library_stores_what_grows_as_its_rows():
    """Of twice as many rows, twice as much is stored, and the scores not at all."""

    def stored(rows: int) -> int:
        kind = f"!loom.tensor<[0, 0, 0] : [2, {rows}, 16], f16>"
        module = parse_module(f"""
func.func @main(%q: {kind}, %k: {kind}, %v: {kind}) -> {kind} {{
  %o = weft.apply @scaled_dot_product_attention(%q, %k, %v) {{causal = true}}
         : ({kind}, {kind}, {kind}) -> {kind}
  func.return %o : {kind}
}}""")
        run_pipeline(module, f"weft-apply,{PIPELINE},loom-group")
        (work,) = [op for op in module.walk() if op.parent_op() is module.body.block.last_op][:-1]
        assert isinstance(work, loom.FusedOp)
        return peak_live_bytes(module)

    assert stored(64) == 4 * 2 * 64 * 16 * 2
    assert stored(2048) == 32 * stored(64)

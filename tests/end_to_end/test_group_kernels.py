"""Groups as one Triton kernel, however they are split, give what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.movement import splittables
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.program import arguments
from tapestry.runtime.triton.executor import TritonExecutor
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


def _inputs(module: ModuleOp, seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for argument in arguments(module):
        cells = random.standard_normal(argument.type.box.shape).astype(np.float32)
        if argument.name == "b":
            # An additive mask: some keys, and all of one query.
            cells[random.random(cells.shape) < 0.3] = -np.inf
            cells[3] = -np.inf
        found[argument.name] = cells
    return found


def _last(module: ModuleOp) -> loom.OperationOp | loom.FusedOp:
    """The last of a program's operations and groups that folds."""
    return [
        op
        for op in splittables(module)
        if isinstance(op, loom.FusedOp) or (isinstance(op, loom.OperationOp) and op.monoid_name)
    ][-1]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("label", PROGRAMS)
@given(data=st.data())
@settings(max_examples=3, deadline=None)
def test_any_shards_equal_the_definition(label: str, data: st.DataObject) -> None:
    plain = parse_module(PROGRAMS[label])
    inputs = _inputs(plain, data.draw(st.integers(0, 9)))
    module = parse_module(PROGRAMS[label])
    run_pipeline(module, "default")
    op = _last(module)
    dims = [*op.map_dims, *(op.merged_dims if isinstance(op, loom.FusedOp) else op.fold_dims)]
    grid = [1] * op.index.rank
    for dim in data.draw(st.sets(st.sampled_from(dims), max_size=2)):
        grid[dim] = data.draw(st.integers(1, 3))
    shard = f"loom-shard{{grid={','.join(map(str, grid))} op={op.label.data}}}"
    if not _is_refused(module, shard):
        run_pipeline(module, shard)
    if data.draw(st.booleans()):
        run_pipeline(module, "loom-expand-shards{arity=2}")
    tile = data.draw(st.sampled_from([16, 256, 2048]))
    got = TritonExecutor(tile=tile).run(module, inputs, NoWatch()).outputs
    want = find_executor("reference").run(plain, inputs, NoWatch()).outputs
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def _is_refused(module: ModuleOp, shard: str) -> bool:
    """Whether it cannot be split so: a digit of a reshape, for example."""
    try:
        run_pipeline(module.clone(), shard)
    except TapestryError:
        return True
    return False


@pytest.mark.sweep(3)
@pytest.mark.parametrize("label", PROGRAMS)
@given(data=st.data())
@settings(max_examples=2, deadline=None)
def test_folds_side_by_side_equal_the_definition(label: str, data: st.DataObject) -> None:
    plain = parse_module(PROGRAMS[label])
    inputs = _inputs(plain, data.draw(st.integers(0, 9)))
    module = parse_module(PROGRAMS[label])
    run_pipeline(module, "default")
    parts = data.draw(st.sampled_from([2, 3, 5, 12]))
    run_pipeline(module, f"loom-split-fold{{parts={parts} least={data.draw(st.integers(1, 2))}}}")
    want = find_executor("reference").run(plain, inputs, NoWatch()).outputs
    for on in ("triton", "numpy"):
        got = find_executor(on).run(module, inputs, NoWatch()).outputs
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)

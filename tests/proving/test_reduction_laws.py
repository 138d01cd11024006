"""Random programs at smaller sizes: they verify, keep their structure, and stay equal."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.proving.reduction import reduce_sizes
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.program import arguments
from tapestry.zspace import Partition
from tests.amounts import drawn
from tests.end_to_end.programs import Program, programs

_PIPELINES = ["loom-simplify", "loom-fuse", "loom-simplify,loom-fuse", "loom-expand-shards"]


def _shard(data: st.DataObject, module: ModuleOp) -> None:
    """Random grids on some operations."""
    for op in module.walk():
        if isinstance(op, loom.OperationOp) and not op.index.is_empty:
            counts = [data.draw(st.integers(1, min(n, 6))) for n in op.index.shape]
            partition = Partition.balanced(op.index, counts)
            if not op.sharding_problems(partition):
                op.shards = PartitionAttr(partition)


def _inputs(module: ModuleOp, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {
        argument.name: (generator.uniform(-1, 1, argument.type.box.shape) * 3).astype(
            {"f32": "f4", "f64": "f8", "i32": "i4"}[str(argument.type.element_type)]
        )
        for argument in arguments(module)
    }


def _run(module: ModuleOp, inputs: dict[str, Array]) -> tuple[Array, ...]:
    return find_executor("numpy").run(module, inputs, NoWatch()).outputs


def _parts(partition: Partition | None) -> list[int]:
    return [] if partition is None else [min(count, 3) for count in partition.counts]


@settings(max_examples=drawn(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    programs(extents=(1, 2, 3, 7, 12, 16, 40, 64), max_cells=1 << 16),
    st.sampled_from(_PIPELINES),
    st.integers(0, 1),
    st.sampled_from(["scale", "pin"]),
    st.data(),
)
def test_smaller_programs_stay_equal(
    program: Program, pipeline: str, seed: int, literals: str, data: st.DataObject
) -> None:
    a = parse_module(program.text)
    run_pipeline(a, "weft-apply")
    b = a.clone()
    _shard(data, b)
    run_pipeline(b, pipeline)
    texts = str(a), str(b)
    reduced = reduce_sizes(a, b, seed=seed, literals=literals)
    assert (str(a), str(b)) == texts
    assert reduced.reason is None
    for before, after in ((a, reduced.a), (b, reduced.b)):
        verify_module(after)
        old = [op for op in before.walk() if isinstance(op, loom.OperationOp)]
        new = [op for op in after.walk() if isinstance(op, loom.OperationOp)]
        assert [op.kinds for op in old] == [op.kinds for op in new]
        for x, y in zip(old, new, strict=True):
            assert all(p <= q for p, q in zip(y.index.shape, x.index.shape, strict=True))
            assert _parts(x.partition) == _parts(y.partition)
    inputs = _inputs(reduced.a, seed)
    for x, y in zip(_run(reduced.a, inputs), _run(reduced.b, inputs), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)

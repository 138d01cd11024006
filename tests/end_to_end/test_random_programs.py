"""The law: every executor, under every partition and rewrite, agrees with the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import Array, NoWatch, Result, find_executor
from tapestry.runtime.program import check_inputs
from tapestry.zspace import Partition, Range
from tests.amounts import drawn
from tests.end_to_end.programs import Program, Value, programs

_REWRITES = [
    "weft-apply",
    "weft-apply,loom-simplify",
    "weft-apply,loom-fuse",
    "weft-apply,loom-simplify,loom-fuse",
    "weft-apply,loom-simplify,loom-fuse,loom-simplify",
]


def _cut(draw: st.DrawFn, box: Range, depth: int) -> list[Range]:
    """A box cut into up to 2 ** depth parts, at random places of random dimensions."""
    dims = [d for d in range(box.rank) if box.shape[d] > 1]
    if depth == 0 or not dims or draw(st.integers(0, 3)) == 0:
        return [box]
    dim = draw(st.sampled_from(dims))
    at = draw(st.integers(1, box.shape[dim] - 1))
    parts = box.split_sizes(dim, [at, box.shape[dim] - at])
    return [piece for part in parts for piece in _cut(draw, part, depth - 1)]


@st.composite
def _partitions(draw: st.DrawFn, box: Range) -> Partition:
    """A random grid, or a random list of ranges, over map and fold dimensions alike."""
    if draw(st.booleans()):
        return Partition.explicit(_cut(draw, box, 3))
    cuts: list[list[int]] = []
    for start, end in zip(box.start, box.end, strict=True):
        inside = st.sets(st.integers(start + 1, end - 1), max_size=2) if end - start > 1 else None
        cuts.append([start, *sorted(draw(inside) if inside is not None else ()), end])
    return Partition.grid(cuts)


def _shard(data: st.DataObject, module: ModuleOp) -> None:
    for op in module.walk():
        if isinstance(op, loom.OperationOp):
            partition = data.draw(_partitions(op.index), label=f"partition of @{op.label.data}")
            if not op.sharding_problems(partition):
                op.shards = PartitionAttr(partition)


def _run(name: str, module: ModuleOp, inputs: dict[str, Array]) -> Result:
    verify_module(module)
    check_inputs(module, inputs)
    return find_executor(name).run(module, inputs, NoWatch())


def _agree(
    outputs: list[Value], got: tuple[Array, ...], want: tuple[Array, ...], *, exact: bool
) -> None:
    for value, a, b in zip(outputs, got, want, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape == value.shape
        if value.dtype.startswith("i") or (exact and value.exact):
            assert np.array_equal(a, b), f"%{value.name}"
        else:
            tolerance = (1e-4 if value.dtype == "f32" else 1e-12) * max(value.bound, 1.0)
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=f"%{value.name}")


def _prepared(program: Program, pipeline: str) -> ModuleOp:
    module = parse_text(program.text)
    verify_module(module)
    run_pipeline(module, pipeline)
    return module


_SETTINGS = settings(
    max_examples=drawn(200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_SETTINGS
@given(programs(), st.sampled_from(_REWRITES), st.data())
def test_arrays_agree(program: Program, rewrites: str, data: st.DataObject) -> None:
    want = _run("reference", _prepared(program, "weft-apply"), program.inputs)
    module = _prepared(program, rewrites)
    rewritten = _run("reference", module, program.inputs)
    # Rewrites keep the order of every scalar operation, so even floats keep their bits.
    for a, b in zip(rewritten.outputs, want.outputs, strict=True):
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    _shard(data, module)
    _agree(program.outputs, _run("numpy", module, program.inputs).outputs, want.outputs, exact=True)
    run_pipeline(module, "loom-expand-shards")
    for name in ("reference", "numpy"):
        expanded = _run(name, module, program.inputs)
        _agree(program.outputs, expanded.outputs, want.outputs, exact=True)


@_SETTINGS
@given(programs(), st.sampled_from(_REWRITES[1:]), st.data())
def test_kernels_agree(program: Program, rewrites: str, data: st.DataObject) -> None:
    want = _run("reference", _prepared(program, "weft-apply"), program.inputs)
    module = _prepared(program, rewrites)
    _shard(data, module)
    got = _run("triton", module, program.inputs)
    _agree(program.outputs, got.outputs, want.outputs, exact=False)


@pytest.mark.parametrize("name", ["reference", "numpy"])
@pytest.mark.parametrize("shards", [1, 2, 7])
def test_expanded_shards_keep_locations(name: str, shards: int) -> None:
    text = """func.func @main(%x: !loom.tensor<[3] : [10], i32>) -> !loom.tensor<[] : [], i32> {
      %y = weft.apply @sum(%x) {axis = 0 : i64}
             : (!loom.tensor<[3] : [10], i32>) -> !loom.tensor<[] : [], i32>
      func.return %y : !loom.tensor<[] : [], i32>
    }"""
    module = parse_text(text)
    run_pipeline(module, f"weft-apply,loom-shard{{shards={shards}}},loom-expand-shards")
    result = _run(name, module, {"x": np.arange(7, dtype=np.int32)})
    assert result.outputs[0] == 21

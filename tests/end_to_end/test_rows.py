"""Norms, softmaxes and losses become one group each; any shards give what they are to give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.graph import peak_live_bytes, traffic
from tapestry.movement import Splittable
from tapestry.runtime.arrays.groups import parts_within
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.program import arguments
from tests.end_to_end.rows import ROWS, drawn

KERNELS = {"mean_cross_entropy": 2}
"""Operations and groups that are left, where it is not one."""


def _top(module: ModuleOp) -> list[Splittable]:
    """The operations and groups of a program."""
    return [
        op
        for op in module.walk()
        if isinstance(op, Splittable) and not isinstance(op.parent_op(), loom.FusedOp)
    ]


def _grouped(name: str, rows: int = 5, size: int = 33, dtype: str = "f32") -> ModuleOp:
    module = parse_module(ROWS[name](rows, size, dtype))
    run_pipeline(module, "default")
    return module


def _run(module: ModuleOp, inputs: dict[str, Array], on: str) -> list[Array]:
    return list(find_executor(on).run(module, inputs, NoWatch()).outputs)


def _wanted(name: str, rows: int, size: int, inputs: dict[str, Array]) -> list[Array]:
    """What a program gives as it is written, run whole."""
    plain = parse_module(ROWS[name](rows, size, "f32"))
    run_pipeline(plain, "weft-apply")
    return _run(plain, inputs, "reference")


def _agree(got: list[Array], want: list[Array]) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("name", ROWS)
def test_one_group(name: str):
    assert len(_top(_grouped(name))) == KERNELS.get(name, 1)


@pytest.mark.parametrize("name", [name for name in ROWS if name not in KERNELS])
def test_nothing_but_inputs_and_outputs_is_stored_and_each_is_moved_once(name: str):
    module = _grouped(name, 64, 1000)
    (group,) = _top(module)
    results = sum(out.type.byte_size for out in group.results)
    stored = sum(argument.type.byte_size for argument in arguments(module)) + results
    assert peak_live_bytes(module) == stored
    assert traffic(group).read == stored - results
    assert traffic(group).written == results


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", ROWS)
@given(data=st.data())
@settings(max_examples=4, deadline=None)
def test_any_shards_equal_the_definition(name: str, data: st.DataObject):
    rows, size = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 7, 33]))
    module = _grouped(name, rows, size)
    inputs = drawn(module, data.draw(st.integers(0, 9)))
    run_pipeline(module, f"loom-shard{{shards={data.draw(st.integers(1, 3))}}}")
    if data.draw(st.booleans()):
        run_pipeline(module, "loom-expand-shards")
    _agree(_run(module, inputs, "numpy"), _wanted(name, rows, size, inputs))


@pytest.mark.parametrize("name", ["softmax", "residual_norm", "batch_norm"])
def test_a_group_runs_some_rows_at_a_time(name: str, monkeypatch: pytest.MonkeyPatch):
    module = _grouped(name, 6, 8)
    (group,) = _top(module)
    assert isinstance(group, loom.FusedOp)
    parts = parts_within(group, group.index, 16)
    assert sum(part.size for part in parts) == group.index.size
    assert {part.size for part in parts} == ({12} if name == "batch_norm" else {16})
    monkeypatch.setattr("tapestry.runtime.numpy_executor._CELLS", 16)
    inputs = drawn(module)
    _agree(_run(module, inputs, "numpy"), _wanted(name, 6, 8, inputs))


def test_a_row_that_is_too_long_is_a_part_of_its_own():
    (group,) = _top(_grouped("softmax", 3, 100))
    assert isinstance(group, loom.FusedOp)
    assert [part.shape for part in parts_within(group, group.index, 10)] == [(1, 100)] * 3

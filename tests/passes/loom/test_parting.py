"""Parts of a state that end apart from the others: the same numbers, by folds one after another."""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

import tapestry as t
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.frontend import verify_module
from tapestry.passes.loom.parting import find_parting, part_off
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.program import arguments

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


class _Part(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        parting = find_parting(op, range(len(op.state_types))) if op.fold_dims else None
        if parting is not None:
            part_off(op, parting, rewriter)


def parted(module: ModuleOp) -> ModuleOp:
    new = module.clone()
    PatternRewriteWalker(_Part(), apply_recursively=False).rewrite_module(new)
    verify_module(new)
    return new


def operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


SHAPES = {"x": (6, 24), "w": (24, 18), "v": (24, 18), "b": (18,), "c": (18,)}


def lowered(program: t.Expression | tuple[t.Expression, ...]) -> ModuleOp:
    return t.compile(program, on="triton").lowered


def inputs(dtype: str) -> dict[str, t.Expression]:
    return {name: t.input(name, shape, dtype) for name, shape in SHAPES.items()}


def gated(dtype: str) -> ModuleOp:
    """A gate that is rounded before it is one: what is between is stored rounded."""
    x, w, v, b, _ = inputs(dtype).values()
    return lowered(t.swiglu(x @ w + b, x @ v))


def beside(dtype: str) -> ModuleOp:
    """Two results of one walk that need nothing of each other."""
    x, w, v, b, c = inputs(dtype).values()
    return lowered((t.relu(x @ w + b), x @ v * c))


def same(a: ModuleOp, b: ModuleOp, dtype: str, where: str) -> None:
    random = np.random.default_rng(0)
    given: Mapping[str, np.ndarray] = {
        name: random.normal(size=shape).astype(DTYPES[dtype]) for name, shape in SHAPES.items()
    }
    one, other = (
        find_executor(where)
        .run(each, {k: v for k, v in given.items() if k in names(each)}, NoWatch())
        .outputs
        for each in (a, b)
    )
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


def names(module: ModuleOp) -> set[str]:
    return {argument.name for argument in arguments(module)}


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_a_gate_is_stored_as_it_is_rounded(dtype: str) -> None:
    (whole,) = operations(gated(dtype))
    assert len(whole.state_types) == 2
    before, after = operations(parted(gated(dtype)))
    assert str(tensor_type(before.outs[0]).element_type) == dtype
    assert len(before.state_types) == len(after.state_types) == 1
    assert before.outs[0] in [read.value for read in after.extra_reads]
    # Each reads one of the matrices, and the bias goes with its product.
    assert [len(op.in_reads) for op in (before, after)] == [2, 2]
    assert len(before.extra_reads) + len(after.extra_reads) == 2


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_results_that_need_nothing_of_each_other_need_no_buffer(dtype: str) -> None:
    (whole,) = operations(beside(dtype))
    assert len(whole.outs) == 2
    found = operations(parted(beside(dtype)))
    assert [len(op.outs) for op in found] == [1, 1]
    assert not any(read.value.owner in found for op in found for read in op.extra_reads)


@pytest.mark.parametrize("where", ["reference", "triton"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("made", [gated, beside])
def test_the_parts_give_what_the_whole_gives(made, dtype: str, where: str) -> None:
    same(made(dtype), parted(made(dtype)), dtype, where)


def test_sums_that_are_mixed_before_they_are_rounded_are_stored_as_they_are() -> None:
    x, w, v, _, _ = inputs("f32").values()
    module = lowered(t.exp(x @ w) * (x @ v))
    before, _ = operations(parted(module))
    assert str(tensor_type(before.outs[0]).element_type) == "f32"
    same(module, parted(module), "f32", "reference")


def test_what_depends_on_a_part_by_two_values_stays() -> None:
    x, w, v, _, _ = inputs("f32").values()
    gate, up = x @ w, x @ v
    module = lowered(t.exp(gate) * up + t.tanh(gate + up))
    (whole,) = operations(module)
    assert len(whole.state_types) == 2
    unwrap = whole.unwrap_block
    assert unwrap is not None
    # The gate's sum goes on as it is and as its exponential; the other one's as it is alone.
    found = [find_parting(whole, [part]) for part in range(2)]
    assert found.count(None) == 1
    (other,) = (one for one in found if one is not None)
    assert other.through is unwrap.args[other.part]


def test_parts_that_merge_together_stay() -> None:
    x = t.input("x", (32, 64), "f32")
    module = lowered(t.softmax(x).sum(axis=1))
    assert all(
        find_parting(op, range(len(op.state_types))) is None
        for op in operations(module)
        if op.fold_dims and op.unwrap_block is not None and len(op.state_types) > 1
    )

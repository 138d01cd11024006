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
from tapestry.frontend import parse_text, verify_module
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


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_what_is_returned_and_goes_on_is_stored_once(dtype: str) -> None:
    x, w, v, _, _ = inputs(dtype).values()
    gate = t.relu(x @ w)
    module = lowered((gate, gate * (x @ v)))
    before, after = operations(parted(module))
    assert [len(op.outs) for op in (before, after)] == [1, 1]
    assert before.outs[0] in [read.value for read in after.extra_reads]
    same(module, parted(module), dtype, "reference")


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
    folds = [op for op in operations(module) if op.fold_dims and len(op.state_types) > 1]
    assert folds
    assert [find_parting(op, range(len(op.state_types))) for op in folds] == [None] * len(folds)


PAIR = """
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!w = !loom.tensor<[0, 0] : [4, 8], f32>
!z = !loom.tensor<[0, 0] : [6, 4], f32>
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32]
  merge (%a: f32, %b: f32, %c: f32, %d: f32) {
    %s = arith.addf %a, %c : f32
    %t = arith.addf %b, %d : f32
    loom.yield %s, %t : f32, f32
  }
func.func @main(%x: !x, %w: !w, %v: !w) -> !z {
  %z = loom.operation @both over <[0, 0, 0] : [6, 4, 8]> [map, map, fold] by @pair
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d1, d2),
             %v : (d0, d1, d2) -> (d1, d2))
         outs((d0, d1) -> (d0, d1)) MORE
         wrap (%a: f32, %b: f32, %c: f32) {
           %p = arith.mulf %a, %b : f32
           %q = arith.mulf %a, %c : f32
           loom.yield %p, %q : f32, f32
         }
         unwrap (%u: f32, %v_: f32) { %q = arith.mulf %v_, %u : f32  loom.yield %q : f32 }
         : (!x, !w, !w) -> !z
  func.return %z : !z
}
"""


@pytest.mark.parametrize(
    ("more", "stays"),
    [
        ("", False),
        ("domain(d0 - d2 >= 0)", True),
        ("shards <grid [[0, 3, 6], [0, 4], [0, 8]]>", True),
    ],
)
def test_what_has_shards_or_a_domain_stays(more: str, stays: bool) -> None:
    (op,) = operations(parse_text(PAIR.replace("MORE", more)))
    assert (find_parting(op, range(2)) is None) == stays

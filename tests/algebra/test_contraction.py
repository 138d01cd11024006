"""Contractions are seen part by part, in what joins several products as in one."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.algebra.contraction import find_contractions
from tapestry.algebra.monoids import monoid_of
from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor

PRODUCTS = """
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 5], f32>
!y = !loom.tensor<[0, 0] : [4, 5], f32>
func.func @main(%x: !x, %w: !w, %u: !w) -> (!y, !y) {
  %a = weft.apply @matmul(%x, %w) : (!x, !w) -> !y
  %b = weft.apply @matmul(%x, %u) : (!x, !w) -> !y
  func.return %a, %b : !y, !y
}
"""


def joined(text: str) -> loom.OperationOp:
    module = parse_text(text)
    run_pipeline(module, "weft-apply,loom-fuse{kinds=beside}")
    (op,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    return op


def test_each_part_is_a_contraction() -> None:
    op = joined(PRODUCTS)
    found = find_contractions(op, monoid_of(op))
    assert found is not None
    assert [(one.rows, one.columns, one.inner) for one in found] == [((0,), (1,), (2,))] * 2


def test_a_part_that_is_none_makes_it_none() -> None:
    op = joined(PRODUCTS)
    end = op.wrap_block.last_op
    assert end is not None
    end.operands[1] = op.wrap_block.args[0]
    assert find_contractions(op, monoid_of(op)) is None


def test_numpy_multiplies_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_text(PRODUCTS)
    run_pipeline(module, "weft-apply,loom-fuse{kinds=beside}")
    numbers = np.random.default_rng(0)
    shapes = {"x": (4, 6), "w": (6, 5), "u": (6, 5)}
    inputs = {name: numbers.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    calls: list[int] = []
    product = np.matmul
    monkeypatch.setattr(np, "matmul", lambda *a, **k: calls.append(1) or product(*a, **k))
    a, b = find_executor("numpy").run(module, inputs, NoWatch()).outputs
    assert len(calls) == 2
    np.testing.assert_allclose(a, inputs["x"] @ inputs["w"], rtol=1e-5)
    np.testing.assert_allclose(b, inputs["x"] @ inputs["u"], rtol=1e-5)

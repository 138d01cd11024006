"""Products that fold part of their points: the side is masked that the domain's rows are along."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.passes.triton.alternatives.alone import alone
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.triton.executor import TritonExecutor

_TEXT = """
!x = !loom.tensor<[0, 0] : [32, 32], f32>
func.func @main(%a: !x, %b: !x, %w: !x) -> !x {{
  %s = loom.operation @first over <[0, 0, 0] : [32, 32, 32]> [map, map, fold] by @add
         ins(%b : (k, j, c) -> (k, c), %w : (k, j, c) -> (c, j)) outs((k, j) -> (k, j))
         wrap (%x: f32, %y: f32) {{ %p = arith.mulf %x, %y : f32  loom.yield %p : f32 }}
         : (!x, !x) -> !x
  %t = loom.operation @second over <[0, 0, 0] : [32, 32, 32]> [map, map, fold] by @add
         ins(%s : (i, j, k) -> (i, k), %a : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         domain({domain})
         wrap (%x: f32, %y: f32) {{ %p = arith.mulf %x, %y : f32  loom.yield %p : f32 }}
         {{assumes = ["finite(a)", "finite(s)"]}} : (!x, !x) -> !x
  func.return %t : !x
}}
"""


@pytest.mark.parametrize(
    "domain", ["d0 - d2 >= 0", "d2 - d1 >= 0", "d0 - d2 >= 0, d2 - d1 >= 0", "d0 + d1 - d2 >= 0"]
)
def test_what_is_not_folded_adds_nothing(domain: str) -> None:
    module = parse_module(_TEXT.format(domain=domain))
    random = np.random.default_rng(0)
    inputs = {name: random.normal(size=(32, 32)).astype("f4") for name in "abw"}
    (want,) = find_executor("reference").run(module.clone(), inputs, NoWatch()).outputs
    run_pipeline(module, "loom-group")
    assert any(isinstance(op, loom.FusedOp) for op in module.walk())
    (got,) = TritonExecutor(tile=256).run(module, inputs, NoWatch()).outputs
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_an_operation_alone_takes_for_granted_what_it_takes_among_others() -> None:
    module = parse_module(_TEXT.format(domain="d0 - d2 >= 0"))
    _, second = (op for op in module.walk() if isinstance(op, loom.OperationOp))
    (copy,) = (op for op in alone(second).walk() if isinstance(op, loom.OperationOp))
    assert map_fold_of(copy).finite == map_fold_of(second).finite == {"a", "s"}

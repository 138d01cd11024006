"""Which programs can be run, and what is said of others."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.diagnostics import InvalidProgramError
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import find_executor
from tapestry.runtime.program import main_function

SQUARE = """
!x = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !x {
  %y = weft.apply @square(%x) : (!x) -> !x
  func.return %y : !x
}
"""


@pytest.mark.parametrize("executor", ["reference", "numpy", "triton"])
def test_what_is_lowered_to_triton_is_not_run(executor: str) -> None:
    module = parse_text(SQUARE)
    run_pipeline(module, "default,loom-to-triton")
    said = "@main takes or returns memref<8xf32>: it is lowered to Triton already"
    with pytest.raises(InvalidProgramError, match=said) as bad:
        find_executor(executor).run(module, {"x": np.zeros(8, np.float32)}, None)
    assert (bad.value.hint or "").startswith("leave `loom-to-triton` out of the pipeline")


def test_what_is_no_tensor_is_said() -> None:
    module = parse_text("func.func @main(%n: i64) -> i64 { func.return %n : i64 }")
    said = "@main takes or returns i64; only !loom.tensor types can be run"
    with pytest.raises(InvalidProgramError, match=said) as bad:
        main_function(module)
    assert bad.value.hint is None

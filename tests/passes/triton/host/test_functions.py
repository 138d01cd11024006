"""Functions that can be lowered, and what is said of one that is lowered already."""

from __future__ import annotations

import pytest

from tapestry.diagnostics import InvalidProgramError
from tapestry.frontend import parse_text, run_pipeline

SQUARE = """
!x = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !x {
  %y = weft.apply @square(%x) : (!x) -> !x
  func.return %y : !x
}
"""


def test_what_is_lowered_is_not_lowered_again() -> None:
    module = parse_text(SQUARE)
    said = "@main takes or returns memref<8xf32>: it is lowered to Triton already"
    with pytest.raises(InvalidProgramError, match=said) as bad:
        run_pipeline(module, "default,loom-to-triton,loom-to-triton")
    assert (bad.value.hint or "").startswith("leave `loom-to-triton` out of the pipeline")

"""Which contractions are sums over windows, and which are not."""

from __future__ import annotations

import pytest

from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.algebra.windows import Window, Windowed, find_windowed
from tapestry.dialects import loom
from tapestry.frontend import parse_text

_PROGRAM = """
func.func @main(
    %x: !loom.tensor<[0, 0] : [3, 8], f32>, %w: !loom.tensor<[0, 0, 0] : [4, 3, 3], f32>
) -> !loom.tensor<[0, 0] : [4, {cells}], f32> {{
  %y = loom.operation @some over <[0, 0, 0, 0] : [4, {cells}, 3, 3]> [map, map, fold, fold] by @add
      ins(%x : (d0, d1, d2, d3) -> ({x}){clip}, %w : (d0, d1, d2, d3) -> ({w}))
      outs((d0, d1) -> (d0, d1)){domain}
      wrap (%a: f32, %b: f32) {{
        %0 = arith.mulf {product} : f32
        loom.yield %0 : f32
      }}
      : (!loom.tensor<[0, 0] : [3, 8], f32>, !loom.tensor<[0, 0, 0] : [4, 3, 3], f32>)
      -> !loom.tensor<[0, 0] : [4, {cells}], f32>
  func.return %y : !loom.tensor<[0, 0] : [4, {cells}], f32>
}}
"""


def _found(
    x: str,
    cells: int,
    *,
    w: str = "d0, d2, d3",
    clip: str = "",
    domain: str = "",
    product: str = "%a, %b",
) -> Windowed | None:
    text = _PROGRAM.format(x=x, cells=cells, w=w, clip=clip, domain=domain, product=product)
    (op,) = (op for op in parse_text(text).walk() if isinstance(op, loom.OperationOp))
    return find_windowed(op, accumulating_monoid_of(op))


@pytest.mark.parametrize("product", ["%a, %b", "%b, %a"])
def test_a_kernel_that_slides(product: str) -> None:
    found = _found("d2, 2 * d1 + d3", 3, product=product)
    assert found == Windowed(0, 1, (), (), (0,), (2,), (Window(1, 1, 3, 2, 1),))


def test_it_may_slide_backward_over_zeros_outside() -> None:
    found = _found("d2, d1 - 2 * d3 + 1", 8, clip=" clip 0.000000e+00 : f32")
    assert found is not None
    assert found.windows == (Window(1, 1, 3, 1, -2),)


@pytest.mark.parametrize(
    "form",
    [
        {"x": "d2, d1 + d3 - 1", "cells": 8, "clip": " clip 1.000000e+00 : f32"},
        {"x": "d2, d1 + d3", "cells": 6, "domain": "\n      domain(d3 - d1 >= 0)"},
        {"x": "d2, d1 + d3", "cells": 6, "product": "%a, %a"},
        {"x": "d3, d1 + d3", "cells": 6},
        {"x": "d2, d1 + d2 + d3", "cells": 4},
        {"x": "d2, d3 - d1 + 5", "cells": 6},
        {"x": "d2, d3", "cells": 6},
    ],
    ids=["ones_outside", "domain", "square", "moves_twice", "two_folded", "backward", "plain"],
)
def test_what_is_none(form: dict[str, object]) -> None:
    assert _found(**form) is None  # pyright: ignore[reportArgumentType]

"""Tiles of what is read along a diagonal, where a dimension moves along several axes at once."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.products.tiled import TiledProduct
from tapestry.runtime.prepared.script import Finished

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _check(rows: str, x: Array, *, clip: str = "") -> None:
    """Sums of max(x[rows], 0) * w[d2], over d2, for each of 10 times 20 results."""
    kinds = [f"!loom.tensor<{[0] * len(n)} : {list(n)}, f32>" for n in (x.shape, (3,), (10, 20))]
    module = parse_text(f"""
    func.func @main(%x: {kinds[0]}, %w: {kinds[1]}) -> {kinds[2]} {{
      %y = loom.operation @y over <[0, 0, 0] : [10, 20, 3]> [map, map, fold] by @add
        ins(%x : (d0, d1, d2) -> ({rows}) {clip}, %w : (d0, d1, d2) -> (d2))
        outs((d0, d1) -> (d0, d1))
        wrap (%a: f32, %b: f32) {{
          %z = arith.constant 0.0 : f32
          %m = arith.maximumf %a, %z : f32
          %p = arith.mulf %m, %b : f32
          loom.yield %p : f32
        }} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}
      func.return %y : {kinds[2]}
    }}""")
    verify_module(module)
    w = np.array([1, 2, 3], "f4")
    (want,) = find_executor("reference").run(module, {"x": x, "w": w}, NoWatch()).outputs
    prepared = PreparedProgram(module, Library(loops=Loops(1)))
    (got,) = prepared([x, w])
    script = prepared.run.script
    assert isinstance(script, Finished)
    (line,) = script.lines
    assert isinstance(line.function, TiledProduct)
    assert None not in line.function._ready.values()  # pyright: ignore[reportPrivateUsage]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("rows", "shape"),
    [("d0 + d2, d0, d1", (12, 10, 20)), ("d0 + d2, d0 - d2 + 2, d1", (12, 12, 20))],
)
def test_cells_of_a_window_that_moves_along_another_axis_too(
    rows: str, shape: tuple[int, ...]
) -> None:
    """Cells at the same place of the window are others where the other axis is elsewhere."""
    _check(rows, np.random.default_rng(0).integers(-3, 4, shape).astype("f4"))


def test_vectors_that_leave_two_axes() -> None:
    """What is outside of either axis is zero."""
    line = np.random.default_rng(0).integers(1, 4, 200).astype("f4")
    x = np.lib.stride_tricks.as_strided(line, (18, 16), (4, 8))
    _check("d1 + d2 - 1, d1 + d0 - 4", x, clip="clip 0.0 : f32")

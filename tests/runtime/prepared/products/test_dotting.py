"""Products whose vectors are along what is folded are those of the reference executor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.importers.building import ProgramBuilder
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.products.tiled import TiledProduct
from tapestry.runtime.program import arguments
from tests.runtime.prepared.products.checking import (
    LIBRARY,
    arrays_of,
    check,
    is_tiled,
)

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _gradient(images: Sequence[int], kernels: Sequence[int], **parameters: object) -> ModuleOp:
    """The gradient of a convolution of images to its kernel."""
    build = ProgramBuilder()
    one, padding = parameters.get("stride", 1), parameters.get("padding", 0)
    assert isinstance(one, int)
    assert isinstance(padding, int)
    ends = zip(images[2:], kernels[2:], strict=True)
    cells = [(n + 2 * padding - k) // one + 1 for n, k in ends]
    given = [
        build.argument("g", (images[0], kernels[0], *cells), "f32"),
        build.argument("x", tuple(images), "f32"),
    ]
    both = {"stride": [one] * 2, "padding": [padding] * 2, "dilation": [1, 1]}
    groups = images[1] // kernels[1]
    more = both | {"groups": groups, "size": [*kernels[2:]]}
    module = build.finish(build.apply("conv2d_backward_weight", *given, parameters=more))
    run_pipeline(module, "default")
    return module


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(
    ("images", "kernels", "stride"),
    [
        ((3, 8, 9, 37), (8, 1, 3, 3), 1),
        ((3, 4, 11, 32), (6, 4, 3, 5), 1),
        ((2, 6, 20, 21), (10, 3, 2, 3), 2),
        ((130, 2, 7, 8), (3, 2, 3, 3), 1),
    ],
)
def test_vectors_are_along_what_is_folded(
    images: tuple[int, ...], kernels: tuple[int, ...], stride: int, padding: int
) -> None:
    """Where results are the cells of a kernel, which are few."""
    module = _gradient(images, kernels, stride=stride, padding=padding)
    arrays = arrays_of(module)
    assert check(module, arrays)
    assert check(module, [one[::-1] for one in arrays])
    check(module, [one.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2) for one in arrays])


def test_lanes_beyond_the_end_are_not_summed() -> None:
    """What is in memory there may be infinite, and meet zero."""
    module = _gradient((1, 2, 5, 21), (3, 2, 1, 4), padding=0)
    gradient, images = arrays_of(module)
    images[0, 0, 1, -3:] = np.inf
    gradient[:] = np.abs(gradient) + 1
    gradient[0, 2, 1, -1] = 0
    assert check(module, [gradient, images])


def test_lanes_of_what_is_computed_are_not_summed() -> None:
    """A zero beyond the end becomes another number, or none."""
    text = _ROWS.format(rows=5, out=6, inner=21)
    module = parse_text(text)
    verify_module(module)
    assert check(module, [np.abs(one) + 1 for one in arrays_of(module)])


_ROWS = """
!x = !loom.tensor<[0, 0] : [{rows}, {inner}], f32>
!w = !loom.tensor<[0, 0] : [{out}, {inner}], f32>
!y = !loom.tensor<[0, 0] : [{rows}, {out}], f32>
func.func @main(%x: !x, %w: !w) -> !y {{
  %y = loom.operation @rows over <[0, 0, 0] : [{rows}, {out}, {inner}]> [map, map, fold] by @add
    ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d1, d2))
    outs((d0, d1) -> (d0, d1))
    wrap (%xe: f32, %we: f32) {{
      %o = arith.constant 1.0 : f32
      %f = arith.addf %xe, %o : f32
      %z = arith.constant 8.0 : f32
      %q = arith.divf %z, %we : f32
      %h = math.floor %q : f32
      %p = arith.mulf %f, %h : f32
      loom.yield %p : f32
    }}
    unwrap (%s: f32) {{
      %t = arith.addf %s, %s : f32
      loom.yield %t : f32
    }} : (!x, !w) -> !y
  func.return %y : !y
}}
"""


def test_long_sums_of_lanes_are_near() -> None:
    source = np.random.default_rng(0)
    module = _gradient((64, 1, 40, 40), (2, 1, 3, 3), padding=1)
    shapes = [one.type.box.shape for one in arguments(module)]
    gradient, images = (source.standard_normal(shape).astype("f4") for shape in shapes)
    prepared = PreparedProgram(module, LIBRARY)
    (got,) = prepared([gradient, images])
    assert is_tiled(prepared)
    padded = np.pad(images.astype("f8"), [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    want = np.einsum("nohw,nihwyx->oiyx", gradient.astype("f8"), windows)
    single = np.einsum("nohw,nihwyx->oiyx", gradient, windows.astype("f4"))
    assert np.abs(got - want).max() <= max(1e-4, np.abs(single - want).max())


_FINISHED = """
!x = !loom.tensor<[0, 0] : [3, 500], f32>
!w = !loom.tensor<[0, 0] : [500, 1], f32>
!y = !loom.tensor<[0, 0] : [3, 1], f32>
func.func @main(%x: !x, %w: !w, %e: !y) -> !y {
  %y = loom.operation @product over <[0, 0, 0] : [3, 1, 500]> [map, map, fold] by @add
    ins(%x : (i, j, k) -> (i, k), %w : (i, j, k) -> (k, j)) extra(%e : (i, j) -> (i, j))
    outs((i, j) -> (i, j))
    wrap (%a: f32, %b: f32) {
      %t = math.tanh %a : f32
      %p = arith.mulf %t, %b : f32
      loom.yield %p : f32
    }
    unwrap (%sum: f32, %o: f32) {
      %c = math.FUNCTION %o : f32
      %r = arith.addf %sum, %c : f32
      loom.yield %r : f32
    } : (!x, !w, !y) -> !y
  func.return %y : !y
}
"""


@pytest.mark.parametrize("function", ["tanh", "cos", "tan", "asin", "cosh"])
def test_what_is_done_with_a_sum_is_written_to_its_cell_alone(function: str) -> None:
    program = PreparedProgram(
        parse_text(_FINISHED.replace("FUNCTION", function)), Library(loops=Loops(1))
    )
    random = np.random.default_rng(0)
    given = [random.uniform(-1, 1, n).astype("f4") for n in ((3, 500), (500, 1), (3, 1))]
    (want,) = program(given)
    (product,) = (
        line.function
        for line in program.run.script.lines
        if isinstance(line.function, TiledProduct)
    )
    room = np.full(200, -7.0, np.float32)
    product.fill(room[100:103].reshape(3, 1), given)
    np.testing.assert_array_equal(room[100:103], want[:, 0])
    assert np.flatnonzero(room != -7).tolist() == [100, 101, 102]

"""Halos of windows, against the cells that each shard reads and owns."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.halos import Halo, halos
from tapestry.movement import edges, moved_bytes, splittables

WINDOW = """
!x = !loom.tensor<[{start}] : [{end}], f32>
!y = !loom.tensor<[0] : [{out}], f32>
func.func @main(%x: !x) -> !y {{
  %h = loom.operation @double over <[{start}] : [{end}]> [map] ins(%x : (i) -> (i))
         outs((i) -> (i))
         wrap (%c: f32) {{ %d = arith.addf %c, %c : f32 loom.yield %d : f32 }} : (!x) -> !x
  %y = loom.operation @window over <[0, 0] : [{out}, {kernel}]> [map, fold] by @add
         ins(%h : (i, k) -> ({stride} * i + {dilation} * k {first}) clip 0.0 : f32)
         outs((i) -> (i))
         wrap (%c: f32) {{ loom.yield %c : f32 }} : (!x) -> !y
  func.return %y : !y
}}
"""


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(-3, 3),
    extent=st.integers(4, 20),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    padding=st.integers(0, 2),
    shards=st.integers(2, 4),
)
def test_halos_are_what_moves_to_windows(
    start: int, extent: int, kernel: int, stride: int, dilation: int, padding: int, shards: int
) -> None:
    out = (extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if out < shards:
        return
    text = WINDOW.format(
        start=start,
        end=start + extent,
        out=out,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        first=f"{start - padding:+d}".replace("+", "+ ").replace("-", "- "),
    )
    module = parse_module(text)
    run_pipeline(module, f"loom-shard{{op=window grid={shards},1}},loom-propagate{{slack=1.0}}")
    double, window = splittables(module)
    assert isinstance(window, loom.OperationOp)
    assert window.partition is not None
    inside = range(start, start + extent)
    read = [
        {c for (c,) in window.in_maps[0].apply_range(part).coords() if c in inside}
        for part in window.partition.ranges()
    ]
    found = halos(window)
    assert len(found) <= 1
    halo = found[0] if found else Halo(0, 0, 0, 0)
    owned = double.partition.ranges() if double.partition else ()
    if len(owned) != shards:  # a part of the tensor would be empty
        return
    below, above = [0], [0]
    for n, (cells, part) in enumerate(zip(read, owned, strict=True)):
        if cells:
            below += [part.start[0] - min(cells)] if n else []
            above += [max(cells) + 1 - part.end[0]] if n + 1 < shards else []
    assert (halo.below, halo.above) == (max(below), max(above))
    beyond = sum(
        len(c - set(range(p.start[0], p.end[0]))) for c, p in zip(read, owned, strict=True)
    )
    (edge,) = edges(window)
    assert moved_bytes(edge) <= 4 * beyond


def test_a_convolution_reads_its_neighbours_rows_and_columns() -> None:
    module = parse_module("""
!x = !loom.tensor<[0, 0, 0, 0] : [2, 3, 8, 8], f32>
!w = !loom.tensor<[0, 0, 0, 0] : [4, 3, 3, 5], f32>
!y = !loom.tensor<[0, 0, 0, 0] : [2, 4, 8, 8], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = weft.apply @conv2d(%x, %w) {padding = [1, 2]} : (!x, !w) -> !y
  func.return %y : !y
}""")
    run_pipeline(module, "weft-apply,loom-shard{grid=2,1,1,2,2,1,1,1}")
    (conv,) = splittables(module)
    assert halos(conv) == (Halo(0, 3, 2, 2), Halo(0, 2, 1, 1))
    run_pipeline(module, "loom-shard{grid=2,1,1,1,1,1,1,1}")
    assert halos(conv) == ()

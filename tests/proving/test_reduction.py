"""What smaller sizes keep: tiles, tails, halos, strides, digits, literals."""

from __future__ import annotations

import pytest

from tapestry.frontend import parse_module
from tapestry.proving.reduction import reduce_sizes
from tests.proving.reducing import (
    main,
    operations_of,
    reduce_both,
    shape_of,
    tensor,
)


def _sum(start: int, end: int, cells: int, shards: str = "") -> str:
    """The sum of cells [start, end) of `%x`."""
    return (
        f"%y = loom.operation @sum over <[{start}] : [{end}]> [fold] by @add "
        f"ins(%x : (d0) -> (d0)) outs(() -> ()) {shards} "
        "wrap (%c: f64) { loom.yield %c : f64 } "
        f": ({tensor(cells)}) -> {tensor()}"
    )


def _sum_program(start: int, end: int, cells: int, shards: str = "") -> str:
    return main({"x": tensor(cells)}, _sum(start, end, cells, shards), y=tensor())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_partial_tile_stays_partial(seed: int) -> None:
    whole = _sum_program(0, 44, 44)
    tiled = _sum_program(0, 44, 44, "shards <grid [[0, 16, 32, 44]]>")
    reduced = reduce_both(whole, tiled, seed=seed)
    (op,) = operations_of(reduced.b)
    assert op.partition is not None
    first, second, tail = [part.size for part in op.partition]
    assert 2 <= tail < first == second < 16


@pytest.mark.parametrize("seed", [0, 1])
def test_a_dropped_partial_tile_is_seen(seed: int) -> None:
    # At 8 cells and tiles of 4 there would be no partial tile to drop.
    reduced = reduce_both(_sum_program(0, 44, 44), _sum_program(0, 32, 44), seed=seed, equal=False)
    assert shape_of(reduced)[0] < 44


@pytest.mark.parametrize("seed", [0, 1])
def test_a_tail_of_one_cell_stays(seed: int) -> None:
    tiled = _sum_program(0, 33, 33, "shards <grid [[0, 16, 32, 33]]>")
    reduced = reduce_both(_sum_program(0, 33, 33), tiled, seed=seed)
    (op,) = operations_of(reduced.b)
    assert op.partition is not None
    assert [part.size for part in op.partition][-1] == 1
    reduce_both(_sum_program(0, 33, 33), _sum_program(0, 32, 33), seed=seed, equal=False)


@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 5, 100])
def test_three_tiles_stay(tiles: int) -> None:
    cuts = [32 * tile for tile in range(tiles + 1)]
    cells = cuts[-1]
    tiled = _sum_program(0, cells, cells, f"shards <grid [{cuts}]>")
    for seed in (0, 1):
        (op,) = operations_of(reduce_both(_sum_program(0, cells, cells), tiled, seed=seed).b)
        assert op.partition is not None
        assert min(tiles, 3) <= op.partition.count <= 4
        assert all(2 <= part.size <= 9 for part in op.partition)


def _online(rescale_old: bool, rescale_new: bool, tiles: int, tile: int) -> str:
    """The log-sum-exp of a vector, tile after tile; without a rescale it is wrong."""
    cells, scalar = tiles * tile, tensor()
    lines: list[str] = []
    for t in range(tiles):
        box = f"over <[{t * tile}] : [{(t + 1) * tile}]> [fold]"
        lines.append(
            f"%m{t} = loom.operation @m {box} by @max ins(%x : (d0) -> (d0)) outs(() -> ()) "
            f"wrap (%c: f64) {{ loom.yield %c : f64 }} : ({tensor(cells)}) -> {scalar} "
            f"%s{t} = loom.operation @s {box} by @add "
            f"ins(%x : (d0) -> (d0), %m{t} : (d0) -> ()) outs(() -> ()) "
            "wrap (%c: f64, %p: f64) { %d = arith.subf %c, %p : f64 %e = math.exp %d : f64 "
            f"loom.yield %e : f64 }} : ({tensor(cells)}, {scalar}) -> {scalar}"
        )
    point = "over <[] : []> []"
    for t in range(1, tiles):
        m, s = ("m0", "s0") if t == 1 else (f"M{t - 1}", f"S{t - 1}")
        old = "%eo" if rescale_old else "%one"
        new = "%en" if rescale_new else "%one"
        lines.append(
            f"%M{t}, %S{t} = loom.operation @join {point} "
            f"ins(%{m} : () -> (), %{s} : () -> (), %m{t} : () -> (), %s{t} : () -> ()) "
            "outs(() -> (), () -> ()) wrap (%mo: f64, %so: f64, %mn: f64, %sn: f64) { "
            "%g = arith.maximumf %mo, %mn : f64 %one = arith.constant 1.0 : f64 "
            "%do = arith.subf %mo, %g : f64 %eo = math.exp %do : f64 "
            "%dn = arith.subf %mn, %g : f64 %en = math.exp %dn : f64 "
            f"%a = arith.mulf %so, {old} : f64 %b = arith.mulf %sn, {new} : f64 "
            "%s = arith.addf %a, %b : f64 loom.yield %g, %s : f64, f64 } "
            f": ({', '.join([scalar] * 4)}) -> ({scalar}, {scalar})"
        )
    last = tiles - 1
    results = {f"M{last}": scalar, f"S{last}": scalar}
    return main({"x": tensor(cells)}, " ".join(lines), **results)


@pytest.mark.parametrize(("old", "new"), [(False, True), (True, False), (False, False)])
def test_a_missing_rescale_is_seen(old: bool, new: bool) -> None:
    # With a single tile there would be nothing to rescale.
    right = _online(True, True, 4, 32)
    assert shape_of(reduce_both(right, right)) == (8,)
    reduce_both(right, _online(old, new, 4, 32), equal=False)


def _conv(cells: int, taps: int, stride: int = 1) -> str:
    out = (cells - taps) // stride + 1
    d0 = f"{stride} * d0" if stride > 1 else "d0"
    return main(
        {"x": tensor(cells), "w": tensor(taps)},
        f"%y = loom.operation @conv over <[0, 0] : [{out}, {taps}]> [map, fold] by @add "
        f"ins(%x : (d0, d1) -> ({d0} + d1), %w : (d0, d1) -> (d1)) outs((d0) -> (d0)) "
        f"shards <grid [[0, {out // 2}, {out}], [0, {taps}]]> "
        "wrap (%c: f64, %k: f64) { %p = arith.mulf %c, %k : f64 loom.yield %p : f64 } "
        f": ({tensor(cells)}, {tensor(taps)}) -> {tensor(out)}",
        y=tensor(out),
    )


@pytest.mark.parametrize(("cells", "stride"), [(66, 1), (65, 2), (66, 2), (64, 3)])
def test_windows_and_strides_are_not_scaled(cells: int, stride: int) -> None:
    program = _conv(cells, 3, stride)
    reduced = reduce_both(program, program, "weft-apply,loom-expand-shards")
    assert shape_of(reduced, "w") == (3,)
    assert shape_of(reduced)[0] < cells // 2
    (op,) = operations_of(reduced.a)
    assert op.in_maps[0].map.matrix == ((stride, 1),)


def _heads(shape: tuple[int, int], kernel: str, axis: int) -> str:
    """A kernel on the digits of a flat dimension."""
    flat, split = tensor(shape[0] * shape[1]), tensor(*shape)
    folded = kernel in ("sum", "max")
    result = tensor(shape[1 - axis]) if folded else flat
    body = (
        f"%s = weft.apply @reshape(%x) {{shape = {list(shape)}}} : ({flat}) -> {split} "
        f"%k = weft.apply @{kernel}(%s) {{axis = {axis} : i64}} : ({split}) -> "
        + (result if folded else split)
    )
    if not folded:
        cells = shape[0] * shape[1]
        body += f" %r = weft.apply @reshape(%k) {{shape = [{cells}]}} : ({split}) -> {flat}"
    return main({"x": flat}, body, **{"k" if folded else "r": result})


@pytest.mark.parametrize("kernel", ["sum", "softmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_digits_shrink_one_by_one(kernel: str, axis: int) -> None:
    program = _heads((12, 64), kernel, axis)
    reduced = reduce_both(program, program, "weft-apply,loom-simplify,loom-fuse")
    assert shape_of(reduced) == (30,)
    rows = [row for op in operations_of(reduced.b) for p in op.in_maps for row in p.map.matrix]
    assert any({5, 6} & set(row) for row in rows)


@pytest.mark.parametrize(
    ("rows", "cells"),
    [("-1 * d0 + 63", 64), ("d0 + 32", 64)],
)
def test_moves_along_one_axis(rows: str, cells: int) -> None:
    """A tensor and itself, reversed or rolled by halves, in one sum."""
    half, whole = tensor(32), tensor(cells)
    if rows.startswith("-1"):
        moved = f"%m = loom.view %x : (d0) -> ({rows}) : {whole} -> {whole}"
    else:
        upper = "!loom.tensor<[32] : [64], f64>"
        moved = (
            f"%lo = loom.view %x : (d0) -> (d0 + 32) : {whole} -> {half} "
            f"%hi = loom.view %x : (d0) -> (d0 - 32) : {whole} -> {upper} "
            f"%m = loom.assemble %lo, %hi : {half}, {upper} -> {whole}"
        )
    body = moved + f" %y = weft.apply @add(%x, %m) : ({whole}, {whole}) -> {whole}"
    program = main({"x": whole}, body, y=whole)
    pipeline = "weft-apply,loom-simplify,loom-fuse{kinds=epilogue},loom-shard{shards=2}"
    reduced = reduce_both(program, program, pipeline)
    assert shape_of(reduced)[0] < 32


def test_a_place_in_a_body_keeps_its_size() -> None:
    """Parts of an assembly that a body chooses among, by where its point is."""
    half, whole, upper = tensor(32), tensor(64), "!loom.tensor<[32] : [64], f64>"
    body = (
        f"%lo = loom.view %x : (d0) -> (d0 + 32) : {whole} -> {half} "
        f"%hi = loom.view %x : (d0) -> (d0 - 32) : {whole} -> {upper} "
        f"%m = loom.assemble %lo, %hi : {half}, {upper} -> {whole} "
        f"%y = weft.apply @add(%x, %m) : ({whole}, {whole}) -> {whole}"
    )
    program = main({"x": whole}, body, y=whole)
    assert shape_of(reduce_both(program, program, "weft-apply,loom-simplify,loom-fuse")) == (64,)


def _mean(cells: int, text: str) -> str:
    return main(
        {"x": tensor(cells, 40)},
        f"%y = loom.operation @mean over <[0, 0] : [40, {cells}]> [map, fold] by @add "
        "ins(%x : (d0, d1) -> (d1, d0)) outs((d0) -> (d0)) "
        "wrap (%c: f64) { loom.yield %c : f64 } unwrap (%s: f64) { "
        f"{text} loom.yield %r : f64 }} : ({tensor(cells, 40)}) -> {tensor(40)}",
        y=tensor(40),
    )


def test_the_n_of_a_mean_follows_its_extent() -> None:
    divided = _mean(96, "%n = arith.constant 96.0 : f64 %r = arith.divf %s, %n : f64")
    times = _mean(96, f"%n = arith.constant {1 / 96!r} : f64 %r = arith.mulf %s, %n : f64")
    assert shape_of(reduce_both(divided, times)) == (6, 5)
    assert shape_of(reduce_both(divided, times, literals="pin")) == (96, 5)


def test_a_literal_pins_the_extent_it_could_stand_for() -> None:
    root = _mean(64, "%n = arith.constant 0.125 : f64 %r = arith.mulf %s, %n : f64")
    assert shape_of(reduce_both(root, root, literals="pin")) == (64, 5)


def test_an_unknown_property_keeps_extents() -> None:
    module = parse_module(_sum_program(0, 44, 44))
    (op,) = operations_of(module)
    op.properties["later"] = op.label
    reduced = reduce_sizes(module, module)
    assert shape_of(reduced) == (44,)
    assert not reduced.is_smaller


def test_extents_of_unrelated_dimensions_do_not_divide_each_other() -> None:
    x, w, y = tensor(96, 96), tensor(96, 96), tensor(96, 96)
    body = f"%y = weft.apply @matmul(%x, %w) : ({x}, {w}) -> {y}"
    program = main({"x": x, "w": w}, body, y=y)
    for seed in (0, 1):
        reduced = reduce_both(program, program, seed=seed)
        extents = {*shape_of(reduced), *shape_of(reduced, "w")}
        assert len(extents) == 3
        assert not any(p != q and p % q == 0 for p in extents for q in extents)


def test_two_seeds_give_two_sizes() -> None:
    program = _sum_program(0, 64, 64)
    assert shape_of(reduce_both(program, program)) != shape_of(
        reduce_both(program, program, seed=1)
    )


def test_programs_over_other_arguments_are_left_alone() -> None:
    a, b = parse_module(_sum_program(0, 44, 44)), parse_module(_sum_program(0, 45, 45))
    reduced = reduce_sizes(a, b)
    assert reduced.reason == "the programs have different arguments"
    assert (reduced.a, reduced.b) == (a, b)

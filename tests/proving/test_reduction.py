"""What smaller sizes keep: tiles, tails, halos, strides, digits, borders of masks, literals."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.proving.reduction import Literals, Reduced, reduce_sizes
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.program import arguments


def _tensor(*shape: int, dtype: str = "f64") -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, {dtype}>"


def _main(arguments: dict[str, str], body: str, **results: str) -> str:
    taken = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    types, values = ", ".join(results.values()), ", ".join(f"%{name}" for name in results)
    return f"func.func @main({taken}) -> ({types}) {{ {body} func.return {values} : {types} }}"


def _inputs(module: ModuleOp, seed: int = 0) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {x.name: generator.uniform(-2, 2, x.type.box.shape) for x in arguments(module)}


def _run(module: ModuleOp, inputs: dict[str, Array]) -> tuple[Array, ...]:
    return find_executor("numpy").run(module, inputs, NoWatch()).outputs


def _reduced(
    a: str,
    b: str,
    pipeline: str = "weft-apply",
    *,
    seed: int = 0,
    literals: Literals = "scale",
    equal: bool = True,
) -> Reduced:
    """Reduce both programs, `b` after a pipeline, and run them: they have to be equal or not."""
    one, other = parse_module(a), parse_module(b)
    run_pipeline(one, "weft-apply")
    run_pipeline(other, pipeline)
    reduced = reduce_sizes(one, other, seed=seed, literals=literals)
    assert reduced.reason is None
    verify_module(reduced.a)
    verify_module(reduced.b)
    names = [[argument.name for argument in arguments(module)] for module in (one, reduced.a)]
    assert names[0] == names[1]
    inputs = _inputs(reduced.a)
    same = [
        np.allclose(x, y, rtol=1e-9, atol=1e-9)
        for x, y in zip(_run(reduced.a, inputs), _run(reduced.b, inputs), strict=True)
    ]
    assert all(same) == equal
    return reduced


def _operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def _shape(reduced: Reduced, name: str = "x") -> tuple[int, ...]:
    return next(size.after for size in reduced.sizes if size.name == name)


def _sum(start: int, end: int, cells: int, shards: str = "") -> str:
    """The sum of cells [start, end) of `%x`."""
    return (
        f"%y = loom.operation @sum over <[{start}] : [{end}]> [fold] by @add "
        f"ins(%x : (d0) -> (d0)) outs(() -> ()) {shards} "
        "wrap (%c: f64) { loom.yield %c : f64 } "
        f": ({_tensor(cells)}) -> {_tensor()}"
    )


def _sum_program(start: int, end: int, cells: int, shards: str = "") -> str:
    return _main({"x": _tensor(cells)}, _sum(start, end, cells, shards), y=_tensor())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_partial_tile_stays_partial(seed: int) -> None:
    whole = _sum_program(0, 44, 44)
    tiled = _sum_program(0, 44, 44, "shards <grid [[0, 16, 32, 44]]>")
    reduced = _reduced(whole, tiled, seed=seed)
    (op,) = _operations(reduced.b)
    assert op.partition is not None
    first, second, tail = [part.size for part in op.partition]
    assert 2 <= tail < first == second < 16


@pytest.mark.parametrize("seed", [0, 1])
def test_a_dropped_partial_tile_is_seen(seed: int) -> None:
    # At 8 cells and tiles of 4 there would be no partial tile to drop.
    reduced = _reduced(_sum_program(0, 44, 44), _sum_program(0, 32, 44), seed=seed, equal=False)
    assert _shape(reduced)[0] < 44


@pytest.mark.parametrize("seed", [0, 1])
def test_a_tail_of_one_cell_stays(seed: int) -> None:
    tiled = _sum_program(0, 33, 33, "shards <grid [[0, 16, 32, 33]]>")
    reduced = _reduced(_sum_program(0, 33, 33), tiled, seed=seed)
    (op,) = _operations(reduced.b)
    assert op.partition is not None
    assert [part.size for part in op.partition][-1] == 1
    _reduced(_sum_program(0, 33, 33), _sum_program(0, 32, 33), seed=seed, equal=False)


@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 5, 100])
def test_three_tiles_stay(tiles: int) -> None:
    cuts = [32 * tile for tile in range(tiles + 1)]
    cells = cuts[-1]
    tiled = _sum_program(0, cells, cells, f"shards <grid [{cuts}]>")
    for seed in (0, 1):
        (op,) = _operations(_reduced(_sum_program(0, cells, cells), tiled, seed=seed).b)
        assert op.partition is not None
        assert min(tiles, 3) <= op.partition.count <= 4
        assert all(2 <= part.size <= 9 for part in op.partition)


def _online(rescale_old: bool, rescale_new: bool, tiles: int, tile: int) -> str:
    """The log-sum-exp of a vector, tile after tile; without a rescale it is wrong."""
    cells, scalar = tiles * tile, _tensor()
    lines: list[str] = []
    for t in range(tiles):
        box = f"over <[{t * tile}] : [{(t + 1) * tile}]> [fold]"
        lines.append(
            f"%m{t} = loom.operation @m {box} by @max ins(%x : (d0) -> (d0)) outs(() -> ()) "
            f"wrap (%c: f64) {{ loom.yield %c : f64 }} : ({_tensor(cells)}) -> {scalar} "
            f"%s{t} = loom.operation @s {box} by @add "
            f"ins(%x : (d0) -> (d0), %m{t} : (d0) -> ()) outs(() -> ()) "
            "wrap (%c: f64, %p: f64) { %d = arith.subf %c, %p : f64 %e = math.exp %d : f64 "
            f"loom.yield %e : f64 }} : ({_tensor(cells)}, {scalar}) -> {scalar}"
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
    return _main({"x": _tensor(cells)}, " ".join(lines), **results)


@pytest.mark.parametrize(("old", "new"), [(False, True), (True, False), (False, False)])
def test_a_missing_rescale_is_seen(old: bool, new: bool) -> None:
    # With a single tile there would be nothing to rescale.
    right = _online(True, True, 4, 32)
    assert _shape(_reduced(right, right)) == (8,)
    _reduced(right, _online(old, new, 4, 32), equal=False)


def _conv(cells: int, taps: int, stride: int = 1) -> str:
    out = (cells - taps) // stride + 1
    d0 = f"{stride} * d0" if stride > 1 else "d0"
    return _main(
        {"x": _tensor(cells), "w": _tensor(taps)},
        f"%y = loom.operation @conv over <[0, 0] : [{out}, {taps}]> [map, fold] by @add "
        f"ins(%x : (d0, d1) -> ({d0} + d1), %w : (d0, d1) -> (d1)) outs((d0) -> (d0)) "
        f"shards <grid [[0, {out // 2}, {out}], [0, {taps}]]> "
        "wrap (%c: f64, %k: f64) { %p = arith.mulf %c, %k : f64 loom.yield %p : f64 } "
        f": ({_tensor(cells)}, {_tensor(taps)}) -> {_tensor(out)}",
        y=_tensor(out),
    )


@pytest.mark.parametrize(("cells", "stride"), [(66, 1), (65, 2), (66, 2), (64, 3)])
def test_windows_and_strides_are_not_scaled(cells: int, stride: int) -> None:
    program = _conv(cells, 3, stride)
    reduced = _reduced(program, program, "weft-apply,loom-expand-shards")
    assert _shape(reduced, "w") == (3,)
    assert _shape(reduced)[0] < cells // 2
    (op,) = _operations(reduced.a)
    assert op.in_maps[0].map.matrix == ((stride, 1),)


def _heads(shape: tuple[int, int], kernel: str, axis: int) -> str:
    """A kernel on the digits of a flat dimension."""
    flat, split = _tensor(shape[0] * shape[1]), _tensor(*shape)
    folded = kernel in ("sum", "max")
    result = _tensor(shape[1 - axis]) if folded else flat
    body = (
        f"%s = weft.apply @reshape(%x) {{shape = {list(shape)}}} : ({flat}) -> {split} "
        f"%k = weft.apply @{kernel}(%s) {{axis = {axis} : i64}} : ({split}) -> "
        + (result if folded else split)
    )
    if not folded:
        cells = shape[0] * shape[1]
        body += f" %r = weft.apply @reshape(%k) {{shape = [{cells}]}} : ({split}) -> {flat}"
    return _main({"x": flat}, body, **{"k" if folded else "r": result})


@pytest.mark.parametrize("kernel", ["sum", "softmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_digits_shrink_one_by_one(kernel: str, axis: int) -> None:
    program = _heads((12, 64), kernel, axis)
    reduced = _reduced(program, program, "weft-apply,loom-simplify,loom-fuse")
    assert _shape(reduced) == (30,)
    rows = [row for op in _operations(reduced.b) for p in op.in_maps for row in p.map.matrix]
    assert any({5, 6} & set(row) for row in rows)


@pytest.mark.parametrize(
    ("rows", "cells"),
    [("-1 * d0 + 63", 64), ("d0 + 32", 64)],
)
def test_moves_along_one_axis(rows: str, cells: int) -> None:
    """A tensor and itself, reversed or rolled by halves, in one sum."""
    half, whole = _tensor(32), _tensor(cells)
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
    program = _main({"x": whole}, body, y=whole)
    reduced = _reduced(program, program, "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=2}")
    assert _shape(reduced)[0] < 32


def _masked(condition: str, rows: int, columns: int) -> str:
    """The row sums of a matrix where a condition on %i and %j holds."""
    return _main(
        {"x": _tensor(rows, columns)},
        f"%y = loom.operation @mask over <[0, 0] : [{rows}, {columns}]> [map, fold] by @add "
        "ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) wrap (%c: f64) { "
        f"%i = loom.index 0 : i64 %j = loom.index 1 : i64 {condition} "
        "%z = arith.constant 0.0 : f64 %r = arith.select %m, %c, %z : f64 loom.yield %r : f64 } "
        f": ({_tensor(rows, columns)}) -> {_tensor(rows)}",
        y=_tensor(rows),
    )


def _against(constant: int, predicate: str, left: str = "%i", right: str = "%j") -> str:
    return (
        f"%k = arith.constant {constant} : i64 %s = arith.addi {right}, %k : i64 "
        f"%m = arith.cmpi {predicate}, {left}, %s : i64"
    )


@pytest.mark.parametrize(
    ("rows", "columns", "constant", "wrong"),
    [(64, 64, 0, 1), (64, 64, 0, -1), (64, 64, 16, 17), (32, 64, -32, -31), (64, 64, -16, -15)],
)
def test_an_oblique_border_keeps_its_place(
    rows: int, columns: int, constant: int, wrong: int
) -> None:
    right = _masked(_against(constant, "sge"), rows, columns)
    reduced = _reduced(right, right, "loom-shard{grid=4,4},loom-expand-shards")
    assert max(_shape(reduced)) < 32
    _reduced(right, _masked(_against(wrong, "sge"), rows, columns), equal=False)
    _reduced(right, _masked(_against(constant, "sgt"), rows, columns), equal=False)
    # The mask is neither everywhere nor nowhere.
    (y,) = _run(reduced.a, {"x": np.ones(_shape(reduced))})
    assert 0 < y.sum() < np.prod(_shape(reduced))


def _over(domain: str, rows: int, columns: int) -> str:
    """The row sums of a matrix over a domain."""
    return _main(
        {"x": _tensor(rows, columns)},
        f"%y = loom.operation @inside over <[0, 0] : [{rows}, {columns}]> [map, fold] by @add "
        f"ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain({domain}) "
        "wrap (%c: f64) { loom.yield %c : f64 } "
        f": ({_tensor(rows, columns)}) -> {_tensor(rows)}",
        y=_tensor(rows),
    )


@pytest.mark.parametrize(
    ("domain", "wrong", "condition"),
    [
        ("d0 - d1 >= 0", "d0 - d1 - 1 >= 0", _against(0, "sge")),
        ("d0 - d1 + 16 >= 0", "d0 - d1 + 17 >= 0", _against(-16, "sge")),
        (
            "-1 * d1 + 39 >= 0",
            "-1 * d1 + 40 >= 0",
            "%k = arith.constant 40 : i64 %m = arith.cmpi slt, %j, %k : i64",
        ),
    ],
)
def test_domains_keep_their_place(domain: str, wrong: str, condition: str) -> None:
    right = _over(domain, 64, 64)
    sharded = "loom-shard{grid=4,4},loom-expand-shards"
    assert max(_shape(_reduced(right, right, sharded))) < 32
    _reduced(right, _over(wrong, 64, 64), equal=False)
    # A domain and a mask that say the same stay the same.
    _reduced(right, _masked(condition, 64, 64))


@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge", "eq", "ne"])
@pytest.mark.parametrize("length", [1, 16, 40, 63])
def test_a_straight_border_keeps_its_place(predicate: str, length: int) -> None:
    condition = f"%k = arith.constant {length} : i64 %m = arith.cmpi {predicate}, %j, %k : i64"
    right = _masked(condition, 5, 64)
    reduced = _reduced(right, right, "loom-shard{grid=1,4}")
    assert _shape(reduced)[1] < 32
    wrong = condition.replace(str(length), str(length - 1))
    _reduced(right, _masked(wrong, 5, 64), equal=False)


def test_coordinates_of_digits_shrink() -> None:
    """A mask on a flat coordinate, and the same written with the digits of a reshape."""
    flat, split = _tensor(96), _tensor(6, 16)
    body = (
        "%t = loom.operation @t over <[0] : [96]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0)) "
        "wrap (%c: f64) { %i = loom.index 0 : i64 %k = arith.constant 40 : i64 "
        "%m = arith.cmpi slt, %i, %k : i64 %f = arith.sitofp %i : i64 to f64 "
        "%r = arith.select %m, %c, %f : f64 loom.yield %r : f64 } "
        f": ({flat}) -> {flat} %y = loom.reshape %t : {flat} -> {split}"
    )
    digits = (
        f"%s = loom.reshape %x : {flat} -> {split} "
        "%y = loom.operation @t over <[0, 0] : [6, 16]> [map, map] "
        "ins(%s : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1)) wrap (%c: f64) { "
        "%a = loom.index 0 : i64 %b = loom.index 1 : i64 %w = arith.constant 16 : i64 "
        "%p = arith.muli %a, %w : i64 %i = arith.addi %p, %b : i64 "
        "%k = arith.constant 40 : i64 %m = arith.cmpi slt, %i, %k : i64 "
        "%f = arith.sitofp %i : i64 to f64 %r = arith.select %m, %c, %f : f64 "
        f"loom.yield %r : f64 }} : ({split}) -> {split}"
    )
    one, other = (_main({"x": flat}, text, y=split) for text in (body, digits))
    reduced = _reduced(one, other)
    assert _shape(reduced)[0] < 96
    _reduced(one, _main({"x": flat}, digits.replace("40", "41"), y=split), equal=False)


def test_arithmetic_that_is_not_affine_keeps_extents() -> None:
    condition = (
        "%w = arith.constant 16 : i64 %p = arith.divsi %j, %w : i64 %q = arith.divsi %i, %w : i64 "
        "%m = arith.cmpi eq, %p, %q : i64"
    )
    program = _masked(condition, 64, 64)
    assert _shape(_reduced(program, program)) == (64, 64)


def _elements(text: str) -> str:
    """A body over the coordinate %i of a vector too long to run."""
    cells = _tensor(4_000_000)
    return _main(
        {"x": cells},
        "%y = loom.operation @e over <[0] : [4000000]> [map] ins(%x : (d0) -> (d0)) "
        f"outs((d0) -> (d0)) wrap (%c: f64) {{ %i = loom.index 0 : i64 {text} "
        f"loom.yield %r : f64 }} : ({cells}) -> {cells}",
        y=cells,
    )


_SCALE = "%f = arith.sitofp %i : i64 to f64 %k = arith.constant 0.001 : f64 "
_SIGN = (
    "%z = arith.constant 0 : i64 %m = arith.cmpi sge, %j, %z : i64 "
    "%o = arith.constant 0.0 : f64 %r = arith.select %m, %c, %o : f64"
)


@pytest.mark.parametrize(
    "text",
    [
        (
            "%j = arith.trunci %i : i64 to i8 %f = arith.sitofp %j : i8 to f64 "
            "%r = arith.mulf %c, %f : f64"
        ),
        f"%k = arith.constant 10000000000000 : i64 %j = arith.muli %i, %k : i64 {_SIGN}",
        f"%k = arith.constant 9223372036854775000 : i64 %j = arith.addi %i, %k : i64 {_SIGN}",
        (
            "%k = arith.constant 1000 : i64 %j = arith.subi %k, %i : i64 "
            "%f = arith.uitofp %j : i64 to f64 %r = arith.mulf %c, %f : f64"
        ),
        (
            f"{_SCALE} %g = arith.mulf %f, %k : f64 %q = math.floor %g : f64 "
            "%r = arith.mulf %c, %q : f64"
        ),
        (
            f"{_SCALE} %g = arith.mulf %f, %k : f64 %q = arith.fptosi %g : f64 to i64 "
            "%h = arith.sitofp %q : i64 to f64 %r = arith.mulf %c, %h : f64"
        ),
        (
            f"{_SCALE} %g = arith.mulf %f, %k : f64 %h = arith.minimumf %g, %c : f64 "
            "%r = arith.addf %h, %c : f64"
        ),
        (
            f"{_SCALE} %g = arith.subf %k, %f : f64 %h = math.sqrt %g : f64 "
            "%r = arith.mulf %h, %c : f64"
        ),
        f"{_SCALE} %g = arith.mulf %f, %f : f64 %r = arith.mulf %g, %c : f64",
        (
            "%t = arith.constant true %s = arith.select %t, %i, %i : i64 "
            "%j = arith.trunci %s : i64 to i8 %f = arith.sitofp %j : i8 to f64 "
            "%r = arith.mulf %c, %f : f64"
        ),
    ],
)
def test_coordinates_that_act_far_away_keep_extents(text: str) -> None:
    module = parse_module(_elements(text))
    assert _shape(reduce_sizes(module, module)) == (4_000_000,)


@pytest.mark.parametrize(
    "text",
    [
        f"{_SCALE} %g = arith.mulf %f, %k : f64 %r = arith.mulf %c, %g : f64",
        f"{_SCALE} %g = arith.divf %f, %k : f64 %r = math.cos %g : f64",
        (
            "%j = arith.trunci %i : i64 to i32 %f = arith.sitofp %j : i32 to f64 "
            "%r = arith.mulf %c, %f : f64"
        ),
    ],
)
def test_coordinates_that_act_alike_everywhere_shrink(text: str) -> None:
    module = parse_module(_elements(text))
    assert _shape(reduce_sizes(module, module))[0] < 32


def _mean(cells: int, text: str) -> str:
    return _main(
        {"x": _tensor(cells, 40)},
        f"%y = loom.operation @mean over <[0, 0] : [40, {cells}]> [map, fold] by @add "
        "ins(%x : (d0, d1) -> (d1, d0)) outs((d0) -> (d0)) "
        "wrap (%c: f64) { loom.yield %c : f64 } unwrap (%s: f64) { "
        f"{text} loom.yield %r : f64 }} : ({_tensor(cells, 40)}) -> {_tensor(40)}",
        y=_tensor(40),
    )


def test_the_n_of_a_mean_follows_its_extent() -> None:
    divided = _mean(96, "%n = arith.constant 96.0 : f64 %r = arith.divf %s, %n : f64")
    times = _mean(96, f"%n = arith.constant {1 / 96!r} : f64 %r = arith.mulf %s, %n : f64")
    assert _shape(_reduced(divided, times)) == (6, 5)
    assert _shape(_reduced(divided, times, literals="pin")) == (96, 5)


def test_a_literal_pins_the_extent_it_could_stand_for() -> None:
    root = _mean(64, "%n = arith.constant 0.125 : f64 %r = arith.mulf %s, %n : f64")
    assert _shape(_reduced(root, root, literals="pin")) == (64, 5)


def test_an_unknown_property_keeps_extents() -> None:
    module = parse_module(_sum_program(0, 44, 44))
    (op,) = _operations(module)
    op.properties["later"] = op.label
    reduced = reduce_sizes(module, module)
    assert _shape(reduced) == (44,)
    assert not reduced.is_smaller


def test_extents_of_unrelated_dimensions_do_not_divide_each_other() -> None:
    x, w, y = _tensor(96, 96), _tensor(96, 96), _tensor(96, 96)
    body = f"%y = weft.apply @matmul(%x, %w) : ({x}, {w}) -> {y}"
    program = _main({"x": x, "w": w}, body, y=y)
    for seed in (0, 1):
        reduced = _reduced(program, program, seed=seed)
        extents = {*_shape(reduced), *_shape(reduced, "w")}
        assert len(extents) == 3
        assert not any(p != q and p % q == 0 for p in extents for q in extents)


def test_two_seeds_give_two_sizes() -> None:
    program = _sum_program(0, 64, 64)
    assert _shape(_reduced(program, program)) != _shape(_reduced(program, program, seed=1))


def test_programs_over_other_arguments_are_left_alone() -> None:
    a, b = parse_module(_sum_program(0, 44, 44)), parse_module(_sum_program(0, 45, 45))
    reduced = reduce_sizes(a, b)
    assert reduced.reason == "the programs have different arguments"
    assert (reduced.a, reduced.b) == (a, b)

"""What smaller sizes keep of coordinates: borders of masks and domains, and what acts far away."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_module
from tapestry.proving.reduction import reduce_sizes
from tests.proving.reducing import (
    main,
    reduce_both,
    run_all,
    shape_of,
    tensor,
)


def _masked(condition: str, rows: int, columns: int) -> str:
    """The row sums of a matrix where a condition on %i and %j holds."""
    return main(
        {"x": tensor(rows, columns)},
        f"%y = loom.operation @mask over <[0, 0] : [{rows}, {columns}]> [map, fold] by @add "
        "ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) wrap (%c: f64) { "
        f"%i = loom.index 0 : i64 %j = loom.index 1 : i64 {condition} "
        "%z = arith.constant 0.0 : f64 %r = arith.select %m, %c, %z : f64 loom.yield %r : f64 } "
        f": ({tensor(rows, columns)}) -> {tensor(rows)}",
        y=tensor(rows),
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
    reduced = reduce_both(right, right, "loom-shard{grid=4,4},loom-expand-shards")
    assert max(shape_of(reduced)) < 32
    reduce_both(right, _masked(_against(wrong, "sge"), rows, columns), equal=False)
    reduce_both(right, _masked(_against(constant, "sgt"), rows, columns), equal=False)
    # The mask is neither everywhere nor nowhere.
    (y,) = run_all(reduced.a, {"x": np.ones(shape_of(reduced))})
    assert 0 < y.sum() < np.prod(shape_of(reduced))


def _over(domain: str, rows: int, columns: int) -> str:
    """The row sums of a matrix over a domain."""
    return main(
        {"x": tensor(rows, columns)},
        f"%y = loom.operation @inside over <[0, 0] : [{rows}, {columns}]> [map, fold] by @add "
        f"ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain({domain}) "
        "wrap (%c: f64) { loom.yield %c : f64 } "
        f": ({tensor(rows, columns)}) -> {tensor(rows)}",
        y=tensor(rows),
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
    assert max(shape_of(reduce_both(right, right, sharded))) < 32
    reduce_both(right, _over(wrong, 64, 64), equal=False)
    # A domain and a mask that say the same stay the same.
    reduce_both(right, _masked(condition, 64, 64))


@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge", "eq", "ne"])
@pytest.mark.parametrize("length", [1, 16, 40, 63])
def test_a_straight_border_keeps_its_place(predicate: str, length: int) -> None:
    condition = f"%k = arith.constant {length} : i64 %m = arith.cmpi {predicate}, %j, %k : i64"
    right = _masked(condition, 5, 64)
    reduced = reduce_both(right, right, "loom-shard{grid=1,4}")
    assert shape_of(reduced)[1] < 32
    wrong = condition.replace(str(length), str(length - 1))
    reduce_both(right, _masked(wrong, 5, 64), equal=False)


def test_coordinates_of_digits_shrink() -> None:
    """A mask on a flat coordinate, and the same written with the digits of a reshape."""
    flat, split = tensor(96), tensor(6, 16)
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
    one, other = (main({"x": flat}, text, y=split) for text in (body, digits))
    reduced = reduce_both(one, other)
    assert shape_of(reduced)[0] < 96
    reduce_both(one, main({"x": flat}, digits.replace("40", "41"), y=split), equal=False)


def test_arithmetic_that_is_not_affine_keeps_extents() -> None:
    condition = (
        "%w = arith.constant 16 : i64 %p = arith.divsi %j, %w : i64 %q = arith.divsi %i, %w : i64 "
        "%m = arith.cmpi eq, %p, %q : i64"
    )
    program = _masked(condition, 64, 64)
    assert shape_of(reduce_both(program, program)) == (64, 64)


def _elements(text: str) -> str:
    """A body over the coordinate %i of a vector too long to run."""
    cells = tensor(4_000_000)
    return main(
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
    assert shape_of(reduce_sizes(module, module)) == (4_000_000,)


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
    assert shape_of(reduce_sizes(module, module))[0] < 32

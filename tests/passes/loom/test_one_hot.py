"""One-hot folds and reads of blocks are one thing: embeddings split along the vocabulary."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.passes.loom.rebuilding.bodies import kind
from tapestry.runtime.running import run
from tests.runtime.everywhere import agree

RNG = np.random.default_rng(0)

EMBEDDING = """
!ids = !loom.tensor<[0] : [6], i32>
!table = !loom.tensor<[3, 0] : [14, 5], f32>
!y = !loom.tensor<[0, 0] : [6, 5], f32>
func.func @main(%ids: !ids, %table: !table) -> !y {
  %y = loom.operation @embed over <[0, 0] : [6, 5]> [map, map]
         ins(%ids : (i, d) -> (i), %table : (i, d) -> (3, d) :> [11, 1])
         outs((i, d) -> (i, d))
         wrap (%id: i32, %rows: !loom.block<[11, 1], f32>) {
           %at = arith.extsi %id : i32 to i64
           %zero = arith.constant 0 : i64
           %none = arith.constant 0.0 : f32
           %v = loom.read %rows[%at, %zero] else %none : f32
           %f = arith.sitofp %id : i32 to f32
           %s = arith.addf %v, %f : f32
           loom.yield %s : f32
         } : (!ids, !table) -> !y
  func.return %y : !y
}"""


def operation(module):
    (found,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    return found


def test_embeddings_split_along_the_vocabulary():
    ids = np.array([0, 10, 4, -1, 11, 4], "i4")
    table = RNG.normal(size=(11, 5)).astype("f4")
    found = (ids >= 0) & (ids < 11)
    want = np.where(found[:, None], table[np.clip(ids, 0, 10)], 0) + ids[:, None]
    split = "loom-read-to-fold,loom-shard{grid=2,1,3}"
    module = parse_module(EMBEDDING)
    run_pipeline(module, split + ",loom-expand-shards")
    partial = [op for op in module.walk() if isinstance(op, loom.ApplicationOp) and op.is_partial]
    rows = {str(op.selections.data[1].data) for op in partial}
    assert rows == {"[3, 0] : [7, 5]", "[7, 0] : [11, 5]", "[11, 0] : [14, 5]"}
    agree(
        EMBEDDING,
        {"ids": ids, "table": table},
        [want],
        pipelines=[split, "loom-read-to-fold,loom-fold-to-read,loom-shard{shards=3}"],
        tolerance=1e-6,
    )


def test_the_passes_are_inverses():
    module = parse_module(EMBEDDING)
    read = kind(operation(module))
    run_pipeline(module, "loom-read-to-fold")
    fold = kind(operation(module))
    run_pipeline(module, "loom-fold-to-read,loom-simplify")
    assert kind(operation(module)) == read
    run_pipeline(module, "loom-read-to-fold")
    assert kind(operation(module)) == fold


BAG = """
!ids = !loom.tensor<[0, 0] : [4, 3], i64>
!t = !loom.tensor<[0, 0] : [9, 5], {element}>
!y = !loom.tensor<[0, 0] : [4, 5], {element}>
func.func @main(%ids: !ids, %t: !t) -> !y {{
  %y = loom.operation @bag over <[0, 2, 0, 0] : [4, 7, 9, 3]> [map, map, fold, fold] by {monoid}
         ins(%ids : (b, k, v, j) -> (b, j), %t : (b, k, v, j) -> (v, k - 2))
         outs((b, k) -> (b, k - 2))
         wrap (%id: i64, %cell: {element}) {{
           %at = loom.index 2 : i64
           %here = arith.cmpi eq, %at, %id : i64
           %zero = arith.constant {zero} : {element}
           %v = arith.select %here, %cell, %zero : {element}
           loom.yield %v : {element}
         }}
         unwrap (%s: {element}) {{
           %k = loom.index 1 : i64
           %two = arith.constant 2 : i64
           %c = arith.subi %k, %two : i64
           %n = arith.{cast} %c : i64 to {element}
           %r = arith.{add} %s, %n : {element}
           loom.yield %r : {element}
         }} : (!ids, !t) -> !y
  func.return %y : !y
}}"""


def bag(monoid="@add", zero="0.0", element="f32"):
    add, cast = ("addi", "trunci") if element[0] == "i" else ("addf", "sitofp")
    return BAG.format(monoid=monoid, zero=zero, element=element, add=add, cast=cast)


@pytest.mark.parametrize(("monoid", "zero"), [("@add", "0.0"), ("@max", "0xFF800000")])
def test_a_fold_that_remains_folds_what_is_read(monoid, zero):
    ids = np.array([[0, 8, 8], [3, -1, 2], [9, 9, 9], [1, 2, 3]])
    t = RNG.normal(size=(9, 5)).astype("f4")
    found = (ids >= 0) & (ids < 9)
    cells = np.where(found[..., None], t[np.clip(ids, 0, 8)], 0 if monoid == "@add" else -np.inf)
    folded = cells.sum(1) if monoid == "@add" else cells.max(1)
    text = bag(monoid, zero)
    want = folded + np.arange(5)
    agree(text, {"ids": ids, "t": t}, [want], pipelines=["loom-fold-to-read"], tolerance=1e-5)
    module = parse_module(text)
    run_pipeline(module, "loom-fold-to-read")
    assert operation(module).kinds == ("map", "map", "fold")
    run_pipeline(module, "loom-read-to-fold")
    assert operation(module).kinds == ("map", "map", "fold", "fold")
    (got,) = run(module, {"ids": ids, "t": t}).outputs
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        ("%zero = arith.constant 0.0", "%zero = arith.constant 1.0"),
        ("arith.cmpi eq", "arith.cmpi sle"),
        ("(v, k - 2)", "(8 - v, k - 2)"),
        ("-> (b, j)", "-> (b, v)"),
    ],
)
def test_what_is_not_one_hot_stays(change):
    old, new = change
    text = bag().replace("[4, 3], i64", "[4, 9], i64")
    assert old in text
    text = text.replace(old, new)
    module = parse_module(text)
    before = str(module)
    run_pipeline(module, "loom-fold-to-read")
    assert str(module) == before


def test_an_order_that_matters_is_kept():
    # `last` keeps the later of two values; the vocabulary is visited before the position.
    last = """loom.monoid @last zero [0.0 : f32] merge (%a: f32, %b: f32) {
      %none = arith.constant 0.0 : f32
      %skip = arith.cmpf oeq, %b, %none : f32
      %r = arith.select %skip, %a, %b : f32
      loom.yield %r : f32
    }"""
    module = parse_module(last + bag("@last"))
    run_pipeline(module, "loom-fold-to-read")
    assert not [op for op in module.walk() if isinstance(op, loom.ReadOp)]


def test_options_name_what_exists():
    for option in ("by=nonsense", "op=nobody"):
        with pytest.raises(UsageError, match="loom-read-to-fold: there is no"):
            run_pipeline(parse_module(EMBEDDING), f"loom-read-to-fold{{{option}}}")


@pytest.mark.parametrize("there", ["loom-fold-to-read", "loom-read-to-fold"])
def test_members_of_groups_keep_their_dimensions(there: str):
    """A group names the dimensions of its members: to fold one away would part them."""
    row = "!loom.tensor<[0] : [6], f32>"
    summed = f"""%z = loom.operation @sum over <[0, 0] : [6, 5]> [map, fold] by @add
      ins(%y : (i, d) -> (i, d)) outs((i) -> (i))
      wrap (%a: f32) {{ loom.yield %a : f32 }} : (!y) -> {row}
      func.return %z : {row}"""
    text = EMBEDDING.replace("-> !y {", f"-> {row} {{").replace("func.return %y : !y", summed)
    module = parse_module(text)
    first = "" if there == "loom-read-to-fold" else "loom-read-to-fold,"
    run_pipeline(module, f"{first}loom-group")
    (group,) = [op for op in module.walk() if isinstance(op, loom.FusedOp)]
    before = str(group)
    run_pipeline(module, there)
    assert str(group) == before

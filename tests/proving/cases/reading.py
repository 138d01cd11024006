"""Blocks read at computed indices, domains, random numbers."""

from __future__ import annotations

from tests.proving.building import Program
from tests.proving.cases import Family
from tests.proving.cases.contractions import embedding

ROWS = """
!t = !loom.tensor<[0] : [4], i64>
!w = !loom.tensor<[0, 0] : [5, 3], f32>
!y = !loom.tensor<[0, 0] : [4, 3], f32>
func.func @main(%t: !t, %w: !w) -> !y {
  %y = loom.operation @embedding over <[0, 0] : [4, 3]> [map, map]
         ins(%t : (d0, d1) -> (d0), %w : (d0, d1) -> (0, d1) :> [5, 1]) outs((d0, d1) -> (d0, d1))
         wrap (%i: i64, %b: !loom.block<[5, 1], f32>) {
           %zero = arith.constant 0 : i64
           %none = arith.constant 0.0 : f32
           %v = loom.read %b[%i, %zero] else %none : f32
           loom.yield %v : f32
         } : (!t, !w) -> !y
  func.return %y : !y
}
"""
GATHER = Family(
    "gather",
    ROWS,
    {"as a masked fold": embedding()},
    {
        "of the next row": ROWS.replace("[%i, %zero]", "[%j, %zero]").replace(
            "%v =", "%one = arith.constant 1 : i64  %j = arith.addi %i, %one : i64  %v ="
        ),
        "of the first row": ROWS.replace("[%i, %zero]", "[%zero, %zero]"),
        "with ones outside": ROWS.replace("constant 0.0", "constant 1.0"),
    },
)

STRICT = ROWS.replace(" else %none", "")
CHECKED = Family(
    "checked gather",
    STRICT,
    {"as a masked fold": embedding()},
    {"as a masked fold, off by one": embedding("where(i2 == b + 1, a, 0.0)")},
)


def attention_sum(domain: str = "", wrap: str = "a", by: str = "add") -> str:
    p = Program(x=(5, 6))
    text = p.returns(p.op((5, 6), "mf", ["x[d0, d1]"], wrap, by=by))
    return text.replace(" wrap ", f" domain({domain}) wrap ") if domain else text


DOMAIN = Family(
    "sum over a triangle",
    attention_sum("d0 - d1 >= 0"),
    {
        "masked": attention_sum(wrap="where(i0 >= i1, a, 0.0)"),
        "with a row that always holds": attention_sum("d0 - d1 >= 0, d0 >= 0"),
    },
    {
        "edge off by one": attention_sum("d0 - d1 - 1 >= 0"),
        "everything": attention_sum(),
        "the other triangle": attention_sum("d1 - d0 >= 0"),
        "masked the other way": attention_sum(wrap="where(i0 > i1, a, 0.0)"),
    },
)


def noisy(seed: int = 7, counter: str = "%i") -> str:
    return f"""
!x = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !x {{
  %y = loom.operation @noise over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) {{
           %i = loom.index 0 : i64
           %seven = arith.constant 7 : i64
           %j = arith.subi %seven, %i : i64
           %s = arith.constant {seed} : i64
           %r = loom.random word 0 of %s, {counter} : i32
           %f = arith.sitofp %r : i32 to f32
           %big = arith.constant 4294967296.0 : f32
           %u = arith.divf %f, %big : f32
           %v = arith.addf %c, %u : f32
           loom.yield %v : f32
         }} : (!x) -> !x
  func.return %y : !x
}}
"""


RANDOM = Family(
    "noise",
    noisy(),
    {
        "times a reciprocal": noisy()
        .replace(
            "%big = arith.constant 4294967296.0", "%big = arith.constant 2.3283064365386963e-10"
        )
        .replace("divf", "mulf")
    },
    {"of another seed": noisy(8), "of other counters": noisy(counter="%j")},
)

FAMILIES = [GATHER, CHECKED, DOMAIN, RANDOM]

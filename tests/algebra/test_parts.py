"""What the parts of a state and the outputs of a map-fold vary along."""

from __future__ import annotations

import pytest

from tapestry.algebra.parts import output_axes, varying_axes
from tapestry.dialects import loom
from tapestry.frontend import parse_text, verify_module

_PAIR = """
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32]
  merge (%a: f32, %b: f32, %c: f32, %d: f32) {
    %x = arith.addf %a, %c : f32
    %y = arith.addf %b, %d : f32
    loom.yield %x, %y : f32, f32
  }
loom.monoid @scaled commutative zero [0xFF800000 : f32, 0.0 : f32]
  merge (%m0: f32, %o0: f32, %m1: f32, %o1: f32) {
    %m = arith.maximumf %m0, %m1 : f32
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.cmpf oeq, %m, %low : f32
    %ref = arith.select %none, %zero, %m : f32
    %d0 = arith.subf %m0, %ref : f32
    %a0 = math.exp %d0 : f32
    %d1 = arith.subf %m1, %ref : f32
    %a1 = math.exp %d1 : f32
    %x0 = arith.mulf %o0, %a0 : f32
    %x1 = arith.mulf %o1, %a1 : f32
    %o = arith.addf %x0, %x1 : f32
    loom.yield %m, %o : f32, f32
  }
"""

_BOTH = "loom.yield %a, %b : f32, f32"


def _operation(
    monoid: str, kinds: str, body: str, *, ins: tuple[str, str], more: str = ""
) -> loom.OperationOp:
    """A fold along j of two tensors, from (i, j, d) to two outputs over (i, d)."""
    ranks = [text.count(",") + 1 if text else 0 for text in ins]
    x, y = (f"!loom.tensor<{[0] * r} : {[4] * r}, f32>" for r in ranks)
    kept = [name for name, kind in zip("ijd", kinds.split(", "), strict=True) if kind != "fold"]
    dims = ", ".join(kept)
    out = f"!loom.tensor<{[0] * len(kept)} : {[4] * len(kept)}, f32>"
    module = parse_text(f"""{_PAIR}
func.func @main(%x: {x}, %y: {y}) -> ({out}, {out}) {{
  %o:2 = loom.operation @o over <[0, 0, 0] : [4, 4, 4]> [{kinds}] by @{monoid}
         ins(%x : (i, j, d) -> ({ins[0]}), %y : (i, j, d) -> ({ins[1]}))
         outs(({dims}) -> ({dims}), ({dims}) -> ({dims})) {more}
         wrap (%a: f32, %b: f32) {{ {body} }} : ({x}, {y}) -> ({out}, {out})
  func.return %o#0, %o#1 : {out}, {out}
}}""")
    verify_module(module)
    (op,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    return op


def test_a_part_varies_along_what_it_is_wrapped_of() -> None:
    op = _operation("pair", "map, fold, map", _BOTH, ins=("i, j", "j, d"))
    assert varying_axes(op) == ((0,), (1,))
    assert output_axes(op) == ((0,), (1,))


def test_a_part_varies_along_what_merging_it_reads() -> None:
    op = _operation("scaled", "map, fold, map", _BOTH, ins=("i, j", "j, d"))
    assert varying_axes(op) == ((0,), (0, 1))
    # The other way round, the first part brings d along.
    op = _operation("scaled", "map, fold, map", _BOTH, ins=("j, d", "i, j"))
    assert varying_axes(op) == ((1,), (0, 1))


def test_parts_of_the_same_everywhere() -> None:
    op = _operation("pair", "map, fold, map", _BOTH, ins=("j", ""))
    assert varying_axes(op) == ((), ())


@pytest.mark.parametrize(
    ("row", "axes"), [("i - j >= 0", ((0,), (0, 1))), ("d - 1 >= 0", ((0, 1), (1,)))]
)
def test_a_domain_decides_what_every_part_counts(
    row: str, axes: tuple[tuple[int, ...], ...]
) -> None:
    text = row.replace("i", "d0").replace("j", "d1") if "i" in row else row.replace("d", "d2")
    op = _operation("pair", "map, fold, map", _BOTH, ins=("i, j", "j, d"), more=f"domain({text})")
    assert varying_axes(op) == axes


def test_coordinates_and_random_numbers_move() -> None:
    at = """%i = loom.index 2 : i64  %bits = loom.random word 0 of %i, %i : i32
            %r = arith.sitofp %bits : i32 to f32  loom.yield %a, %r : f32, f32"""
    op = _operation("pair", "map, fold, map", at, ins=("i, j", "j"))
    assert varying_axes(op) == ((0,), (1,))


def test_a_scan_keeps_a_state_per_coordinate() -> None:
    op = _operation("pair", "map, scan, map", _BOTH, ins=("i", "d"))
    assert varying_axes(op) == ((0, 1), (1, 2))


def test_unwrap_and_its_extra_inputs() -> None:
    x, b, y = (f"!loom.tensor<[0{', 0' * n}] : [4{', 4' * n}], f32>" for n in (1, 0, 1))
    op = next(
        op
        for op in parse_text(f"""
func.func @main(%x: {x}, %b: {b}) -> {y} {{
  %y = loom.operation @y over <[0, 0, 0] : [4, 4, 4]> [map, fold, map] by @add
         ins(%x : (i, j, d) -> (i, j)) extra(%b : (i, d) -> (d)) outs((i, d) -> (i, d))
         wrap (%c: f32) {{ loom.yield %c : f32 }}
         unwrap (%s: f32, %e: f32) {{ %r = arith.addf %s, %e : f32  loom.yield %r : f32 }}
         : ({x}, {b}) -> {y}
  func.return %y : {y}
}}""").walk()
        if isinstance(op, loom.OperationOp)
    )
    assert varying_axes(op) == ((0,),)
    assert output_axes(op) == ((0, 1),)

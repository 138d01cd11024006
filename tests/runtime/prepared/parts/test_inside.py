"""Parts as far as their points count."""

from __future__ import annotations

from tapestry.dialects import loom
from tapestry.frontend import parse_text
from tapestry.runtime.prepared.parts.inside import Insides
from tapestry.zspace import AffineMap, Range


def _insides(rows: str) -> Insides:
    (op,) = [
        op
        for op in parse_text(f"""
          func.func @main(%x: !loom.tensor<[0, 0] : [64, 64], f32>)
              -> !loom.tensor<[0] : [64], f32> {{
            %y = loom.operation @sum over <[0, 0] : [64, 64]> [map, fold] by @add
                   ins(%x : (i, k) -> (i, k)) outs((i) -> (i)) {rows}
                   wrap (%a: f32) {{ loom.yield %a : f32 }}
                   : (!loom.tensor<[0, 0] : [64, 64], f32>) -> !loom.tensor<[0] : [64], f32>
            func.return %y : !loom.tensor<[0] : [64], f32>
          }}
        """).walk()
        if isinstance(op, loom.OperationOp)
    ]
    return Insides.of(op.index, [(op, AffineMap.identity(2))], op.outs)


def test_rows_see_what_is_before_them_in_steps() -> None:
    insides = _insides("domain(d0 - d1 >= 0)")
    assert insides.shrunk(Range((0, 0), (4, 64))) == Range((0, 0), (4, 8))
    assert insides.shrunk(Range((30, 0), (34, 64))) == Range((30, 0), (34, 40))


def test_a_window_moves_with_its_rows() -> None:
    insides = _insides("domain(d0 - d1 >= 0, d1 - d0 + 3 >= 0)")
    assert insides.shrunk(Range((32, 0), (34, 64))) == Range((32, 24), (34, 40))


def test_a_part_in_which_nothing_counts_has_a_point() -> None:
    insides = _insides("domain(d0 - d1 - 32 >= 0)")
    part = insides.shrunk(Range((0, 0), (4, 64)))
    assert part == Range((0, 0), (4, 8))
    assert insides.kind(part) != insides.kind(Range((60, 0), (64, 8)))


def test_without_a_domain_all_counts() -> None:
    part = Range((0, 0), (4, 64))
    assert _insides("").shrunk(part) == part

"""Which inputs an operation takes to be finite, from what is noted on it."""

from __future__ import annotations

import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_module
from tapestry.passes.triton.kernels.mapfold import map_fold_of

_TEXT = """
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
func.func @main(%{first}: !x, %{second}: !x) -> !y {{
  %s = loom.operation @fold over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%{first} : (i, j) -> (i, j), %{second} : (i, j) -> (i, j)) outs((i) -> (i))
         domain(d0 - d1 >= 0)
         wrap (%a: f32, %b: f32) {{ %p = arith.mulf %a, %b : f32  loom.yield %p : f32 }}
         {{assumes = ["finite(v)", "nonzero(w)"]}} : (!x, !x) -> !y
  func.return %s : !y
}}
"""


@pytest.mark.parametrize(
    ("first", "second", "finite"),
    [("v", "w", {"v"}), ("u", "w", set()), ("v", "v_1", set())],
    ids=["noted", "of another", "of one of two"],
)
def test_a_note_is_of_the_one_input_of_its_name(first: str, second: str, finite: set[str]) -> None:
    module = parse_module(_TEXT.format(first=first, second=second))
    [op] = [one for one in module.walk() if isinstance(one, loom.OperationOp)]
    assert map_fold_of(op).finite == finite


def test_a_note_is_of_an_input_however_often_it_is_read() -> None:
    text = _TEXT.format(first="v", second="w").replace(
        "%w : (i, j) -> (i, j)", "%v : (i, j) -> (j, i)"
    )
    square = text.replace("[4, 8]", "[4, 4]")
    [op] = [one for one in parse_module(square).walk() if isinstance(one, loom.OperationOp)]
    assert map_fold_of(op).finite == {"v"}


_STORED = """
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
func.func @main(%v: !x, %w: !x, %x: !x) -> !y {{
  %m = loom.operation @factor over <[0, 0] : [4, 8]> [map, map]
         ins(%v : (i, j) -> (i, j), %{other} : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) {{ %p = arith.addf %a, %b : f32  loom.yield %p : f32 }}
         : (!x, !x) -> !x
  %s = loom.operation @fold over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%m : (i, j) -> (i, j), %{read} : (i, j) -> (i, j)) outs((i) -> (i))
         domain(d0 - d1 >= 0)
         wrap (%a: f32, %b: f32) {{ %p = arith.mulf %a, %b : f32  loom.yield %p : f32 }}
         {{assumes = ["finite(v)", "finite(w)"]}} : (!x, !x) -> !y
  func.return %s : !y
}}
"""


@pytest.mark.parametrize(
    ("other", "read", "finite"),
    [("w", "x", {"m"}), ("x", "w", {"w"}), ("w", "v", {"m", "v"})],
    ids=["of noted ones", "of another besides", "and read itself"],
)
def test_what_a_map_makes_of_noted_inputs_is_as_they_are(
    other: str, read: str, finite: set[str]
) -> None:
    module = parse_module(_STORED.format(other=other, read=read))
    *_, op = (one for one in module.walk() if isinstance(one, loom.OperationOp))
    assert map_fold_of(op).finite == finite


@pytest.mark.parametrize(
    ("computed", "clip", "finite"),
    [
        ("%p = math.exp %a : f32", "", True),
        ("%p = math.log %a : f32", "", False),
        ("%p = arith.divf %a, %b : f32", "", False),
        ("%p = arith.mulf %a, %b : f32", " clip 0.000000e+00 : f32", True),
        ("%p = arith.mulf %a, %b : f32", " clip 0xff800000 : f32", False),
        ("%c = arith.constant 0xff800000 : f32 %p = arith.addf %a, %c : f32", "", False),
    ],
    ids=["exponential", "logarithm", "quotient", "zeros beside", "infinity beside", "infinity"],
)
def test_what_has_poles_is_not_taken_to_be_finite(computed: str, clip: str, finite: bool) -> None:
    text = _STORED.format(other="w", read="x").replace("%p = arith.addf %a, %b : f32", computed)
    text = text.replace("ins(%v : (i, j) -> (i, j),", f"ins(%v : (i, j) -> (i, j){clip},", 1)
    *_, op = (one for one in parse_module(text).walk() if isinstance(one, loom.OperationOp))
    assert map_fold_of(op).finite == ({"m"} if finite else set())

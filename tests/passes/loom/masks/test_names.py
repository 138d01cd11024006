"""What is noted by name is of one value, also where two operations become one."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.passes.loom.masks.names import Names
from tapestry.passes.triton.kernels.mapfold import map_fold_of

_TEXT = """
!x = !loom.tensor<[0, 0] : [8, 8], f32>
!y = !loom.tensor<[0] : [8], f32>
func.func @main(%a: !x, %b: !x, %w: !x) -> (!y, !y) {
  %m = loom.operation @one over <[0, 0] : [8, 8]> [map, fold] by @max
         ins(%a : (i, j) -> (j, i)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %m_1 = loom.operation @other over <[0, 0] : [8, 8]> [map, fold] by @min
         ins(%b : (i, j) -> (j, i)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %s = loom.operation @first over <[0, 0] : [8, 8]> [map, fold] by @add
         ins(%w : (i, j) -> (i, j), %m : (i, j) -> (j)) outs((i) -> (i))
         wrap (%c: f32, %d: f32) {
           MASK
           loom.yield %r : f32 } : (!x, !y) -> !y
  %t = loom.operation @second over <[0, 0] : [8, 8]> [map, fold] by @add
         ins(%w : (i, j) -> (i, j), %m_1 : (i, j) -> (j)) outs((i) -> (i))
         wrap (%c: f32, %d: f32) {
           MASK
           loom.yield %r : f32 } : (!x, !y) -> !y
  func.return %s, %t : !y, !y
}
"""

_MASK = """
%i = loom.index 0 : i64
%j = loom.index 1 : i64
%seen = arith.cmpi sge, %i, %j : i64
%none = arith.constant 0.0 : f32
%k = arith.select %seen, %c, %none : f32
%r = arith.mulf %k, %d : f32
"""


def _values(module: ModuleOp) -> list[SSAValue]:
    return [op.outs[0] for op in module.walk() if isinstance(op, loom.OperationOp)]


def _main(module: ModuleOp) -> func.FuncOp:
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    return main


def test_operations_that_become_one_note_of_which_value() -> None:
    module = parse_module(_TEXT.replace("MASK", _MASK))
    run_pipeline(module, "loom-mask-to-domain")
    one, other, *_ = _values(module)
    assert (one.name_hint, other.name_hint) != ("m", "m")
    run_pipeline(module, "loom-fuse{kinds=keep,beside}")
    folds = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.inside]
    (joined,) = folds
    names = {value.name_hint for value in joined.ins}
    assert len(names) == 3
    assert map_fold_of(joined).finite >= {one.name_hint, other.name_hint}


def test_who_comes_first_keeps_its_name() -> None:
    module = parse_module(_TEXT.replace("MASK", _MASK))
    one, other, *_ = _values(module)
    names = Names.of(_main(module))
    assert not names.tell_apart([one])
    assert names.tell_apart([other])
    assert (one.name_hint, other.name_hint) == ("m", "m2")
    assert not names.tell_apart([one, other])


def test_what_takes_the_place_of_a_value_may_have_its_name() -> None:
    module = parse_module(_TEXT.replace("MASK", _MASK))
    one, other, *_ = _values(module)
    names = Names.of(_main(module))
    names.tell_apart([one])
    one.replace_all_uses_with(other)
    assert not names.tell_apart([other])
    assert other.name_hint == "m"


def test_arguments_keep_the_names_that_people_give_them_by() -> None:
    module = parse_module(_TEXT.replace("MASK", _MASK))
    one, *_ = _values(module)
    one.name_hint = "w"
    assert Names.of(_main(module)).tell_apart([one])
    assert one.name_hint == "w2"

"""What is noted by name is of one value, also where two operations become one."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

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


def _block(module: ModuleOp) -> Block:
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    return main.body.block


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


def test_what_shares_its_name_has_one_of_its_own() -> None:
    module = parse_module(_TEXT.replace("MASK", _MASK))
    one, other, *_ = _values(module)
    names = Names.of(_block(module))
    assert names.tell_apart([one])
    assert (one.name_hint, other.name_hint) == ("m2", "m")
    # Nothing is noted of the other one, which may be read beside it some day.
    assert not names.tell_apart([one])
    assert names.tell_apart([other])
    assert other.name_hint == "m3"


def test_arguments_keep_the_names_that_people_give_them_by() -> None:
    module = parse_module(_TEXT.replace("MASK", _MASK))
    one, *_ = _values(module)
    one.name_hint = "w"
    names = Names.of(_block(module))
    *_, argument = _block(module).args
    assert not names.tell_apart([argument])
    assert names.tell_apart([one])
    assert (argument.name_hint, one.name_hint) == ("w", "w2")


def test_a_note_is_not_of_what_nothing_was_noted_of() -> None:
    """The first operation reads `m`, of which it notes something; the second another `m`."""
    text = _TEXT.replace("MASK", _MASK, 1).replace("MASK", "%r = arith.mulf %c, %d : f32")
    module = parse_module(text)
    run_pipeline(module, "loom-mask-to-domain,loom-fuse{kinds=keep,beside}")
    one, other, *_ = _values(module)
    for op in module.walk():
        if isinstance(op, loom.OperationOp) and op.fold_dims:
            assert other.name_hint not in map_fold_of(op).finite
    assert one.name_hint != other.name_hint

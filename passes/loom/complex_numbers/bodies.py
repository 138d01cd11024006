"""Bodies over complex numbers, made to hold two real numbers for each.

    wrap (%c: complex<f32>) {                  wrap (%c_re: f32, %c_im: f32) {
      %v = complex.conj %c : complex<f32>        %0 = arith.negf %c_im : f32
      loom.yield %v : complex<f32>               loom.yield %c_re, %0 : f32, f32
    }                                          }

A value that was complex is a cast of its parts (`builtin.unrealized_conversion_cast`) until all who
use it take the parts; then the cast is dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import AnyFloat, ComplexType, FloatAttr, UnrealizedConversionCastOp, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.dialects.loom import BlockType, TensorType
from tapestry.passes.loom.complex_numbers import scalars
from tapestry.passes.loom.complex_numbers.scalars import Complex, Reals

PARTS = ("re", "im")


def part_type(kind: Attribute) -> Attribute | None:
    """The type of one part of a complex number, or of the cells' parts; None of what is real."""
    match kind:
        case ComplexType():
            return cast("ComplexType[AnyFloat]", kind).element_type
        case TensorType():
            part = part_type(kind.element_type)
            return None if part is None else TensorType.of(kind.box, part)
        case BlockType():
            part = part_type(kind.element_type)
            return None if part is None else BlockType.of(kind.shape, part)
        case _:
            return None


def is_split(value: SSAValue) -> bool:
    """Whether a value is complex: it becomes two."""
    return part_type(value.type) is not None


def parts_of(value: SSAValue) -> Complex:
    """The two parts of a complex value whose definition has been split already."""
    owner = value.owner
    assert isinstance(owner, UnrealizedConversionCastOp)
    real, imaginary = owner.inputs
    return real, imaginary


def flat(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Values in order, the parts of each complex one in its place."""
    return [part for value in values for part in (parts_of(value) if is_split(value) else (value,))]


def flat_types(kinds: Sequence[Attribute]) -> list[Attribute]:
    """Types in order, that of a part twice for each complex one."""
    found: list[Attribute] = []
    for kind in kinds:
        part = part_type(kind)
        found += [kind] if part is None else [part, part]
    return found


def joined(parts: Complex, old: SSAValue) -> UnrealizedConversionCastOp:
    """The complex value of two parts, which are named after the value that it replaces."""
    for part, suffix in zip(parts, PARTS, strict=True):
        if part.name_hint is None and old.name_hint is not None:
            part.name_hint = f"{old.name_hint}_{suffix}"
    return UnrealizedConversionCastOp(operands=[list(parts)], result_types=[[old.type]])


def rejoined(
    old: Sequence[SSAValue], new: Sequence[SSAValue]
) -> tuple[list[UnrealizedConversionCastOp], list[SSAValue]]:
    """For values in order and their flat counterparts: the casts, and what replaces each."""
    casts: list[UnrealizedConversionCastOp] = []
    replaced: list[SSAValue] = []
    rest = iter(new)
    for value in old:
        if is_split(value):
            casts.append(joined((next(rest), next(rest)), value))
            replaced.append(casts[-1].results[0])
        else:
            replaced.append(next(rest))
            replaced[-1].name_hint = value.name_hint
    return casts, replaced


def split_arguments(block: Block, rewriter: PatternRewriter) -> None:
    """Make two arguments of each complex one of a block."""
    for argument in list(block.args):
        part = part_type(argument.type)
        if part is None:
            continue
        at = argument.index
        parts = (block.insert_arg(part, at), block.insert_arg(part, at + 1))
        whole = joined(parts, argument)
        rewriter.insert(whole, InsertPoint.at_start(block))
        rewriter.replace_all_uses_with(argument, whole.results[0])
        block.erase_arg(argument)


class SplitYield(RewritePattern):
    """A body yields the two parts of each complex value. Always legal: who takes them is split."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.YieldOp, rewriter: PatternRewriter) -> None:
        if any(map(is_split, op.operands)):
            new = loom.YieldOp(*flat(op.operands))
            new.location = op.location
            new.attributes.update(op.attributes)
            rewriter.replace(op, new)


class SplitScalar(RewritePattern):
    """A scalar operation on complex numbers is some on their parts.

    Always legal: `scalars` says what each means.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        kinds = (part_type(value.type) for value in (*op.operands, *op.results))
        part = next((kind for kind in kinds if isinstance(kind, AnyFloat)), None)
        if part is None or len(op.results) != 1 or isinstance(op, UnrealizedConversionCastOp):
            return
        reals = Reals(part)
        made = _computed(reals, op)
        for new in reals.ops:
            new.location = op.location
        (old,) = op.results
        if isinstance(made, SSAValue):
            rewriter.replace(op, reals.ops, [made])
        else:
            whole = joined(made, old)
            rewriter.replace(op, [*reals.ops, whole], [whole.results[0]])


def _computed(reals: Reals, op: Operation) -> Complex | SSAValue:
    """What an operation makes, on parts."""
    match op:
        case complex_dialect.ConstantOp():
            real, imaginary = op.value
            assert isinstance(real, FloatAttr)
            assert isinstance(imaginary, FloatAttr)
            return reals.number(real.value.data), reals.number(imaginary.value.data)
        case complex_dialect.CreateOp():
            return op.real, op.imaginary
        case complex_dialect.ReOp() | complex_dialect.ImOp():
            return parts_of(op.operands[0])[isinstance(op, complex_dialect.ImOp)]
        case complex_dialect.BitcastOp():
            return _reinterpreted(reals, op)
        case arith.SelectOp():
            return reals.choose(op.cond, parts_of(op.lhs), parts_of(op.rhs))
        case loom.ReadOp():
            blocks = parts_of(op.block)
            outside = (None, None) if op.otherwise is None else parts_of(op.otherwise)
            real, imaginary = (
                reals.write(loom.ReadOp(block, op.indices, otherwise))
                for block, otherwise in zip(blocks, outside, strict=True)
            )
            return real, imaginary
        case _:
            operands = map(parts_of, op.operands)
            build = scalars.COMPLEX.get(type(op)) or scalars.REAL[type(op)]
            return build(reals, *operands)


def _reinterpreted(reals: Reals, op: complex_dialect.BitcastOp) -> Complex | SSAValue:
    """Bits taken as another type: of two floats as an i64 or f64, or the other way."""
    if op.operand.type == op.result.type:
        return parts_of(op.operand)
    if is_split(op.result):
        bits = op.operand
        if bits.type != i64:
            bits = reals.write(arith.BitcastOp(bits, i64))
        return scalars.of_bits(reals, bits)
    bits = scalars.to_bits(reals, parts_of(op.operand))
    return bits if op.result.type == i64 else reals.write(arith.BitcastOp(bits, op.result.type))

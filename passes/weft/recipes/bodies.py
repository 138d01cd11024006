"""Turns typed scalar bodies into regions of `arith` and `math` operations.

    add(Folded(0), Cell("b")) : f32

        ^(%acc: f32, %b: f32):
          %0 = arith.addf %acc, %b : f32
          loom.yield %0 : f32

Types are decided already (`tapestry.metakernels.bodies`), so this is a table. Equal subexpressions
are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tapestry.algebra.dtypes import body_type, type_named
from tapestry.algebra.literals import float_attr
from tapestry.dialects import loom
from tapestry.metakernels.dtypes import is_float, is_unsigned
from tapestry.metakernels.scalars import (
    Cast,
    Cell,
    Constant,
    Folded,
    Position,
    Read,
    Scalar,
)
from tapestry.metakernels.scalars import Operation as Computation

_Build = Callable[..., Operation]

_FLOAT: Final[dict[str, _Build]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "neg": arith.NegfOp,
    "min": arith.MinimumfOp,
    "max": arith.MaximumfOp,
    "abs": math.AbsFOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "cbrt": math.CbrtOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "log": math.LogOp,
    "log2": math.Log2Op,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "expm1": math.ExpM1Op,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "asin": math.AsinOp,
    "acos": math.AcosOp,
    "atan": math.AtanOp,
    "atan2": math.Atan2Op,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "tanh": math.TanhOp,
    "asinh": math.AsinhOp,
    "acosh": math.AcoshOp,
    "atanh": math.AtanhOp,
    "erf": math.ErfOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "round": math.RoundEvenOp,
    "trunc": math.TruncOp,
    "copysign": math.CopySignOp,
    "fma": math.FmaOp,
    "fmin": arith.MinnumfOp,
    "fmax": arith.MaxnumfOp,
    "pow": math.PowFOp,
}
_INTEGER: Final[dict[str, _Build]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "floordiv": arith.FloorDivSIOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
    "abs": math.AbsIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
    "bit_count": math.CtPopOp,
    "shift_left": arith.ShLIOp,
    "shift_right": arith.ShRSIOp,
    "shift_right_unsigned": arith.ShRUIOp,
    "div_trunc": arith.DivSIOp,
    "mod_trunc": arith.RemSIOp,
}
_UNSIGNED: Final[dict[str, _Build]] = {
    "floordiv": arith.DivUIOp,
    "mod": arith.RemUIOp,
    "div_trunc": arith.DivUIOp,
    "mod_trunc": arith.RemUIOp,
    "shift_right": arith.ShRUIOp,
    "min": arith.MinUIOp,
    "max": arith.MaxUIOp,
}
"""What unsigned integers compute by another operation than signed ones."""
_FLOAT_ORDER: Final = {
    "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une",
}  # fmt: skip
_SIGNED_ORDER: Final = {
    "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne",
}  # fmt: skip
# Of truth values (i1) a signed order would put true below false; unsigned integers have no sign.
_UNSIGNED_ORDER: Final = {
    "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne",
}  # fmt: skip


def element_type(dtype: str) -> Attribute:
    """The IR type of a dtype that templates name, of the cells of a tensor."""
    element = type_named(dtype)
    assert element is not None
    return element


def _body_type(dtype: str) -> Attribute:
    return body_type(element_type(dtype))


def _float_type(dtype: str) -> AnyFloat:
    element = element_type(dtype)
    assert isinstance(element, AnyFloat)
    return element


def _width(dtype: str) -> int:
    return int(dtype.lstrip("bfiu"))


def _integer_type(dtype: str) -> IntegerType:
    return IntegerType(_width(dtype))


def build_region(
    bodies: Sequence[Scalar], state: Sequence[str], cells: Sequence[tuple[str, Attribute]]
) -> Region:
    """A region that yields `bodies`; its arguments are the state's parts, then the cells.

    `state` holds dtypes, `cells` pairs of an input's name and what the body takes of it: a cell's
    type, or a block's.
    """
    block = Block(arg_types=[*map(_body_type, state), *(kind for _, kind in cells)])
    arguments = dict(zip((name for name, _ in cells), block.args[len(state) :], strict=True))
    for argument, (name, _) in zip(block.args[len(state) :], cells, strict=True):
        argument.name_hint = name
    for argument in block.args[: len(state)]:
        argument.name_hint = "acc"
    emitter = _Emitter(block, arguments)
    results = [emitter.value(body) for body in bodies]
    block.add_op(loom.YieldOp(*results))
    return Region(block)


class _Emitter:
    def __init__(self, block: Block, cells: Mapping[str, SSAValue]) -> None:
        self._block = block
        self._cells = cells
        self._known: dict[Scalar, SSAValue] = {}

    def value(self, body: Scalar) -> SSAValue:
        """The value that computes `body`, built once."""
        match body:
            case Cell(name):
                return self._cells[name]
            case Folded(part):
                return self._block.args[part]
            case _:
                known = self._known.get(body)
                if known is None:
                    known = self._known[body] = self._computed(body)
                return known

    def _computed(self, body: Constant | Position | Read | Computation | Cast) -> SSAValue:
        match body:
            case Read(name, indices, otherwise):
                places = [self.value(index) for index in indices]
                fill = None if otherwise is None else self.value(otherwise)
                return self._add(loom.ReadOp(self._cells[name], places, fill))
            case Constant(value, dtype):
                return self._constant(value, dtype)
            case Position(dim):
                return self._add(loom.IndexOp(dim))
            case Cast(operand, dtype):
                return self._cast(self.value(operand), operand.dtype, dtype)
            case Computation("random", (seed, counter, Constant(word))):
                return self._random(self.value(seed), self.value(counter), int(word))
            case Computation(name, operands):
                values = [self.value(operand) for operand in operands]
                return self._operation(name, values, operands[-1].dtype)

    def _add(self, op: Operation) -> SSAValue:
        self._block.add_op(op)
        return op.results[0]

    def _constant(self, value: float, dtype: str) -> SSAValue:
        if is_float(dtype):
            return self._add(arith.ConstantOp(float_attr(value, _float_type(dtype))))
        number = IntegerAttr(int(value), _integer_type(dtype), truncate_bits=True)
        return self._add(arith.ConstantOp(number))

    def _operation(self, name: str, values: list[SSAValue], dtype: str) -> SSAValue:
        if name in _SIGNED_ORDER:
            return self._compare(name, values[0], values[1], dtype)
        match name:
            case "select":
                return self._add(arith.SelectOp(*values))
            case "not":
                return self._add(arith.XOrIOp(values[0], self._constant(1, "i1")))
            case "neg" if not is_float(dtype):
                return self._add(arith.SubiOp(self._constant(0, dtype), values[0]))
            case "abs" if is_unsigned(dtype):
                return values[0]
            case _ if is_unsigned(dtype) and name in _UNSIGNED:
                return self._add(_UNSIGNED[name](*values))
            case "mod":
                return self._modulo(values[0], values[1], dtype)
            case _:
                table = _FLOAT if is_float(dtype) else _INTEGER
                return self._add(table[name](*values))

    def _random(self, seed: SSAValue, counter: SSAValue, word: int) -> SSAValue:
        """The low 24 of 32 random bits as a multiple of 2^-24: exact in f32, below one."""
        bits = self._add(loom.RandomOp(seed, counter, word))
        low = self._add(arith.AndIOp(bits, self._constant((1 << 24) - 1, "i32")))
        whole = self._add(arith.SIToFPOp(low, _float_type("f32")))
        return self._add(arith.MulfOp(whole, self._constant(2.0**-24, "f32")))

    def _compare(self, name: str, left: SSAValue, right: SSAValue, dtype: str) -> SSAValue:
        if is_float(dtype):
            return self._add(arith.CmpfOp(left, right, _FLOAT_ORDER[name]))
        order = _UNSIGNED_ORDER if dtype == "i1" or is_unsigned(dtype) else _SIGNED_ORDER
        return self._add(arith.CmpiOp(left, right, order[name]))

    def _modulo(self, left: SSAValue, right: SSAValue, dtype: str) -> SSAValue:
        """Floor modulo: the remainder with the sign of the divisor; 0 where that is 0."""
        quotient = self._add(arith.FloorDivSIOp(left, right))
        rest = self._add(arith.SubiOp(left, self._add(arith.MuliOp(quotient, right))))
        zero = arith.ConstantOp(IntegerAttr(0, _integer_type(dtype)))
        if isinstance(right.owner, arith.ConstantOp) and right.owner.value != zero.value:
            return rest
        self._block.add_op(zero)
        by_zero = self._add(arith.CmpiOp(right, zero, "eq"))
        return self._add(arith.SelectOp(by_zero, zero, rest))

    def _cast(self, value: SSAValue, source: str, target: str) -> SSAValue:
        if target == "i1":
            return self._compare("ne", value, self._constant(0, source), source)
        if is_float(target):
            return self._to_float(value, source, target)
        element = _integer_type(target)
        if is_float(source):
            convert = arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp
            return self._add(convert(value, element))
        if _width(source) == _width(target):
            return value
        if _width(source) > _width(target):
            return self._add(arith.TruncIOp(value, element))
        # A truth value is 1 as an unsigned number, and -1 as a signed one.
        unsigned = source == "i1" or is_unsigned(source)
        return self._add((arith.ExtUIOp if unsigned else arith.ExtSIOp)(value, element))

    def _to_float(self, value: SSAValue, source: str, target: str) -> SSAValue:
        element = _float_type(target)
        if not is_float(source):
            if is_unsigned(source):
                return self._add(arith.UIToFPOp(value, element))
            signed = self._cast(value, "i1", "i32") if source == "i1" else value
            return self._add(arith.SIToFPOp(signed, element))
        if _width(source) == _width(target):
            # f16 and bf16 hold none of each other's values; f32 holds both.
            value, source = self._add(arith.ExtFOp(value, _float_type("f32"))), "f32"
        widens = _width(source) < _width(target)
        return self._add((arith.ExtFOp if widens else arith.TruncFOp)(value, element))

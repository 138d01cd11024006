"""Complex numbers, with the operations of xDSL's `complex` dialect: metakernels have none.

%1 = stablehlo.multiply %0, %0 : tensor<4xcomplex<f32>>     complex.mul in a body
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import AnyFloat, ComplexType
from xdsl.ir import Operation, Region, SSAValue

from tapestry.dialects import loom
from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.operations import maps
from tapestry.importers.stablehlo.attributes import word
from tapestry.importers.stablehlo.pointwise import pointwise
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.zspace import Projection, Range

_OPERATIONS: dict[str, Callable[..., Operation]] = {
    "stablehlo.abs": complex_dialect.AbsOp,
    "stablehlo.add": complex_dialect.AddOp,
    "stablehlo.cosine": complex_dialect.CosOp,
    "stablehlo.divide": complex_dialect.DivOp,
    "stablehlo.exponential": complex_dialect.ExpOp,
    "stablehlo.exponential_minus_one": complex_dialect.Expm1Op,
    "stablehlo.log": complex_dialect.LogOp,
    "stablehlo.log_plus_one": complex_dialect.Log1pOp,
    "stablehlo.multiply": complex_dialect.MulOp,
    "stablehlo.negate": complex_dialect.NegOp,
    "stablehlo.power": complex_dialect.PowOp,
    "stablehlo.rsqrt": complex_dialect.RsqrtOp,
    "stablehlo.select": arith.SelectOp,
    "stablehlo.sign": complex_dialect.SignOp,
    "stablehlo.sine": complex_dialect.SinOp,
    "stablehlo.sqrt": complex_dialect.SqrtOp,
    "stablehlo.subtract": complex_dialect.SubOp,
    "stablehlo.tan": complex_dialect.TanOp,
    "stablehlo.tanh": complex_dialect.TanhOp,
    "chlo.conj": complex_dialect.ConjOp,
}
_COMPARISONS = {"EQ": complex_dialect.EqualOp, "NE": complex_dialect.NotEqualOp}


def is_complex(op: Op) -> bool:
    """Whether an operation computes with complex numbers."""
    return any(value.spec.is_complex for value in op.operands)


def pointwise_complex(program: Program, op: Op) -> Value:
    """An operation cell by cell on complex numbers."""
    kind = _OPERATIONS.get(op.name)
    if op.name == "stablehlo.compare":
        kind = _COMPARISONS.get(word(op.attributes["comparison_direction"]))
    if kind is None:
        raise program.error(f"{op.name} of complex numbers is not supported")

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        return body.add(kind(*cells))

    return pointwise(program, op.name.partition(".")[2], op.operands, op.results[0], build)


def _part(op_type: Callable[..., Operation]) -> Translation:
    """A part of a complex number; of a real one, itself or zero."""

    def translate(program: Program, op: Op) -> Value:
        (x,) = op.operands
        if not x.spec.is_complex:
            real = op_type is complex_dialect.ReOp
            return x if real else program.known(0, op.results[0])

        def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
            return body.add(op_type(*cells))

        return pointwise(program, op.name.partition(".")[2], [x], op.results[0], build)

    return translate


def _complex(program: Program, op: Op) -> Value:
    (result,) = op.results
    kind = cast("ComplexType[AnyFloat]", cell_type(result.dtype))

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        return body.add(complex_dialect.CreateOp(cells[0], cells[1], kind))

    return pointwise(program, "complex", op.operands, result, build)


def converted(program: Program, x: Value, result: Spec) -> Value:
    """A tensor as one of complex numbers, or complex ones as their real parts."""
    if not result.is_complex:
        part = x.spec.dtype.removeprefix("complex<").removesuffix(">")
        real = pointwise(program, "real", [x], result.of(dtype=part), _real)
        return program.apply("cast", real, parameters={"dtype": result.dtype})
    part = result.dtype.removeprefix("complex<").removesuffix(">")
    kind = cast("ComplexType[AnyFloat]", cell_type(result.dtype))
    if not x.spec.is_complex:
        x = program.apply("cast", x, parameters={"dtype": part}) if x.spec.dtype != part else x

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        (cell,) = cells
        if not isinstance(cell.type, ComplexType):
            return body.add(complex_dialect.CreateOp(cell, body.number(0, kind.element_type), kind))
        real = _widened(body, body.add(complex_dialect.ReOp(cell)), kind.element_type)
        imaginary = _widened(body, body.add(complex_dialect.ImOp(cell)), kind.element_type)
        return body.add(complex_dialect.CreateOp(real, imaginary, kind))

    return pointwise(program, "convert", [x], result, build)


def _real(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
    return body.add(complex_dialect.ReOp(cells[0]))


def _widened(body: Body, value: SSAValue, kind: AnyFloat) -> SSAValue:
    have = cast(AnyFloat, value.type)
    if have == kind:
        return value
    return body.add(
        (arith.ExtFOp if have.bitwidth < kind.bitwidth else arith.TruncFOp)(value, kind)
    )


def einsum(program: Program, values: Sequence[Value], equation: str, result: Spec) -> Value:
    """The sum of products of two complex tensors, whose dimensions are letters of an equation."""
    body = Body([cell_type(value.spec.dtype) for value in values])
    product = body.add(complex_dialect.MulOp(body.arguments[0], body.arguments[1]))
    return _folded(program, "einsum", values, equation, result, "add", body.region(product))


def total(program: Program, x: Value, axes: Sequence[int], monoid: str, result: Spec) -> Value:
    """The sum or the product of complex numbers along axes."""
    letters = ascii_letters[: x.spec.rank]
    kept = "".join(letter for dim, letter in enumerate(letters) if dim not in axes)
    body = Body([cell_type(x.spec.dtype)])
    region = body.region(*body.arguments)
    return _folded(program, "reduce", [x], f"{letters}->{kept}", result, monoid, region)


def _folded(
    program: Program,
    label: str,
    values: Sequence[Value],
    equation: str,
    result: Spec,
    monoid: str,
    body: Region,
) -> Value:
    """A fold over the letters of an equation that the result has not."""
    inputs, out = equation.split("->")
    terms = inputs.split(",")
    folded = [letter for letter in dict.fromkeys("".join(terms)) if letter not in out]
    order = [*out, *folded]
    sizes = {
        letter: size
        for term, value in zip(terms, values, strict=True)
        for letter, size in zip(term, value.spec.shape, strict=True)
    }
    rows = {letter: [int(letter == one) for one in order] for letter in order}
    reads = [
        (program.tensor(value), Projection.of([rows[one] for one in term], inputs=len(order)))
        for term, value in zip(terms, values, strict=True)
    ]
    rank = len(out)
    outs = [(Projection.identity(rank), program.kind(result))]
    index = Range.of([sizes[letter] for letter in order])
    by = monoid if folded else None
    op = loom.OperationOp(label, index, maps(rank, len(folded)), by, reads, outs, body)
    return program.insert(op)[0]


TRANSLATIONS: dict[str, Translation] = {
    "chlo.conj": pointwise_complex,
    "stablehlo.complex": _complex,
    "stablehlo.imag": _part(complex_dialect.ImOp),
    "stablehlo.real": _part(complex_dialect.ReOp),
}

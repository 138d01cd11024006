"""What a program does with tiles: compare, choose, convert, load, store, multiply, reduce."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects._triton_plain import PlainOp
from tapestry.dialects._triton_types import PointerType, element_of, shape_of, tile_type

PREDICATES = ("<", "<=", ">", ">=", "==", "!=")
"""What `triton.compare` compares by; on floats all but `!=` are false when a side is NaN."""


ATOMICS = ("add", "max", "min")
"""How what is stored can be merged with what is there."""


EVICTED = ("first", "last")
"""When cells leave the L2, beside others."""


def _check_evict(evict: StringAttr | None) -> None:
    if evict is not None and evict.data not in EVICTED:
        raise VerifyException(f"{evict} is not one of {', '.join(EVICTED)}")


@irdl_op_definition
class CompareOp(PlainOp):
    """Cell by cell comparison, signed on integers; false on NaN except for `!=`.

    Example: `%in = triton.compare "<" %p, %n : tensor<64xi32>, tensor<64xi32> -> tensor<64xi1>`
    """

    name = "triton.compare"

    predicate = prop_def(StringAttr)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"
    )

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate)},
            result_types=[tile_type(i1, shape_of(lhs))],
        )

    def verify_(self) -> None:
        if self.predicate.data not in PREDICATES:
            raise VerifyException(f"{self.predicate} is not one of {', '.join(PREDICATES)}")
        if self.lhs.type != self.rhs.type:
            raise VerifyException(f"compares {self.lhs.type} with {self.rhs.type}")


@irdl_op_definition
class WhereOp(PlainOp):
    """Cell by cell choice: `tl.where(condition, lhs, rhs)`.

    Example:

        %v = triton.where %in, %x, %y
               : tensor<64xi1>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>

    """

    name = "triton.where"

    condition = operand_def()
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($lhs) `,` "
        "type($rhs) `->` type($result)"
    )

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[condition, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        kinds = {self.lhs.type, self.rhs.type, self.result.type}
        if len(kinds) != 1 or shape_of(self.condition) != shape_of(self.lhs):
            raise VerifyException("both sides, the condition's shape and the result must agree")


@irdl_op_definition
class ErfcOp(PlainOp):
    """The complementary error function, 1 - erf(x), cell by cell, without cancellation.

    Example: `%v = triton.erfc %x : tensor<64xf32> -> tensor<64xf32>`
    """

    name = "triton.erfc"

    source = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue) -> None:
        super().__init__(operands=[source], result_types=[source.type])

    def verify_(self) -> None:
        if (
            not isinstance(element_of(self.source), AnyFloat)
            or self.result.type != self.source.type
        ):
            raise VerifyException(f"{self.result.type} is not the function of {self.source.type}")


@irdl_op_definition
class PhiloxOp(PlainOp):
    """Random bits, cell by cell: one word of Philox 4x32-10 for 64-bit seeds and counters.

    Example: `%b = triton.philox 0 %s, %n : tensor<64xi64>, tensor<64xi64> -> tensor<64xi32>`
    """

    name = "triton.philox"

    word = prop_def(IntegerAttr)
    seed = operand_def()
    counter = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$word $seed `,` $counter attr-dict `:` type($seed) `,` type($counter) `->` type($result)"
    )

    def __init__(self, seed: SSAValue, counter: SSAValue, word: int) -> None:
        super().__init__(
            operands=[seed, counter],
            properties={"word": IntegerAttr(word, i64)},
            result_types=[tile_type(i32, shape_of(counter))],
        )

    def verify_(self) -> None:
        kinds = {element_of(self.seed), element_of(self.counter)}
        if kinds != {i64} or shape_of(self.seed) != shape_of(self.counter):
            raise VerifyException("the seed and the counter are tiles of i64 of one shape")
        if self.result.type != tile_type(i32, shape_of(self.counter)):
            raise VerifyException("random bits are i32, one for each cell")


@irdl_op_definition
class CastOp(PlainOp):
    """Conversion to another element type: `x.to(dtype)`.

    Floats round to nearest even, floats to integers truncate, integers extend their sign, i1
    extends with zero. Between integers and floats, an `unsigned` cast takes integers for unsigned.

    Example:

        %h = triton.cast %x : tensor<64xf32> -> tensor<64xf16>
        %u = triton.cast %i unsigned : tensor<64xi32> -> tensor<64xf32>
    """

    name = "triton.cast"

    source = operand_def()
    unsigned = opt_prop_def(UnitAttr)
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$source (`unsigned` $unsigned^)? attr-dict `:` type($source) `->` type($result)"
    )

    def __init__(self, source: SSAValue, element: Attribute, *, unsigned: bool = False) -> None:
        super().__init__(
            operands=[source],
            properties={"unsigned": UnitAttr() if unsigned else None},
            result_types=[tile_type(element, shape_of(source))],
        )

    def verify_(self) -> None:
        if shape_of(self.source) != shape_of(self.result):
            raise VerifyException(f"a cast does not make {self.result.type} of {self.source.type}")
        sides = [isinstance(element_of(v), IntegerType) for v in (self.source, self.result)]
        if self.unsigned is not None and sum(sides) != 1:
            raise VerifyException("an unsigned cast is between an integer and a float")


@irdl_op_definition
class BitcastOp(PlainOp):
    """The same bits as another element type of the same width: `x.to(dtype, bitcast=True)`.

    Example: `%i = triton.bitcast %x : tensor<64xf32> -> tensor<64xi32>`
    """

    name = "triton.bitcast"

    source = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, element: Attribute) -> None:
        super().__init__(operands=[source], result_types=[tile_type(element, shape_of(source))])

    def verify_(self) -> None:
        sizes = {byte_size(element_of(value)) for value in (self.source, self.result)}
        if shape_of(self.source) != shape_of(self.result) or len(sizes) != 1:
            raise VerifyException(f"{self.source.type} is not the bits of {self.result.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Cells of a buffer at a tile of offsets: `tl.load(ptr + offsets, mask, other)`.

    Lanes that the mask leaves out hold `other`, which must be given with a mask. With `evict`, the
    cells are among the `last` or the `first` that leave the L2 when others come.

    Example:

        %x = triton.load %x_ptr[%p] mask %inside other 0.0 : f32 evict "last"
               : !triton.ptr<f32>, tensor<64xi32>, tensor<64xi1> -> tensor<64xf32>
    """

    name = "triton.load"

    pointer = operand_def(PointerType)
    offsets = operand_def()
    mask = opt_operand_def()
    other = opt_prop_def(FloatAttr | IntegerAttr)
    evict = opt_prop_def(StringAttr)
    result = result_def()

    assembly_format = (
        "$pointer `[` $offsets `]` (`mask` $mask^)? (`other` $other^)? "
        "(`evict` $evict^)? attr-dict `:` "
        "type($pointer) `,` type($offsets) (`,` type($mask)^)? `->` type($result)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        offsets: SSAValue,
        mask: SSAValue | None,
        other: Attribute | None,
    ) -> None:
        assert isinstance(pointer.type, PointerType)
        super().__init__(
            operands=[pointer, offsets, mask],
            properties={"other": other},
            result_types=[tile_type(pointer.type.element_type, shape_of(offsets))],
        )

    def verify_(self) -> None:
        assert isinstance(self.pointer.type, PointerType)
        shape = shape_of(self.offsets)
        if self.result.type != tile_type(self.pointer.type.element_type, shape):
            raise VerifyException(f"{self.pointer.type} does not load {self.result.type}")
        _check_evict(self.evict)
        if (self.mask is None) != (self.other is None):
            raise VerifyException("a mask and what masked lanes hold go together")
        if self.mask is not None and shape_of(self.mask) != shape:
            raise VerifyException(f"a mask {self.mask.type} does not fit {self.offsets.type}")


@irdl_op_definition
class AssertOp(PlainOp):
    """Stops the run, with a message, unless every lane holds: `tl.device_assert`.

    Example: `triton.assert %inside, "row 7 of 5" : tensor<64xi1>`
    """

    name = "triton.assert"

    condition = operand_def()
    message = prop_def(StringAttr)

    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"

    def __init__(self, condition: SSAValue, message: str) -> None:
        super().__init__(operands=[condition], properties={"message": StringAttr(message)})

    def verify_(self) -> None:
        if element_of(self.condition) != i1:
            raise VerifyException(f"{self.condition.type} is not a condition")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write a tile to a buffer at offsets: `tl.store(ptr + offsets, value, mask)`.

    With `atomic`, cells are merged with what is there, whichever program comes first:
    `tl.atomic_add(ptr + offsets, value, mask)`. `evict` is as in `triton.load`.

    Example:

        triton.store %y to %y_ptr[%p] mask %inside atomic "add"
          : tensor<64xf32>, !triton.ptr<f32>, tensor<64xi32>, tensor<64xi1>
    """

    name = "triton.store"

    value = operand_def()
    pointer = operand_def(PointerType)
    offsets = operand_def()
    mask = opt_operand_def()
    atomic = opt_prop_def(StringAttr)
    evict = opt_prop_def(StringAttr)

    assembly_format = (
        "$value `to` $pointer `[` $offsets `]` (`mask` $mask^)? (`atomic` $atomic^)? "
        "(`evict` $evict^)? attr-dict `:` "
        "type($value) `,` type($pointer) `,` type($offsets) (`,` type($mask)^)?"
    )

    def __init__(
        self,
        value: SSAValue,
        pointer: SSAValue,
        offsets: SSAValue,
        mask: SSAValue | None,
        atomic: str | None = None,
    ) -> None:
        super().__init__(
            operands=[value, pointer, offsets, mask],
            properties={"atomic": None if atomic is None else StringAttr(atomic)},
        )

    def verify_(self) -> None:
        assert isinstance(self.pointer.type, PointerType)
        shape = shape_of(self.offsets)
        if self.value.type != tile_type(self.pointer.type.element_type, shape):
            raise VerifyException(f"{self.pointer.type} does not store {self.value.type}")
        _check_evict(self.evict)
        if self.atomic is not None and self.atomic.data not in ATOMICS:
            raise VerifyException(f"{self.atomic} is not one of {', '.join(ATOMICS)}")
        if self.mask is not None and shape_of(self.mask) != shape:
            raise VerifyException(f"a mask {self.mask.type} does not fit {self.offsets.type}")


@irdl_op_definition
class DotOp(PlainOp):
    """`acc + a @ b`: `tl.dot(a, b, acc, input_precision=...)`.

    Factors of 16 bits are summed up in float32, of 8-bit integers in 32 bits, others in their type.
    `precision` says what becomes of float32 operands: `ieee` multiplies them as they are, `tf32`
    drops all but their first 11 bits, `bf16x6` takes each apart into three numbers of bfloat16.

    Example:

        %acc1 = triton.dot %a, %b, %acc precision "ieee"
                  : tensor<64x32xf32>, tensor<32x16xf32>, tensor<64x16xf32>
                  -> tensor<64x16xf32>
    """

    name = "triton.dot"

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    acc = operand_def(TensorType)
    precision = prop_def(StringAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b `,` $acc `precision` $precision attr-dict `:` type($a) `,` type($b) `,` "
        "type($acc) `->` type($result)"
    )

    def __init__(self, a: SSAValue, b: SSAValue, acc: SSAValue, precision: str) -> None:
        super().__init__(
            operands=[a, b, acc],
            properties={"precision": StringAttr(precision)},
            result_types=[acc.type],
        )

    @property
    def is_bf16x6(self) -> bool:
        """Whether float32 is multiplied in parts; other types have no other precision."""
        return self.precision.data == "bf16x6" and element_of(self.a) == f32

    def verify_(self) -> None:
        (m, k), (depth, n) = shape_of(self.a), shape_of(self.b)
        if k != depth or shape_of(self.acc) != (m, n) or self.acc.type != self.result.type:
            raise VerifyException(
                f"{self.a.type} times {self.b.type} does not make {self.result.type}"
            )
        if element_of(self.a) != element_of(self.b):
            raise VerifyException("both factors must have one element type")
        if min(m, n, k) < 16:
            raise VerifyException("every side of a dot must be at least 16")
        if byte_size(element_of(self.a)) == 1 and k < 32:
            raise VerifyException("a dot of cells of 8 bits must be at least 32 deep")

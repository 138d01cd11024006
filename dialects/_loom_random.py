"""`loom.random`: counter-based random bits in a body.

    %at   = loom.index 0 : i64
    %bits = loom.random word 0 of %seed, %at : i32

The bits are a pure function of a seed and a counter, both plain values of the body. So every
rewrite keeps them, and every partition and executor gives the same numbers: nothing is drawn "in
order". `tapestry.algebra.philox` defines the function.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tapestry.algebra.philox import WORDS


@irdl_op_definition
class RandomOp(IRDLOperation):
    """32 random bits: one of the four words that a counter gives under a seed.

    Philox 4x32 with ten rounds; the seed is its key, the counter the lower half of its counter.

    Example: `%bits = loom.random word 0 of %seed, %counter : i32`
    """

    name = "loom.random"

    word = prop_def(IntegerAttr.constr(type=EqAttrConstraint(i64)))
    seed = operand_def(i64)
    counter = operand_def(i64)
    bits = result_def(i32)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "`word` $word `of` $seed `,` $counter attr-dict `:` type($bits)"

    def __init__(self, seed: SSAValue, counter: SSAValue, word: int = 0) -> None:
        super().__init__(
            operands=[seed, counter],
            properties={"word": IntegerAttr(word, i64)},
            result_types=[i32],
        )

    @property
    def position(self) -> int:
        """Which of the counter's words this is."""
        return self.word.value.data

    def verify_(self) -> None:
        if not 0 <= self.position < WORDS:
            raise VerifyException(f"a counter gives words 0 to {WORDS - 1}, not {self.position}")

"""`loom.monoid`: ways to fold that a program defines.

    loom.monoid @largest commutative zero [0xFF800000 : f32] merge (%a: f32, %b: f32) {
      %m = arith.maximumf %a, %b : f32
      loom.yield %m : f32
    }

Zero and merge are tried on samples: see `tapestry.algebra` for the laws.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
)
from xdsl.ir import (
    Attribute,
    Region,
)
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    SymbolOpInterface,
)

from tapestry.dialects import _loom_syntax as syntax
from tapestry.dialects import _loom_verify as rules
from tapestry.dialects._checked import CheckedOperation
from tapestry.issues import Problem


@irdl_op_definition
class MonoidOp(CheckedOperation):
    """A way to fold: a state of several typed parts, its zero, and an associative merge.

    `commutative` states that states may be merged in any order. The built-in monoids (add, mul,
    max, min, and, or, argmax, argmin, logsumexp, welford) are known by name and need no definition.

    Example:

        loom.monoid @largest commutative zero [0xFF800000 : f32] merge (%a: f32, %b: f32) {
          %m = arith.maximumf %a, %b : f32
          loom.yield %m : f32
        }
    """

    name = "loom.monoid"

    sym_name = prop_def(SymbolNameConstraint())
    commutative = opt_prop_def(UnitAttr)
    zero = prop_def(ArrayAttr)
    merge = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(
        self, name: str, zero: Sequence[Attribute], merge: Region, *, commutative: bool
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "commutative": UnitAttr() if commutative else None,
                "zero": ArrayAttr(zero),
            },
            regions=[merge],
        )

    @property
    def is_commutative(self) -> bool:
        """Whether states may be merged in any order."""
        return self.commutative is not None

    @property
    def state_types(self) -> tuple[Attribute, ...]:
        """The types of the state's parts."""
        return tuple(block_arg.type for block_arg in self.merge.block.args[: len(self.zero)])

    @classmethod
    def parse(cls, parser: Parser) -> MonoidOp:
        return syntax.parse_monoid(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_monoid(self, printer)

    @property
    def subject(self) -> str:
        return f"@{self.sym_name.data}"

    def problems(self) -> list[Problem]:
        return rules.monoid_problems(self)

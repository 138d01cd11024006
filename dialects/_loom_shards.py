"""Shards spelled out: kernels, their applications to parts of an index space, merges of states.

    loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%x: f32) { ... }
    %p = loom.application @double over <[4] : [8]> (%x <[4] : [8]>)
           : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[4] : [8], f32>

What a kernel computes is said once, however many shards there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import (
    ArrayAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import (
    Operation,
    SSAValue,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    Pure,
    SymbolOpInterface,
)

from tapestry.dialects import _loom_dispatch as dispatch_rules
from tapestry.dialects import _loom_shard_syntax as syntax
from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.dialects._loom_parts import Axes, declared_axes
from tapestry.dialects._loom_signature import BlockSignature
from tapestry.dialects._loom_syntax import signature_properties
from tapestry.dialects._loom_types import TensorType, projections_attr
from tapestry.dialects.zspace import ProjectionAttr, RangeAttr
from tapestry.issues import Problem
from tapestry.zspace import Projection, Range


@irdl_op_definition
class KernelOp(BlockSignature):
    """A map-fold without operands or range, which `loom.application`s run on shards.

    `parts` says over which kept dimensions the parts of a state may be stored: all that each varies
    along. Without it, parts are over all kept dimensions.

    Example:

        loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0))
          wrap (%x: f32) {
            %y = arith.addf %x, %x : f32
            loom.yield %y : f32
          }
    """

    name = "loom.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    part_projections = opt_prop_def(ArrayAttr[ProjectionAttr])

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(
        self, name: str, signature: BlockSignature, parts: Sequence[Projection] | None = None
    ) -> None:
        stored = {} if parts is None else {"part_projections": projections_attr(parts)}
        super().__init__(
            properties={"sym_name": StringAttr(name), **signature_properties(signature), **stored},
            regions=[signature.wrap.clone(), signature.unwrap.clone()],
        )

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        return syntax.parse_kernel(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_kernel(self, printer)

    @property
    def part_axes(self) -> tuple[Axes, ...]:
        """Per part of the state, the kept dimensions that it is stored over; others it is not on.

        They are counted among the kept ones.
        """
        rank = len(self.kept_dims)
        if self.part_projections is None:
            return (tuple(range(rank)),) * len(self.state_types)
        named = declared_axes([p.data for p in self.part_projections], rank)
        return tuple(axes for axes in named if axes is not None)

    @property
    def is_formed(self) -> bool:
        parts = self.properties.get("part_projections")
        if not super().is_formed or (parts is not None and not isinstance(parts, ArrayAttr)):
            return False
        return len(self.part_axes) == len(self.state_types)

    @property
    def subject(self) -> str:
        return f"@{self.sym_name.data}"

    def problems(self) -> list[Problem]:
        return dispatch_rules.kernel_problems(self)


class Dispatch(CheckedOperation):
    """What `loom.application` and `loom.merge` share: a kernel run on a range."""

    kernel = prop_def(SymbolRefAttr)
    index_range = prop_def(RangeAttr)

    @property
    def over_kept(self) -> bool:
        """Whether the range is over the kernel's kept dimensions alone."""
        return False

    @property
    def needs_fold(self) -> bool:
        """Whether it makes or takes states, which only a kernel that folds has."""
        return False

    @property
    def kernel_name(self) -> str:
        """The symbol of the kernel that runs."""
        return self.kernel.root_reference.data

    @property
    def subject(self) -> str:
        return f"@{self.kernel_name}"

    @property
    def index(self) -> Range:
        """The part of the index space that runs."""
        return self.index_range.data


@irdl_op_definition
class ApplicationOp(Dispatch):
    """A kernel run on one shard of its index space.

    The recorded selection of each operand is what its projection makes of the range. Results hold
    exactly the cells the shard writes. A `partial` application stops before unwrap and yields the
    parts of the state over its kept dimensions, or each over those of them that it varies along;
    `loom.merge` finishes it. An application to a part of a scan starts it anew: its states are
    those of that part alone.

    Example:

        %p = loom.application @double over <[4] : [8]> (%x <[4] : [8]>)
               : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[4] : [8], f32>
    """

    name = "loom.application"

    selections = prop_def(ArrayAttr[RangeAttr])
    partial = opt_prop_def(UnitAttr)
    args = var_operand_def(TensorType)
    outs = var_result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure(), DefinedBeforeUse())

    def __init__(
        self,
        kernel: str,
        index: Range,
        args: Sequence[tuple[SSAValue, Range]],
        outs: Sequence[TensorType],
        *,
        partial: bool = False,
    ) -> None:
        super().__init__(
            operands=[[value for value, _ in args]],
            result_types=[outs],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "index_range": RangeAttr(index),
                "selections": ArrayAttr([RangeAttr(selection) for _, selection in args]),
                "partial": UnitAttr() if partial else None,
            },
        )

    @property
    def is_partial(self) -> bool:
        """Whether the result is the folded state, before unwrap."""
        return self.partial is not None

    @property
    def needs_fold(self) -> bool:
        return self.is_partial

    @classmethod
    def parse(cls, parser: Parser) -> ApplicationOp:
        return syntax.parse_application(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_application(self, printer)

    def problems(self) -> list[Problem]:
        return dispatch_rules.application_problems(self)


@irdl_op_definition
class MergeOp(Dispatch):
    """The states of partial applications merged, in order, and unwrapped.

    `states` lists the parts of each partial application after another; `over` is the range of the
    kept dimensions that is finished. Folded states that meet in a cell are merged there; a part
    that lacks some kept dimensions stands for all of them. The states of a scan lie side by side
    along it: each goes on from the last state before it. A `partial` merge stops before unwrap and
    yields the merged state, which another merge takes: trees.

    Example:

        %y = loom.merge @sum over <[0] : [8]> states(%p0, %p1)
               : (!loom.tensor<[0] : [8], f32>, !loom.tensor<[0] : [8], f32>)
               -> !loom.tensor<[0] : [8], f32>
    """

    name = "loom.merge"

    partial = opt_prop_def(UnitAttr)
    states = var_operand_def(TensorType)
    extras = var_operand_def(TensorType)
    outs = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(Pure(), DefinedBeforeUse())

    @property
    def over_kept(self) -> bool:
        return True

    @property
    def needs_fold(self) -> bool:
        return True

    def __init__(
        self,
        kernel: str,
        index: Range,
        states: Sequence[SSAValue],
        extras: Sequence[SSAValue],
        outs: Sequence[TensorType],
        *,
        partial: bool = False,
    ) -> None:
        super().__init__(
            operands=[states, extras],
            result_types=[outs],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "index_range": RangeAttr(index),
                "partial": UnitAttr() if partial else None,
            },
        )

    @property
    def is_partial(self) -> bool:
        """Whether the result is the merged state, before unwrap."""
        return self.partial is not None

    @classmethod
    def parse(cls, parser: Parser) -> MergeOp:
        return syntax.parse_merge(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_merge(self, printer)

    def problems(self) -> list[Problem]:
        return dispatch_rules.merge_problems(self)


def find_kernel(op: Operation, name: str) -> KernelOp | None:
    """The `loom.kernel @name` of the module that `op` is in, or None."""
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    if module is None:
        return None
    known = _kernels.get(module)
    if known is None or name not in known or known[name].parent is not module.body.block:
        known = {
            symbol.data: kernel
            for kernel in module.body.block.ops
            if isinstance(kernel, KernelOp)
            and isinstance(symbol := kernel.properties.get("sym_name"), StringAttr)
        }
        _kernels[module] = known
    return known.get(name)


_kernels: WeakKeyDictionary[ModuleOp, dict[str, KernelOp]] = WeakKeyDictionary()

"""What operations and kernels of loom are made of: bodies, and a map-fold without its operands.

    [map, fold] by @add
    ins((d0, d1) -> (d0, d1)) outs((d0) -> (d0))
    wrap (%x: f32) {
      %row = loom.index 0 : i64
      loom.yield %x : f32
    }

`loom.operation` adds operands and an index range to it, `loom.kernel` a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    IntegerAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import (
    Attribute,
    Block,
    Operation,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsTerminator,
    Pure,
)

from tapestry.dialects import _loom_syntax as syntax
from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._loom_bodies import yielded_types
from tapestry.dialects._loom_reads import Fill, fills_of, selected
from tapestry.dialects._loom_types import (
    Iterator,
    IteratorsAttr,
)
from tapestry.dialects.zspace import DomainAttr, ProjectionAttr
from tapestry.zspace import Domain, Projection, Range


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a body: the values that the body computes.

    Example: `loom.yield %p : f32`
    """

    name = "loom.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue | Operation) -> None:
        super().__init__(operands=[values])


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The coordinate of the running point along one index dimension, in a body.

    Example: `%row = loom.index 0 : i64`
    """

    name = "loom.index"

    dim = prop_def(IntegerAttr[I64])
    result = result_def(i64)

    traits = traits_def(Pure())

    def __init__(self, dim: int) -> None:
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[i64])

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        dim = parser.parse_integer(allow_boolean=False, allow_negative=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":", " before the type of a coordinate")
        start = parser.pos
        if parser.parse_type() != i64:
            parser.raise_error("a coordinate is i64", start, parser.pos)
        op = cls(dim)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dimension}")
        syntax.print_attributes(printer, self)
        printer.print_string(" : i64")

    @property
    def dimension(self) -> int:
        """The index dimension whose coordinate this is."""
        return self.dim.value.data


class BlockSignature(CheckedOperation):
    """What `loom.operation` and `loom.kernel` share: the map-fold without its operands."""

    iterators = prop_def(IteratorsAttr)
    monoid = opt_prop_def(SymbolRefAttr)
    in_projections = prop_def(ArrayAttr[ProjectionAttr])
    in_clips = opt_prop_def(ArrayAttr)
    extra_projections = prop_def(ArrayAttr[ProjectionAttr])
    extra_clips = opt_prop_def(ArrayAttr)
    out_projections = prop_def(ArrayAttr[ProjectionAttr])
    domain = opt_prop_def(DomainAttr)

    wrap = region_def()
    unwrap = region_def()

    @property
    def kinds(self) -> tuple[Iterator, ...]:
        """Per index dimension, `map`, `fold` or `scan`."""
        return self.iterators.data

    @property
    def kept_dims(self) -> tuple[int, ...]:
        """The index dimensions that are not folded, in order: what outputs are over."""
        return tuple(d for d, kind in enumerate(self.kinds) if kind != "fold")

    @property
    def map_dims(self) -> tuple[int, ...]:
        """The index dimensions that are mapped, in order."""
        return tuple(d for d, kind in enumerate(self.kinds) if kind == "map")

    @property
    def fold_dims(self) -> tuple[int, ...]:
        """The index dimensions that are folded, in order."""
        return tuple(d for d, kind in enumerate(self.kinds) if kind == "fold")

    @property
    def scan_dim(self) -> int | None:
        """The index dimension along which states are kept as they run, None without one."""
        return self.kinds.index("scan") if "scan" in self.kinds else None

    @property
    def merged_dims(self) -> tuple[int, ...]:
        """The index dimensions along which states merge: the folds, or the scan."""
        return self.fold_dims if self.scan_dim is None else (self.scan_dim,)

    @property
    def monoid_name(self) -> str | None:
        """The monoid that folds or scans, None when there is neither."""
        return None if self.monoid is None else self.monoid.root_reference.data

    @property
    def in_maps(self) -> tuple[Projection, ...]:
        """Per input, its projection from the index space."""
        return tuple(p.data for p in self.in_projections)

    @property
    def extra_maps(self) -> tuple[Projection, ...]:
        """Per extra input, its projection from the kept dimensions."""
        return tuple(p.data for p in self.extra_projections)

    @property
    def out_maps(self) -> tuple[Projection, ...]:
        """Per output, its projection from the kept dimensions."""
        return tuple(p.data for p in self.out_projections)

    @property
    def in_fills(self) -> tuple[Fill | None, ...]:
        """Per input, what it reads outside its tensor; None where it must read inside."""
        return fills_of(self.in_clips, len(self.in_projections))

    @property
    def extra_fills(self) -> tuple[Fill | None, ...]:
        """Per extra input, what it reads outside its tensor; None where it must read inside."""
        return fills_of(self.extra_clips, len(self.extra_projections))

    @property
    def inside(self) -> Domain | None:
        """The points that are folded, None when all are; the others contribute the zero."""
        return None if self.domain is None else self.domain.data

    @property
    def wrap_block(self) -> Block:
        """The body that is folded (or, without a fold, the body itself)."""
        return self.wrap.block

    @property
    def unwrap_block(self) -> Block | None:
        """The body after the fold; None stands for the identity."""
        return self.unwrap.first_block

    @property
    def state_types(self) -> tuple[Attribute, ...]:
        """The types that `wrap` yields: the parts of the folded state."""
        return tuple(yielded_types(self.wrap_block))

    @property
    def is_formed(self) -> bool:
        """Whether others may look at it: typed properties, bodies, and projections that compose.

        What uses a kernel is verified before or after it; the kernel itself says what is wrong.
        """
        iterators = self.properties.get("iterators")
        if not isinstance(iterators, IteratorsAttr) or len(self.wrap.blocks) != 1:
            return False
        if len(self.unwrap.blocks) > 1:
            return False
        domain = self.properties.get("domain")
        if isinstance(domain, DomainAttr) and domain.data.rank != len(iterators.data):
            return False
        kept = sum(kind != "fold" for kind in iterators.data)
        inputs = {"in": len(iterators.data), "extra": kept, "out": kept}
        for role, count in inputs.items():
            maps = self.properties.get(f"{role}_projections")
            if not isinstance(maps, ArrayAttr):
                return False
            for projection in cast(ArrayAttr[Attribute], maps):
                if not isinstance(projection, ProjectionAttr) or projection.data.inputs != count:
                    return False
        return True

    def kept_range(self, box: Range) -> Range:
        """The kept dimensions of a range of the index space."""
        return box.select(self.kept_dims)

    def fold_range(self, box: Range) -> Range:
        """The fold dimensions of a range of the index space."""
        return box.select(self.fold_dims)

    def whole_range(self, kept: Range, folded: Range) -> Range:
        """The range of the index space with these kept and fold dimensions."""
        order = (*self.kept_dims, *self.fold_dims)
        return kept.product(folded).select([order.index(dim) for dim in range(len(order))])

    def selections(
        self, box: Range, tensors: Sequence[Range], *, partial: bool = False
    ) -> list[Range]:
        """The cells that a range of the index space reads of the inputs, then of the extras.

        `tensors` are the ranges that they hold. Extras are left out of a `partial` fold.
        """
        inputs = len(self.in_projections)
        kept_box = self.kept_range(box)
        extras = () if partial else zip(self.extra_maps, self.extra_fills, strict=True)
        found = [
            selected(projection, box, tensor, fill)
            for projection, fill, tensor in zip(self.in_maps, self.in_fills, tensors, strict=False)
        ]
        return found + [
            selected(projection, kept_box, tensor, fill)
            for (projection, fill), tensor in zip(extras, tensors[inputs:], strict=False)
        ]

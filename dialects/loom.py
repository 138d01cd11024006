"""The loom dialect: static graphs of block operations over positioned tensors.

Everything a dense tensor program does is maps, monoids and arrows. One `loom.operation` is one
map-fold over an index space:

    out[P_out(i)] = unwrap(FOLD over k of wrap(in_1[P_1(i, k)], ...), extra_1[Q_1(i)], ...)

The index space is one range over all dimensions; each dimension is a `map`, a `fold` or a `scan`.
Input projections are over the whole index space; extra and output projections are over the *kept*
dimensions (all but the folds), in order. Example, `Y = relu(X W + b)`:

    %y = loom.operation @linear_relu over <[0, 0, 0] : [64, 32, 784]> [map, map, fold] by @add
           ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
           extra(%b : (d0, d1) -> (d1))
           outs((d0, d1) -> (d0, d1))
           wrap (%xe: f32, %we: f32) {
             %p = arith.mulf %xe, %we : f32
             loom.yield %p : f32
           }
           unwrap (%acc: f32, %be: f32) {
             %s = arith.addf %acc, %be : f32
             %z = arith.constant 0.0 : f32
             %r = arith.maximumf %s, %z : f32
             loom.yield %r : f32
           }
           : (!loom.tensor<[0, 0] : [64, 784], f32>, !loom.tensor<[0, 0] : [784, 32], f32>,
              !loom.tensor<[0] : [32], f32>) -> !loom.tensor<[0, 0] : [64, 32], f32>

A scan keeps every state of the fold along one dimension, in increasing coordinate, the point itself
included: unwrap sees the running state. An operation folds or scans, never both. Running sums:

    %y = loom.operation @cumsum over <[0, 0] : [4, 9]> [map, scan] by @add
           ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
           wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x

An input may leave its tensor when it says what is there, as padding is zero here:

    ins(%x : (d0, d1) -> (d0 + d1 - 1) clip 0.0 : f32, %w : (d0, d1) -> (d1))

A *domain*, `domain(d0 - d1 >= 0)` after `outs(...)`, says which points are folded: those where
every row holds. The others contribute the monoid's zero, whatever their cells are.

Where a projection selects a box of each tensor per point, the body takes a block, which it reads at
computed places (`loom.read` has an example): an embedding, a gather.

Views (`loom.view`, `loom.reshape`, `loom.assemble`) move no data. Sharding is an attribute first
(`shards <grid [[0, 32, 64], [0, 32], [0, 784]]>` before `wrap`); `loom.kernel`,
`loom.application` and `loom.merge` say it shard by shard. Nothing is silent: every rule about
ranges, projections, shards, bodies and definition order is verified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    Operation,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolOpInterface,
)

from tapestry.dialects import _loom_dispatch as dispatch_rules
from tapestry.dialects import _loom_syntax as syntax
from tapestry.dialects import _loom_verify as rules
from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.dialects._loom_blocks import BlockType, ReadOp, argument_type
from tapestry.dialects._loom_constant import ConstantOp, DataAttr, SideFileAttr
from tapestry.dialects._loom_external import ExternalOp
from tapestry.dialects._loom_fused import FusedOp
from tapestry.dialects._loom_random import RandomOp
from tapestry.dialects._loom_reads import Fill, Read, fills_attr, fills_of, selected
from tapestry.dialects._loom_types import (
    Iterator,
    IteratorsAttr,
    TensorType,
    projections_attr,
    tensor_type,
)
from tapestry.dialects.zspace import DomainAttr, PartitionAttr, ProjectionAttr, RangeAttr
from tapestry.issues import Problem
from tapestry.zspace import AffineMap, Domain, Partition, Projection, Range

__all__ = [
    "ApplicationOp",
    "AssembleOp",
    "BlockSignature",
    "BlockType",
    "ConstantOp",
    "DataAttr",
    "Dispatch",
    "ExternalOp",
    "Fill",
    "FusedOp",
    "IndexOp",
    "Iterator",
    "IteratorsAttr",
    "KernelOp",
    "Loom",
    "MergeOp",
    "MonoidOp",
    "OperationOp",
    "RandomOp",
    "Read",
    "ReadOp",
    "ReshapeOp",
    "SideFileAttr",
    "TensorType",
    "ViewOp",
    "YieldOp",
    "argument_type",
    "find_kernel",
    "projections_attr",
    "selected",
    "tensor_type",
]


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
        terminator = self.wrap_block.last_op
        return () if terminator is None else tuple(v.type for v in terminator.operands)

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
        dims = self.kept_dims
        return Range(tuple(box.start[d] for d in dims), tuple(box.end[d] for d in dims))

    def fold_range(self, box: Range) -> Range:
        """The fold dimensions of a range of the index space."""
        dims = self.fold_dims
        return Range(tuple(box.start[d] for d in dims), tuple(box.end[d] for d in dims))

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


def _reads(
    values: Sequence[SSAValue], maps: Sequence[Projection], fills: Sequence[Fill | None]
) -> list[Read]:
    return [Read(v, p, fill) for v, p, fill in zip(values, maps, fills, strict=True)]


def _with_fills(reads: Sequence[Read | tuple[SSAValue, Projection]]) -> list[Read]:
    return [read if isinstance(read, Read) else Read(*read) for read in reads]


@irdl_op_definition
class OperationOp(BlockSignature):
    """One map-fold over an index space (the module's docstring has an example).

    `@label` names the operation for people, options and kernels; labels need not be unique.
    """

    name = "loom.operation"

    label = prop_def(StringAttr)
    index_range = prop_def(RangeAttr)
    shards = opt_prop_def(PartitionAttr)

    ins = var_operand_def(TensorType)
    extras = var_operand_def(TensorType)
    outs = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(Pure(), IsolatedFromAbove(), DefinedBeforeUse())

    def __init__(
        self,
        label: str,
        index: Range,
        kinds: Sequence[Iterator],
        monoid: str | None,
        ins: Sequence[Read | tuple[SSAValue, Projection]],
        outs: Sequence[tuple[Projection, TensorType]],
        wrap: Region,
        *,
        extras: Sequence[Read | tuple[SSAValue, Projection]] = (),
        unwrap: Region | None = None,
        partition: Partition | None = None,
        inside: Domain | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        in_reads, extra_reads = _with_fills(ins), _with_fills(extras)
        super().__init__(
            operands=[[read.value for read in reads] for reads in (in_reads, extra_reads)],
            result_types=[[tensor for _, tensor in outs]],
            properties={
                "label": StringAttr(label),
                "index_range": RangeAttr(index),
                "iterators": IteratorsAttr(tuple(kinds)),
                "monoid": None if monoid is None else SymbolRefAttr(monoid),
                "in_projections": projections_attr(read.projection for read in in_reads),
                "in_clips": fills_attr([read.fill for read in in_reads]),
                "extra_projections": projections_attr(read.projection for read in extra_reads),
                "extra_clips": fills_attr([read.fill for read in extra_reads]),
                "out_projections": projections_attr(p for p, _ in outs),
                "domain": None if inside is None else DomainAttr(inside),
                "shards": None if partition is None else PartitionAttr(partition),
            },
            attributes=dict(attributes or {}),
            regions=[wrap, Region() if unwrap is None else unwrap],
        )

    @property
    def index(self) -> Range:
        """The index space."""
        return self.index_range.data

    @property
    def in_reads(self) -> list[Read]:
        """What wrap reads."""
        return _reads(self.ins, self.in_maps, self.in_fills)

    @property
    def extra_reads(self) -> list[Read]:
        """What unwrap reads besides the folded state."""
        return _reads(self.extras, self.extra_maps, self.extra_fills)

    @property
    def partition(self) -> Partition | None:
        """How the index space is split, None when it is whole."""
        return None if self.shards is None else self.shards.data

    def sharding_problems(
        self, partition: Partition, outs: Sequence[Projection] | None = None
    ) -> list[Problem]:
        """Why the operation cannot be split as `partition` says; none when it can.

        With `outs`, as if it wrote through those projections from its kept dimensions.
        """
        return rules.sharding_problems(self, partition, outs)

    @classmethod
    def parse(cls, parser: Parser) -> OperationOp:
        return syntax.parse_operation(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_operation(self, printer)

    @property
    def subject(self) -> str:
        return f"@{self.label.data}"

    def problems(self) -> list[Problem]:
        return rules.operation_problems(self)


@irdl_op_definition
class ViewOp(CheckedOperation):
    """A tensor whose cell at `p` is the source's cell at `map(p)`: slice, transpose, broadcast.

    Example:

        %t = loom.view %x : (d0, d1) -> (d1, d0)
               : !loom.tensor<[0, 0] : [2, 3], f32> -> !loom.tensor<[0, 0] : [3, 2], f32>

    Steps and reversals scale rows, a broadcast dimension is read by no row, a squeezed one by a
    constant, and on a diagonal two rows move together:

        %s = loom.view %x : (d0) -> (1, 2 - 2 * d0)
               : !loom.tensor<[0, 0] : [2, 3], f32> -> !loom.tensor<[0] : [2], f32>
        %d = loom.view %x : (d0) -> (d0, d0)
               : !loom.tensor<[0, 0] : [2, 3], f32> -> !loom.tensor<[0] : [2], f32>
    """

    name = "loom.view"

    source = operand_def(TensorType)
    projection = prop_def(ProjectionAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure(), DefinedBeforeUse())

    def __init__(self, source: SSAValue, projection: Projection, result: TensorType) -> None:
        super().__init__(
            operands=[source],
            properties={"projection": ProjectionAttr(projection)},
            result_types=[result],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ViewOp:
        source, projection = syntax.parse_projected(parser)
        attributes = parser.parse_optional_attr_dict()
        (value,), (result,) = syntax.parse_types(parser, [source], results=1)
        op = cls(value, projection, cast(TensorType, result))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(f" : {self.projection.data}")
        syntax.print_attributes(printer, self)
        syntax.print_types(printer, self)

    @property
    def subject(self) -> str:
        return "the view"

    def problems(self) -> list[Problem]:
        return rules.view_problems(self)


@irdl_op_definition
class ReshapeOp(CheckedOperation):
    """The same cells in row-major order, under another shape.

    Example:

        %r = loom.reshape %x : !loom.tensor<[0, 0] : [2, 6], f32> -> !loom.tensor<[0] : [12], f32>
    """

    name = "loom.reshape"

    source = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure(), DefinedBeforeUse())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, result: TensorType) -> None:
        super().__init__(operands=[source], result_types=[result])

    @property
    def subject(self) -> str:
        return "the reshape"

    def problems(self) -> list[Problem]:
        return rules.reshape_problems(self)


@irdl_op_definition
class AssembleOp(CheckedOperation):
    """One tensor from parts, which tile the result's range exactly: concatenate, pad, interleave.

    A part stands where its own range is, or `at` where a placement puts its cells: its cell at `p`
    is the result's cell at `placement(p)`.

    Example:

        %y = loom.assemble %a, %b : !loom.tensor<[0] : [3], f32>, !loom.tensor<[3] : [8], f32>
               -> !loom.tensor<[0] : [8], f32>

        %z = loom.assemble %even at (d0) -> (2 * d0), %odd at (d0) -> (2 * d0 + 1)
               : !loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>
               -> !loom.tensor<[0] : [8], f32>
    """

    name = "loom.assemble"

    placements = opt_prop_def(ArrayAttr[ProjectionAttr])
    parts = var_operand_def(TensorType)
    result = result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure(), DefinedBeforeUse())

    def __init__(
        self,
        parts: Sequence[SSAValue],
        result: TensorType,
        placements: Sequence[AffineMap] | None = None,
    ) -> None:
        """Without `placements`, every part stands where it is."""
        rank = result.box.rank
        plain = placements is None or all(p == AffineMap.identity(rank) for p in placements)
        projections = None if plain else projections_attr(map(Projection.cells, placements or ()))
        super().__init__(
            operands=[parts], properties={"placements": projections}, result_types=[result]
        )

    @property
    def placed(self) -> tuple[AffineMap, ...]:
        """Per part, where in the result its cells are."""
        if self.placements is None:
            identity = AffineMap.identity(tensor_type(self.result).box.rank)
            return (identity,) * len(self.parts)
        return tuple(p.data.map for p in self.placements)

    @classmethod
    def parse(cls, parser: Parser) -> AssembleOp:
        return syntax.parse_assemble(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_assemble(self, printer)

    @property
    def subject(self) -> str:
        return "the assembly"

    def problems(self) -> list[Problem]:
        return rules.assemble_problems(self)


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


@irdl_op_definition
class KernelOp(BlockSignature):
    """A map-fold without operands or range, which `loom.application`s run on shards.

    Example:

        loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0))
          wrap (%x: f32) {
            %y = arith.addf %x, %x : f32
            loom.yield %y : f32
          }
    """

    name = "loom.kernel"

    sym_name = prop_def(SymbolNameConstraint())

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(self, name: str, signature: BlockSignature) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), **syntax.signature_properties(signature)},
            regions=[signature.wrap.clone(), signature.unwrap.clone()],
        )

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        return syntax.parse_kernel(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_kernel(self, printer)

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
    parts of the state over its kept dimensions; `loom.merge` finishes it. An application to a part
    of a scan starts it anew: its states are those of that part alone.

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
    kept dimensions that is finished. Folded states that meet in a cell are merged there. The states
    of a scan lie side by side along it: each goes on from the last state before it. A `partial`
    merge stops before unwrap and yields the merged state, which another merge takes: trees.

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


Loom = Dialect(
    "loom",
    [
        OperationOp,
        FusedOp,
        ViewOp,
        ReshapeOp,
        AssembleOp,
        ConstantOp,
        ExternalOp,
        MonoidOp,
        KernelOp,
        ApplicationOp,
        MergeOp,
        IndexOp,
        RandomOp,
        ReadOp,
        YieldOp,
    ],
    [TensorType, BlockType, IteratorsAttr, DataAttr, SideFileAttr],
)

"""`loom.external`: a kernel that is only a name, with a signature.

A sort, or a vendor's convolution: what it computes is not written in the program, but which boxes
of its tensors each point of its index space reads and writes is, so it splits like anything else.

    %y = loom.external @sort over <[0] : [64]>
           ins(%x : (d0) -> (d0, 0) :> [1, 128]) outs((d0) -> (d0, 0) :> [1, 128])
           parameters {descending = true}
           : (!loom.tensor<[0, 0] : [64, 128], f32>) -> !loom.tensor<[0, 0] : [64, 128], f32>

An implementation is registered per target (`tapestry.runtime.externals`). Every index dimension is
mapped: points do not influence each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
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
from xdsl.traits import Pure

from tapestry.attributes import plain_value
from tapestry.dialects import _loom_syntax as syntax
from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.dialects._loom_types import TensorType, projections_attr, tensor_type
from tapestry.dialects._loom_writes import tilings
from tapestry.dialects.zspace import (
    PartitionAttr,
    ProjectionAttr,
    RangeAttr,
    parse_partition,
    parse_projection,
)
from tapestry.issues import Problem
from tapestry.zspace import Partition, Projection, Range, ZSpaceError


@irdl_op_definition
class ExternalOp(CheckedOperation):
    """A labelled kernel: of each point of the index space, boxes of inputs make boxes of outputs.

    Example:

        %y = loom.external @sort over <[0] : [2]>
               ins(%x : (d0) -> (d0, 0) :> [1, 8]) outs((d0) -> (d0, 0) :> [1, 8])
               : (!loom.tensor<[0, 0] : [2, 8], f32>) -> !loom.tensor<[0, 0] : [2, 8], f32>
    """

    name = "loom.external"

    callee = prop_def(StringAttr)
    index_range = prop_def(RangeAttr)
    in_projections = prop_def(ArrayAttr[ProjectionAttr])
    out_projections = prop_def(ArrayAttr[ProjectionAttr])
    parameters = opt_prop_def(DictionaryAttr)
    shards = opt_prop_def(PartitionAttr)

    ins = var_operand_def(TensorType)
    outs = var_result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure(), DefinedBeforeUse())

    def __init__(
        self,
        callee: str,
        index: Range,
        ins: Sequence[tuple[SSAValue, Projection]],
        outs: Sequence[tuple[Projection, TensorType]],
        *,
        parameters: Mapping[str, Attribute] | None = None,
        partition: Partition | None = None,
    ) -> None:
        super().__init__(
            operands=[[value for value, _ in ins]],
            result_types=[[tensor for _, tensor in outs]],
            properties={
                "callee": StringAttr(callee),
                "index_range": RangeAttr(index),
                "in_projections": projections_attr(p for _, p in ins),
                "out_projections": projections_attr(p for p, _ in outs),
                "parameters": DictionaryAttr(parameters) if parameters else None,
                "shards": None if partition is None else PartitionAttr(partition),
            },
        )

    @property
    def index(self) -> Range:
        """The index space."""
        return self.index_range.data

    @property
    def partition(self) -> Partition | None:
        """How the index space is split, None when it is whole."""
        return None if self.shards is None else self.shards.data

    @property
    def in_maps(self) -> tuple[Projection, ...]:
        """Per input, the box that each point reads."""
        return tuple(p.data for p in self.in_projections)

    @property
    def out_maps(self) -> tuple[Projection, ...]:
        """Per output, the box that each point writes."""
        return tuple(p.data for p in self.out_projections)

    @property
    def map_dims(self) -> tuple[int, ...]:
        """The index dimensions that are mapped: all of them."""
        return tuple(range(self.index.rank))

    @property
    def merged_dims(self) -> tuple[int, ...]:
        """The index dimensions along which states merge: none."""
        return ()

    @property
    def subject(self) -> str:
        return f"@{self.callee.data}"

    def sharding_problems(self, partition: Partition) -> list[Problem]:
        """Why the operation cannot be split as `partition` says; none when it can."""
        try:
            partition.check(self.index)
        except ZSpaceError as error:
            message = f"the shards do not tile the index space <{self.index}>: {error}"
            return [Problem("shard-tiling", message, index=self.index, shards=partition)]
        problems: list[Problem] = []
        for position, projection in enumerate(self.out_maps):
            boxes = [projection.apply_range(part) for part in partition.ranges()]
            try:
                Partition.explicit(boxes).check(projection.apply_range(self.index))
            except ZSpaceError as error:
                message = f"the shards do not write output {position} as boxes: {error}"
                problems.append(Problem("shard-writes", message, projection=projection))
        return problems

    def problems(self) -> list[Problem]:
        problems = _parameters(self.parameters)
        problems += _boxes("input", self.in_maps, self.ins, self.index)
        problems += _boxes("output", self.out_maps, self.outs, self.index)
        if not problems:
            for position, (projection, out) in enumerate(
                zip(self.out_maps, self.outs, strict=True)
            ):
                cells, every = _cell_by_cell(projection, self.index)
                problems += tilings(
                    [ProjectionAttr(cells)], [tensor_type(out)], every, first=position
                )
        if self.partition is not None and not problems:
            problems += self.sharding_problems(self.partition)
        return problems

    @classmethod
    def parse(cls, parser: Parser) -> ExternalOp:
        properties: dict[str, Attribute] = {"callee": parser.parse_symbol_name()}
        parser.parse_keyword("over")
        properties["index_range"] = RangeAttr(syntax.angle_range(parser))
        ins = []
        if parser.parse_optional_keyword("ins") is not None:
            ins = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: syntax.parse_projected(parser)
            )
        parser.parse_keyword("outs")
        outs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_projection(parser)
        )
        if parser.parse_optional_keyword("parameters") is not None:
            properties["parameters"] = DictionaryAttr(parser.parse_optional_attr_dict())
        if parser.parse_optional_keyword("shards") is not None:
            with parser.in_angle_brackets():
                properties["shards"] = PartitionAttr(parse_partition(parser))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        values, results = syntax.parse_types(parser, [operand for operand, _ in ins])
        properties["in_projections"] = projections_attr(p for _, p in ins)
        properties["out_projections"] = projections_attr(outs)
        return cls.create(
            operands=values,
            result_types=results,
            properties=properties,
            attributes={} if attributes is None else attributes.data,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.data)
        printer.print_string(f" over <{self.index}>")
        with printer.indented(2):
            if self.ins:
                printer.print_string("\nins(")
                pairs = list(zip(self.ins, self.in_maps, strict=True))
                printer.print_list(pairs, lambda pair: _print_projected(printer, *pair))
                printer.print_string(")")
            printer.print_string(f"\nouts({', '.join(map(str, self.out_maps))})")
            if self.parameters is not None:
                printer.print_string("\nparameters ")
                printer.print_attr_dict(self.parameters.data)
            if self.partition is not None:
                printer.print_string(f"\nshards <{self.partition}>")
            if self.attributes:
                printer.print_string("\nattributes ")
                printer.print_attr_dict(self.attributes)
            printer.print_string("\n: ")
            printer.print_function_type([value.type for value in self.ins], self.result_types)


def _print_projected(printer: Printer, value: SSAValue, projection: Projection) -> None:
    printer.print_operand(value)
    printer.print_string(f" : {projection}")


def _parameters(given: DictionaryAttr | None) -> list[Problem]:
    """Parameters are values that an implementation can be called with."""
    problems: list[Problem] = []
    if given is None:
        return problems
    for name, value in given.data.items():
        try:
            plain_value(value)
        except ValueError as error:
            problems.append(Problem("parameter", f"parameter {name}: {error}", parameter=name))
    return problems


def _boxes(
    what: str, projections: Sequence[Projection], values: Sequence[SSAValue], index: Range
) -> list[Problem]:
    """Ranks, and boxes that are inside their tensors."""
    if len(projections) != len(values):
        message = f"{len(values)} {what} tensors, but {len(projections)} projections"
        return [Problem("operand-count", message)]
    problems: list[Problem] = []
    for position, (projection, value) in enumerate(zip(projections, values, strict=True)):
        box = tensor_type(value).box
        if (projection.inputs, projection.outputs) != (index.rank, box.rank):
            message = (
                f"{what} {position} is projected from {projection.inputs} dimensions to "
                f"{projection.outputs}, but the index space has {index.rank} and the tensor "
                f"{box.rank}"
            )
            problems.append(Problem("projection-rank", message, projection=projection, tensor=box))
        elif not index.is_empty and not box.contains_range(projection.apply_range(index)):
            selected = projection.apply_range(index)
            message = f"{what} {position} selects <{selected}>, outside its tensor <{box}>"
            problems.append(Problem("out-of-bounds", message, selected=selected, tensor=box))
    return problems


def _cell_by_cell(projection: Projection, index: Range) -> tuple[Projection, Range]:
    """The same cells, one for each point of an index space with the box's dimensions added.

    Point (i, j) selects the cell `A i + b + j`, where j runs through the box's shape. So a rule
    about single cells holds of boxes.
    """
    rank = projection.outputs
    rows = [
        [*row, *(int(column == at) for column in range(rank))]
        for at, row in enumerate(projection.map.matrix)
    ]
    cells = Projection.of(rows, projection.map.offset, inputs=index.rank + rank)
    every = index.product(Range.of(projection.shape))
    return cells, every

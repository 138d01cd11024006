"""The weft dialect: what is applied, before it is known how it is computed.

A program applies metakernels by name; parameters are a dictionary:

    func.func @main(%x: !loom.tensor<[0, 0] : [64, 784], f32>,
                    %w: !loom.tensor<[0, 0] : [784, 10], f32>,
                    %b: !loom.tensor<[0] : [10], f32>) -> !loom.tensor<[0] : [64], i64> {
      %y = weft.apply @linear(%x, %w, %b)
             : (!loom.tensor<[0, 0] : [64, 784], f32>, !loom.tensor<[0, 0] : [784, 10], f32>,
                !loom.tensor<[0] : [10], f32>) -> !loom.tensor<[0, 0] : [64, 10], f32>
      %k = weft.apply @argmax(%y) {axis = 1 : i64}
             : (!loom.tensor<[0, 0] : [64, 10], f32>) -> !loom.tensor<[0] : [64], i64>
      func.return %k : !loom.tensor<[0] : [64], i64>
    }

Operands are in the order of the template's inputs. A list of tensors stands in brackets, and an
optional input that is left out is `[]`:

    %c = weft.apply @concat([%a, %b]) {axis = 0 : i64}
           : (!loom.tensor<[0] : [3], f32>, !loom.tensor<[0] : [5], f32>)
             -> !loom.tensor<[0] : [8], f32>

The pass `weft-apply` turns applications into loom operations. A metakernel is a template of the
library, of a folder given to the pass, or of the module itself (`weft.metakernel`, which comes
first).

Sizes may be symbols: `!weft.tensor<[N, "2 * N"], f32>` is a tensor whose sizes `weft-bind{N=4}`
makes numbers, before `weft-apply`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i32,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AnyOf,
    BaseAttr,
    IRDLOperation,
    MessageConstraint,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolOpInterface

from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.dialects._weft_documents import document_of
from tapestry.dialects._weft_types import SymbolicTensorType
from tapestry.dialects.loom import TensorType
from tapestry.issues import Problem, Violations
from tapestry.locations import location_of
from tapestry.metakernels import Template, WeftError, read_template

__all__ = ["ApplyOp", "MetakernelOp", "SymbolicTensorType", "Weft"]

_TENSOR = MessageConstraint(
    AnyOf((BaseAttr(TensorType), BaseAttr(SymbolicTensorType))),
    "a metakernel is applied to tensors, and gives tensors: !loom.tensor, or !weft.tensor with "
    "symbolic sizes",
)


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """A metakernel applied to tensors.

    Ranks, sizes and dtypes are checked against the template by `weft-apply`, which knows it.

    Example:

        %s = weft.apply @sum(%x) {axis = 0 : i64, keepdim = true}
               : (!loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0, 0] : [1, 3], f32>

    `groups` says which operands stand for which input where some are lists: -1 for one tensor,
    else the length of the list. Without it every operand is one input.
    """

    name = "weft.apply"

    metakernel = prop_def(SymbolRefAttr)
    parameters = prop_def(DictionaryAttr)
    groups = opt_prop_def(DenseArrayBase)

    args = var_operand_def(_TENSOR)
    outs = var_result_def(_TENSOR)

    traits = traits_def(Pure(), DefinedBeforeUse())

    def __init__(
        self,
        metakernel: str,
        args: Sequence[SSAValue | Sequence[SSAValue]],
        result_types: Sequence[Attribute],
        parameters: Mapping[str, Attribute] | None = None,
    ) -> None:
        """A sequence in `args` is a list of tensors, one input."""
        flat, groups = _flattened(args)
        super().__init__(
            operands=[flat],
            result_types=[result_types],
            properties={
                "metakernel": SymbolRefAttr(metakernel),
                "parameters": DictionaryAttr(parameters or {}),
                "groups": groups,
            },
        )

    @property
    def metakernel_name(self) -> str:
        """The name of the template."""
        return self.metakernel.root_reference.data

    @property
    def per_input(self) -> list[SSAValue | list[SSAValue]]:
        """The operands, one entry per input: a tensor, or a list of tensors."""
        if self.groups is None:
            return list(self.args)
        pending = iter(self.args)
        return [
            next(pending) if size < 0 else [next(pending) for _ in range(size)]
            for size in _sizes(self.groups)
        ]

    @classmethod
    def parse(cls, parser: Parser) -> ApplyOp:
        name = parser.parse_symbol_name()

        def parse_input() -> UnresolvedOperand | list[UnresolvedOperand]:
            many = parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_unresolved_operand
            )
            return parser.parse_unresolved_operand() if many is None else many

        given = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_input)
        operands, groups = _flattened(given)
        parameters = parser.parse_optional_attr_dict()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":", " before the types")
        position = parser.pos
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->", " before the result types")
        results = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        )
        if results is None:
            results = [parser.parse_type()]
        return cls.create(
            operands=parser.resolve_operands(operands, inputs, position),
            result_types=results,
            properties={
                "metakernel": SymbolRefAttr(name),
                "parameters": DictionaryAttr(parameters),
                **({} if groups is None else {"groups": groups}),
            },
            attributes={} if attributes is None else attributes.data,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.metakernel_name)
        with printer.in_parens():
            printer.print_list(self.per_input, lambda value: _print_input(printer, value))
        if self.parameters.data:
            printer.print_string(" ")
            printer.print_attr_dict(self.parameters.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_function_type([value.type for value in self.args], self.result_types)

    def verify_(self) -> None:
        if self.groups is None:
            return
        sizes = _sizes(self.groups)
        wanted = sum(1 if size < 0 else size for size in sizes)
        if wanted != len(self.args):
            message = (
                f"groups {list(sizes)} are of {wanted} operands, and there are {len(self.args)}"
            )
            problem = Problem("operand-groups", message, groups=list(sizes))
            raise Violations(f"the application of @{self.metakernel_name}", [problem])


_Operand = TypeVar("_Operand", SSAValue, UnresolvedOperand)


def _flattened(
    given: Sequence[_Operand | Sequence[_Operand]],
) -> tuple[list[_Operand], DenseArrayBase | None]:
    """The operands one after the other, and their groups where some are lists."""
    flat: list[_Operand] = []
    sizes: list[int] = []
    for item in given:
        if isinstance(item, Sequence):
            flat.extend(item)
            sizes.append(len(item))
        else:
            flat.append(item)
            sizes.append(-1)
    plain = all(size < 0 for size in sizes)
    return flat, None if plain else DenseArrayBase.from_list(i32, sizes)


def _sizes(groups: DenseArrayBase) -> tuple[int, ...]:
    return tuple(cast("DenseArrayBase[IntegerType]", groups).get_values())


def _print_input(printer: Printer, value: SSAValue | list[SSAValue]) -> None:
    if isinstance(value, SSAValue):
        printer.print_operand(value)
    else:
        with printer.in_square_brackets():
            printer.print_list(value, printer.print_operand)


@irdl_op_definition
class MetakernelOp(IRDLOperation):
    """A template of the module's own; it takes the place of the library's of the same name.

    The dictionary holds what a template file holds. Where order counts (inputs, outputs, let, fold,
    steps, params) a mapping is written as a list of one-entry dictionaries.

    Example:

        weft.metakernel @square {
          inputs = [{x = {shape = "[$d...]", dtype = "number"}}],
          index = "[$d...]",
          wrap = "x * x"
        }
    """

    name = "weft.metakernel"

    sym_name = prop_def(SymbolNameConstraint())
    template = prop_def(DictionaryAttr)

    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, template: DictionaryAttr) -> None:
        super().__init__(properties={"sym_name": StringAttr(name), "template": template})

    def read(self) -> Template:
        """The template; a WeftError at this operation says what is wrong with it."""
        return read_template(self.sym_name.data, document_of(self.template, location_of(self)))

    @classmethod
    def parse(cls, parser: Parser) -> MetakernelOp:
        name = parser.parse_symbol_name()
        template = DictionaryAttr(parser.parse_optional_attr_dict())
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(name.data, template)
        op.attributes.update({} if attributes is None else attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        printer.print_attr_dict(self.template.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    def verify_(self) -> None:
        try:
            self.read()
        except WeftError as error:
            hint = f" ({error.hint})" if error.hint else ""
            problem = Problem("metakernel", error.message + hint, rule=error.kind)
            raise Violations(f"@{self.sym_name.data}", [problem]) from None


Weft = Dialect("weft", [ApplyOp, MetakernelOp], [SymbolicTensorType])

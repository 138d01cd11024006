"""xDSL's parser, which keeps where every operation, argument and first use of a name is written.

    module = SourceParser(ctx, text, "model.mlir").parse_module()
    location_of(module.body.block.first_op)     # model.mlir:3:1

A program may be a part of a file: `line_offset` lines come before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
)
from xdsl.ir import AttributeInvT, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind


class SourceLexer(MLIRLexer):
    """xDSL's lexer, in time linear in the text.

    Its own pattern for strings takes exponential time on a string that is never closed.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class SourceParser(Parser):
    """xDSL's parser, which also gives operations and arguments the place they were written at."""

    def __init__(self, ctx: Context, text: str, name: str, line_offset: int = 0) -> None:
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(SourceLexer(Input(text, name)))
        self._file = StringAttr(name)
        self._line = 1 + line_offset
        self._line_start = 0
        self._first_use: dict[str, Span[str]] = {}

    def _location(self, position: int) -> FileLineColLoc:
        # Operations start in the order of the text, so lines are counted once.
        content = self.lexer.input.content
        if position < self._line_start:
            self._line -= content.count("\n", position, self._line_start)
        else:
            self._line += content.count("\n", self._line_start, position)
        self._line_start = position
        column = position - content.rfind("\n", 0, position)
        return FileLineColLoc(self._file, IntAttr(self._line), IntAttr(column))

    def parse_operation(self) -> Operation:
        span = self._current_token.span
        place = self._location(span.start)
        try:
            op = super().parse_operation()
        except (VerifyException, NotImplementedError) as error:
            # What is wrong is a type or a property; xDSL does not say of which operation.
            raise ParseError(span, f"this operation is not as its dialect says: {error}") from error
        if op.location == UNKNOWN_LOC:
            op.location = place
        return op

    def resolve_operand(
        self,
        operand: UnresolvedOperand,
        type: AttributeInvT,  # noqa: A002 - the name that the overridden method has
    ) -> SSAValue[AttributeInvT]:
        value = super().resolve_operand(operand, type)
        if isinstance(value, ForwardDeclaredValue):
            self._first_use.setdefault(operand.operand_name, operand.span)
        return value

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as error:
            if error.msg == "Could not parse entire input!":
                raise ParseError(self._current_token.span, self._expected()) from error
            if self._current_token.kind != MLIRTokenKind.EOF:
                raise
            for name in self.forward_ssa_references:
                if name in self._first_use:
                    message = f"%{name} is used, but defined nowhere in its scope"
                    raise ParseError(self._first_use[name], message) from error
            raise

    def _expected(self) -> str:
        """What is wrong where no operation stands."""
        empty = self._current_token.kind == MLIRTokenKind.EOF
        return "there is no program" if empty else "an operation expected, such as func.func @main"

    def parse_optional_region(
        self, arguments: Iterable[Parser.Argument] | None = None
    ) -> Region | None:
        if arguments is not None:
            arguments = tuple(arguments)
            for argument in arguments:
                if argument.location is None:
                    # The name as written: xDSL keeps it as a hint, without a numeric suffix.
                    name = StringAttr(argument.name.text[1:])
                    argument.location = NameLoc(name, self._location(argument.name.start))
        return super().parse_optional_region(arguments)

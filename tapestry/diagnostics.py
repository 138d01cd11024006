"""Errors that a user can act on: what is wrong, where, and what would be right.

Every mistake a user can make is raised as a subclass of `TapestryError`; the tools print it as one
message and exit with 1, never as a traceback:

    model.mlir:7:10: error: input %w has rank 3, but @linear reads a matrix
      hint: reshape %w to [64, 128]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.utils.exceptions import DiagnosticException


@dataclass(frozen=True, order=True)
class Location:
    """A place in a source file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TapestryError(DiagnosticException):
    """A mistake in what the user gave us: program, template, option or data.

    `kind` names the rule that was broken, for tools and tests; subclasses set it. `rule` says it in
    words, where the message alone does not.
    """

    kind: ClassVar[str] = "error"
    rule: ClassVar[str | None] = None

    def __init__(
        self, message: str, *, location: Location | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        rule = f"\n  rule: {self.rule}" if self.rule else ""
        return f"{where}error: {self.message}{hint}{rule}"


class UsageError(TapestryError):
    """A command asked for something that does not exist; tools exit with 2."""

    kind = "usage"


class InvalidProgramError(TapestryError):
    """A program that is well written but breaks a rule of its dialects."""

    kind = "invalid_program"

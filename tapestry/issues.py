"""What verification finds: problems of one operation, and issues that say where.

A rule of a dialect is a function that returns a list of `Problem`s, none when all is right:

    >>> def small(size: int) -> list[Problem]:
    ...     return [] if size < 4 else [Problem("too-big", f"{size} cells; 3 fit", size=size)]
    >>> small(9)[0].kind
    'too-big'

`kind` names the rule and never changes; the message says what is wrong and what would be right, for
people; the contexts hold the ranges, projections and numbers that the rule compared, for tools. An
`Issue` is a problem at its place in the source:

    >>> print(issue_of(small(9)[0], "@pool", "loom.operation", Location("m.mlir", 7, 3)))
    m.mlir:7:3: error: @pool: 9 cells; 3 fit
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from tapestry.diagnostics import InvalidProgramError, Location, TapestryError

Json: TypeAlias = "str | int | bool | list[Json]"


class Problem:
    """One broken rule: its kind, a message, and the data that it looked at.

    `at` is the operation at fault when it is one inside the body of the operation verified.
    """

    __slots__ = ("at", "contexts", "kind", "message")

    def __init__(
        self, kind: str, message: str, /, *, at: Operation | None = None, **contexts: object
    ) -> None:
        self.kind = kind
        self.message = message
        self.at = at
        self.contexts = contexts


class Violations(VerifyException):
    """All problems of one operation together; `subject` is what its messages begin with."""

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{subject}: {problem.message}" for problem in problems))
        self.subject = subject
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Issue:
    """One broken rule at its place; `contexts` names the data that shows it."""

    kind: str
    message: str
    operation: str | None
    location: Location | None
    contexts: Mapping[str, Json]

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        return f"{where}error: {self.message}"

    def to_json(self) -> dict[str, object]:
        """The issue as a JSON object; an unknown place is null."""
        place = self.location
        return {
            "kind": self.kind,
            "message": self.message,
            "operation": self.operation,
            "file": None if place is None else place.file,
            "line": None if place is None else place.line,
            "column": None if place is None else place.column,
            "contexts": dict(self.contexts),
        }


class BrokenRulesError(InvalidProgramError):
    """Everything that verification finds wrong with a program, an issue per line."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        super().__init__(issues[0].message, location=issues[0].location)
        self.issues = tuple(issues)

    def __str__(self) -> str:
        return "\n".join(map(str, self.issues))


def issue_of(
    problem: Problem, subject: str, operation: str | None, location: Location | None
) -> Issue:
    """A problem of one operation, at a place."""
    contexts = {name: _plain(value) for name, value in problem.contexts.items()}
    message = f"{subject}: {problem.message}" if subject else problem.message
    return Issue(problem.kind, message, operation, location, contexts)


def issues_of(error: TapestryError) -> tuple[Issue, ...]:
    """Any error of ours as issues: what it found, or itself as the only one."""
    if isinstance(error, BrokenRulesError):
        return error.issues
    message = f"{error.message} ({error.hint})" if error.hint else error.message
    contexts: dict[str, Json] = {"rule": error.rule} if error.rule else {}
    return (Issue(error.kind, message, None, error.location, contexts),)


def _plain(value: object) -> Json:
    """A context as JSON has it: numbers, text as it is written in IR, and lists of them."""
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple | range):
        return [_plain(element) for element in cast("Iterable[object]", value)]
    return str(value)

"""What verification finds: problems of one operation, and issues that say where.

A rule of a dialect is a function that returns a list of `Problem`s, none when all is right:

    >>> def small(size: int) -> list[Problem]:
    ...     return [] if size < 4 else [Problem("too-big", f"{size} cells; 3 fit", size=size)]
    >>> small(9)[0].kind
    'too-big'

`kind` names the rule and never changes; the message says what is wrong and what would be right, for
people; the contexts hold the ranges, projections and numbers that the rule compared, for tools.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException


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

"""Operations whose verifier lists every problem instead of raising the first.

To add a rule, write a function that returns `list[Problem]` (empty when all is right), in the
`_..._` file of its idea, and add its result to what the operation's `problems` returns:

    def problems(self) -> list[Problem]:
        return rules.view_problems(self)

Give the problem a kind of its own (docs/issues.md lists them), a message that says what would be
right, and the ranges and projections it compared. A rule may assume what xDSL checks first: operand
and result counts, their types, and the types of properties.
"""

from __future__ import annotations

from xdsl.irdl import IRDLOperation

from tapestry.issues import Problem, Violations


class CheckedOperation(IRDLOperation):
    """An operation that knows all its problems."""

    @property
    def subject(self) -> str:
        """What messages about this operation begin with."""
        return self.name

    def problems(self) -> list[Problem]:
        """Every rule that this operation breaks; none when it is right."""
        raise NotImplementedError

    def verify_(self) -> None:
        problems = self.problems()
        if problems:
            raise Violations(self.subject, problems)

"""What a template requires of sizes and parameters: `require: ["$n > 0"]`.

>>> from tapestry.metakernels.parsing import parse_expression
>>> from tapestry.metakernels.text import Text
>>> source = Source(parse_expression("$n > 0"), Text("$n > 0"))
>>> try:
...     check_requirements([source], {"n": 0})
... except RequirementError as error:
...     print(error)
error: require `$n > 0`: 0 > 0 does not hold for $n = 0
"""

from __future__ import annotations

from collections.abc import Iterable

from tapestry.metakernels.errors import RequirementError
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.syntax import Compare, Expr, variables
from tapestry.metakernels.templates import Source
from tapestry.metakernels.values import Names, describe, integer


def check_requirements(requirements: Iterable[Source[Expr]], names: Names) -> None:
    """Raise a RequirementError for the first that does not hold."""
    for source in requirements:
        scope = Scope(names)
        with source.explain("require"):
            if not integer(evaluate(source.tree, scope), "a requirement"):
                known = ", ".join(
                    f"${name} = {describe(names[name])}" for name in sorted(variables(source.tree))
                )
                raise RequirementError(f"{_found(source.tree, scope)} does not hold for {known}")


def _found(tree: Expr, scope: Scope) -> str:
    """A comparison with the values that its sides have; other requirements speak for themselves."""
    if not isinstance(tree, Compare):
        return "it"
    left, right = (describe(evaluate(side, scope)) for side in (tree.left, tree.right))
    return f"{left} {tree.operator} {right}"

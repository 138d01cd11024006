"""What a template requires of sizes and parameters: `require: ["$n > 0"]`.

>>> from tapestry.metakernels.parsing import parse_expression
>>> from tapestry.metakernels.text import Text
>>> source = Source(parse_expression("$n > 0"), Text("$n > 0"))
>>> try:
...     check_requirements([source], {"n": 0})
... except RequirementError as error:
...     print(error)
error: require `$n > 0`: it does not hold for $n = 0
"""

from __future__ import annotations

from collections.abc import Iterable

from tapestry.metakernels.errors import RequirementError
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.syntax import Expr, variables
from tapestry.metakernels.templates import Source
from tapestry.metakernels.values import Names, describe, integer


def check_requirements(requirements: Iterable[Source[Expr]], names: Names) -> None:
    """Raise a RequirementError for the first that does not hold."""
    for source in requirements:
        with source.explain("require"):
            if not integer(evaluate(source.tree, Scope(names)), "a requirement"):
                known = ", ".join(
                    f"${name} = {describe(names[name])}" for name in sorted(variables(source.tree))
                )
                raise RequirementError(f"it does not hold for {known}")

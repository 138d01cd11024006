"""What two programs take and give: they can be equal only where that is the same.

Arguments correspond by position, whatever their names.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tapestry.runtime.program import arguments, outputs


def signature_mismatch(a: ModuleOp, b: ModuleOp) -> str | None:
    """How the signatures of two programs' @main differ; None when they agree."""
    taken_a, taken_b = arguments(a), arguments(b)
    if len(taken_a) != len(taken_b):
        return f"the first takes {_count(len(taken_a), 'argument')}, the second {len(taken_b)}"
    for place, (x, y) in enumerate(zip(taken_a, taken_b, strict=True)):
        if x.type != y.type:
            first, second = f"{x.type} (%{x.name})", f"{y.type} (%{y.name})"
            return f"argument {place} is {first} in the first, {second} in the second"
    given_a, given_b = outputs(a), outputs(b)
    if len(given_a) != len(given_b):
        return f"the first returns {_count(len(given_a), 'tensor')}, the second {len(given_b)}"
    for place, (x, y) in enumerate(zip(given_a, given_b, strict=True)):
        if x != y:
            return f"result {place} is {x} in the first, {y} in the second"
    return None


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"

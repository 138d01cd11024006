"""Operations that an option of a pass names by label.

operation_named(module, "relu", "loom-fuse")      # @relu, which stands in no group
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.passes.loom.rebuilding.bodies import in_group


def operation_named(module: ModuleOp, label: str, asked_by: str) -> loom.OperationOp:
    """The operation of that label outside of groups; UsageError where there is not one."""
    found = [
        op
        for op in module.walk()
        if isinstance(op, loom.OperationOp) and op.label.data == label and not in_group(op)
    ]
    if len(found) != 1:
        raise UsageError(
            f"{asked_by}: there are {len(found)} operations @{label} outside of groups, not one"
        )
    return found[0]

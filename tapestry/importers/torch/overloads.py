"""What PyTorch says of its operators, with types.

overload_named("aten.cummax.default").random       # False
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload


@dataclass(frozen=True)
class Overload:
    """An operator: `positional` are the arguments that may be given by position, in order."""

    name: str
    call: Callable[..., Any]
    positional: tuple[str, ...]
    writes: bool
    """Whether it writes into an argument."""
    random: bool
    depends_on_data: bool
    """Whether its result is a number that only the data decides."""
    returns: bool
    """Whether it has a result at all."""


def overload_of(target: object) -> Overload | None:
    """The operator that a node calls; None where it calls something else."""
    operator: Any = target
    if not isinstance(target, OpOverload):
        return None
    schema: Any = operator._schema  # noqa: SLF001 (there is no public way to a schema)
    return Overload(
        str(operator),
        operator,
        tuple(argument.name for argument in schema.arguments if not argument.kwarg_only),
        schema.is_mutable,
        torch.Tag.nondeterministic_seeded in operator.tags,
        torch.Tag.data_dependent_output in operator.tags,
        bool(schema.returns),
    )


def overload_named(name: str) -> Overload:
    """The operator that PyTorch prints as `name`."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    overload = overload_of(found)
    if overload is None:
        raise ValueError(f"{name} is no operator")
    return overload


def takes_functions(target: object) -> bool:
    """Whether a node calls an operator on graphs (a branch, a loop), which is none on tensors."""
    return isinstance(target, HigherOrderOperator)

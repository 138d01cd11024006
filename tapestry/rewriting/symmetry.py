"""Whether an application is the same with its two operands exchanged.

    >>> from tapestry.metakernels import TensorSpec, expand, load_library
    >>> library, x, y = load_library(), TensorSpec((4,), "f32"), TensorSpec((), "f16")
    >>> for name in ("add", "sub"):
    ...     orders = [expand(library.get(name), pair, {}, library) for pair in ((x, y), (y, x))]
    ...     print(name, commutes(*orders))
    add True
    sub False

Seen from what the application expands to, so for its own dtypes and parameters: `a + alpha * b` is
the same only where alpha is 1. Bodies are compared without the order of the operands of scalar
operations that have none; floats are the same in either order, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tapestry.metakernels.expansion import Expansion, MapFold
from tapestry.metakernels.scalars import Cast, Cell, Operation, Read, Scalar

_UNORDERED: Final = frozenset({"add", "mul", "min", "max", "eq", "ne", "and", "or", "xor"})


def commutes(one: Expansion, other: Expansion) -> bool:
    """Whether `one` computes what `other` does, the same metakernel on exchanged operands."""
    body, exchanged = one.body, other.body
    if not isinstance(body, MapFold) or not isinstance(exchanged, MapFold):
        return False
    first, second = (tensor.name for tensor in one.inputs)
    back = replace(
        other,
        inputs=one.inputs,
        reads=other.reads[::-1],
        fills=other.fills[::-1],
        body=replace(
            _canonical(exchanged, {first: second, second: first}),
            ins=tuple(sorted(1 - position for position in exchanged.ins)),
            extras=tuple(sorted(1 - position for position in exchanged.extras)),
        ),
    )
    forth = replace(
        _canonical(body, {}), ins=tuple(sorted(body.ins)), extras=tuple(sorted(body.extras))
    )
    return back == replace(one, body=forth)


def _canonical(body: MapFold, names: Mapping[str, str]) -> MapFold:
    """The body with inputs renamed, and operands sorted where their order says nothing."""
    return replace(
        body,
        wrap=tuple(_scalar(part, names) for part in body.wrap),
        unwrap=None if body.unwrap is None else tuple(_scalar(p, names) for p in body.unwrap),
    )


def _scalar(body: Scalar, names: Mapping[str, str]) -> Scalar:
    match body:
        case Cell(name):
            return replace(body, name=names.get(name, name))
        case Read(name, indices, otherwise):
            return replace(
                body,
                name=names.get(name, name),
                indices=tuple(_scalar(index, names) for index in indices),
                otherwise=None if otherwise is None else _scalar(otherwise, names),
            )
        case Cast(operand):
            return replace(body, operand=_scalar(operand, names))
        case Operation(name, operands):
            parts = [_scalar(operand, names) for operand in operands]
            ordered = sorted(parts, key=repr) if name in _UNORDERED else parts
            return replace(body, operands=tuple(ordered))
        case _:
            return body

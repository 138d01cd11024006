"""Points of the integer lattice, their partial order, and lists of dimensions.

A point is a plain tuple of Python integers, so it is exact at any size. Points are compared
coordinate by coordinate; some are incomparable:

    >>> compare((0, 0), (0, 1)), compare((0, 1), (1, 0))
    ('lt', 'incomparable')

Dimensions count from 0, or from the end when negative; the `resolve_*` functions normalize them:

    >>> resolve_dim(-1, 3), resolve_permutation((-1, 0, 1), 3)
    (2, (2, 0, 1))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index, le
from typing import Literal, TypeAlias, TypeVar

from tapestry.zspace.errors import (
    DimMismatchError,
    DuplicateError,
    IndexOutOfRangeError,
    InvalidArgumentError,
    InvalidPermutationError,
)

Point: TypeAlias = tuple[int, ...]
Ordering: TypeAlias = Literal["lt", "eq", "gt", "incomparable"]

T = TypeVar("T")

_INT_ONLY = frozenset((int,))


class Indeterminate(int):
    """An integer that stands for more than its value; points hold it as it is."""


def as_point(values: Iterable[int]) -> Point:
    """`values` as a tuple of Python integers, so that NumPy integers cannot overflow later."""
    point = tuple(values)
    if _INT_ONLY.issuperset(map(type, point)):
        return point
    try:
        return tuple(x if isinstance(x, Indeterminate) else index(x) for x in point)
    except TypeError as error:
        raise InvalidArgumentError(f"a point is made of integers: {error}") from error


def format_point(point: Sequence[int]) -> str:
    """The text of a point in IR: `[0, -1]`."""
    return f"[{', '.join(map(str, point))}]"


def require_rank(point: Sequence[int], rank: int, what: str) -> None:
    """Raise DimMismatchError unless `point`, called `what` there, has `rank` coordinates."""
    if len(point) != rank:
        raise DimMismatchError(
            f"{what} {format_point(point)} has {len(point)} dimensions where {rank} are needed"
        )


def less_equal(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether `a <= b` in every coordinate."""
    _require_same_rank(a, b)
    return all(map(le, a, b))


def less(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether `a <= b` in every coordinate and `a != b`."""
    return less_equal(a, b) and tuple(a) != tuple(b)


def compare(a: Sequence[int], b: Sequence[int]) -> Ordering:
    """Where `a` stands to `b` in the partial order."""
    below, above = less_equal(a, b), less_equal(b, a)
    if below and above:
        return "eq"
    if below:
        return "lt"
    return "gt" if above else "incomparable"


def resolve_dim(dim: int, rank: int) -> int:
    """`dim` of a value with `rank` dimensions as a number in [0, rank); negatives from the end."""
    if not -rank <= dim < rank:
        raise IndexOutOfRangeError(
            f"dimension {dim} does not exist: there are {rank}"
            + (f", so it must be in [{-rank}, {rank - 1}]" if rank else "")
        )
    return dim % rank


def resolve_dims(dims: Sequence[int], rank: int) -> Point:
    """Every one of `dims` resolved, in order; a dimension named twice is a DuplicateError."""
    resolved = tuple([d if 0 <= d < rank else resolve_dim(d, rank) for d in dims])
    if len(set(resolved)) != len(resolved):
        raise DuplicateError(f"dimensions {format_point(dims)} name one dimension twice")
    return resolved


def resolve_permutation(permutation: Sequence[int], rank: int) -> Point:
    """`permutation` of `rank` dimensions, resolved and checked to name each dimension once."""
    require_rank(permutation, rank, "permutation")
    resolved = tuple(resolve_dim(dim, rank) for dim in permutation)
    if len(set(resolved)) != rank:
        raise InvalidPermutationError(
            f"{format_point(permutation)} is not a permutation of {rank} dimensions: "
            "each must appear once"
        )
    return resolved


def permute(values: Sequence[T], permutation: Sequence[int]) -> tuple[T, ...]:
    """`values` reordered: `result[i] = values[permutation[i]]`."""
    return tuple(values[dim] for dim in resolve_permutation(permutation, len(values)))


def _require_same_rank(a: Sequence[int], b: Sequence[int]) -> None:
    if len(a) != len(b):
        raise DimMismatchError(
            f"{format_point(a)} has {len(a)} dimensions and {format_point(b)} has {len(b)}"
        )

"""What can be wrong with a point, a range, a map or a partition: one class per rule.

    >>> from tapestry.zspace import Range, ZSpaceError
    >>> try:
    ...     Range((4, 0), (3, 3))
    ... except ZSpaceError as error:
    ...     print(error.kind)
    invalid_range

The messages say what is wrong and what would be right. They hold no file name or line, because the
geometry knows none: who reads text (a parser, a verifier) adds the place.
"""

from __future__ import annotations

from typing import ClassVar


class ZSpaceError(ValueError):
    """A value that breaks a rule of the geometry; `kind` names the rule."""

    kind: ClassVar[str] = "zspace"


class DimMismatchError(ZSpaceError):
    """Two values that must have the same number of dimensions do not."""

    kind = "dim_mismatch"


class IndexOutOfRangeError(ZSpaceError):
    """A dimension, a point or a range lies outside what it refers to."""

    kind = "index_out_of_range"


class InvalidPermutationError(ZSpaceError):
    """A list of dimensions is not a permutation of all of them."""

    kind = "invalid_permutation"


class DuplicateError(ZSpaceError):
    """A dimension is listed twice."""

    kind = "duplicate"


class BroadcastMismatchError(ZSpaceError):
    """Shapes do not broadcast together."""

    kind = "broadcast_mismatch"


class InvalidRangeError(ZSpaceError):
    """A range ends before it starts."""

    kind = "invalid_range"


class EmptyRangeError(ZSpaceError):
    """An empty range was asked for one of its points."""

    kind = "empty_range"


class InvalidArgumentError(ZSpaceError):
    """An argument has a value for which the question has no answer."""

    kind = "invalid_argument"

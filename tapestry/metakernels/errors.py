"""What can be wrong with a template, an expression or an application: one class per rule.

    >>> from tapestry.metakernels import WeftError, match_pattern
    >>> try:
    ...     match_pattern("[$a, $b]", [1])
    ... except WeftError as error:
    ...     print(error.kind)
    rank_mismatch

All are `TapestryError`s: they print as one message, with a place and a hint.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

from tapestry.diagnostics import Location, TapestryError


class WeftError(TapestryError):
    """A mistake in a template, or in what it is applied to; `kind` names the broken rule."""

    kind: ClassVar[str] = "weft"

    def placed(self, location: Location | None) -> WeftError:
        """This error at `location`, unless it has a place."""
        place = self.location or location
        return type(self)(self.message, location=place, hint=self.hint)

    def within(self, context: str, location: Location | None) -> WeftError:
        """This error with `context` before its message, at `location` unless it has a place."""
        return type(self)(
            f"{context}: {self.message}", location=self.location or location, hint=self.hint
        )


class ParseError(WeftError):
    """Text that is not of the language."""

    kind = "parse_error"


class TemplateError(WeftError):
    """A template whose keys or values are not what they have to be."""

    kind = "invalid_template"


class UnsupportedError(WeftError):
    """A construct of the language that is not built yet."""

    kind = "unsupported"


class UnknownNameError(WeftError):
    """A name that nothing binds: a variable, function, input, coordinate, key or metakernel."""

    kind = "unknown_name"


class RankMismatchError(WeftError):
    """A list has another number of elements than what it stands for has dimensions."""

    kind = "rank_mismatch"
    rule = "a list fits its rank: `list...` splices, `n...{k}` repeats, one `...` takes the rest"


class SizeMismatchError(WeftError):
    """A name is bound to two different sizes, or a size is not the one required."""

    kind = "size_mismatch"


class DtypeMismatchError(WeftError):
    """An element type does not fit a template or an operation."""

    kind = "dtype_mismatch"
    rule = "nothing is converted silently, except that floats are rounded to the result's dtype"


class UnderdeterminedPatternError(WeftError):
    """Patterns that can be matched in several ways."""

    kind = "underdetermined_pattern"
    rule = "at most one sequence of a pattern is open: others are bound elsewhere or pinned"


class IndexOutOfRangeError(WeftError):
    """An element, a slice or a selection outside what it refers to."""

    kind = "index_out_of_range"
    rule = "elements, slices and reads stay inside what they refer to, and are never clamped"


class DivisionByZeroError(WeftError):
    """A division or remainder by zero."""

    kind = "division_by_zero"
    rule = "sizes are exact integers"


class InexactDivisionError(WeftError):
    """`/` of integers that leaves a remainder."""

    kind = "inexact_division"
    rule = "sizes are exact integers: `/` leaves no remainder"


class KindMismatchError(WeftError):
    """A number where a list is needed, or the other way round."""

    kind = "kind_mismatch"
    rule = "a number is no list, and a list no number: `...` splices a list, `[i]` picks an element"


class BroadcastMismatchError(WeftError):
    """Shapes that do not broadcast together."""

    kind = "broadcast_mismatch"
    rule = "aligned at their ends, sizes are equal or one of them is 1"


class NotAffineError(WeftError):
    """An expression in coordinates that is not affine."""

    kind = "not_affine"
    rule = "a row is a sum of coordinates times numbers, plus a number"


class BoxError(WeftError):
    """A box (`:>`) that is read like a cell, or a cell that is read like a box."""

    kind = "box"
    rule = "a box is read with `read`, and a cell by the name of its input"


class DomainError(WeftError):
    """A row of a domain that is no affine comparison, or a domain where nothing is folded."""

    kind = "domain"
    rule = "a row of a domain compares affine expressions in coordinates, and its points are folded"


class MonoidError(WeftError):
    """A monoid of a template that is not complete, or that nothing folds by."""

    kind = "monoid"


class ScanError(WeftError):
    """A scan that runs along several dimensions, or beside a fold."""

    kind = "scan"


class ParameterError(WeftError):
    """A parameter that is missing, unknown, of the wrong type or out of range."""

    kind = "parameter"
    rule = "parameters have types, an axis lies within the rank, and only declared ones are given"


class RequirementError(WeftError):
    """A `require` of a template that does not hold."""

    kind = "requirement"


class NotTiledError(WeftError):
    """Output projections that write a cell twice, or leave one out."""

    kind = "not_tiled"
    rule = "each cell of a result is written exactly once"


class EquationError(WeftError):
    """Text that is no equation in Einstein's notation."""

    kind = "equation"


class ListError(WeftError):
    """Entries of lists of tensors, or the names in them, that do not go together."""

    kind = "list"


class FamilyError(WeftError):
    """Members of a family that do not fit its outputs."""

    kind = "family"


class ListLengthError(WeftError):
    """Lists of tensors that share the name of their position, of different lengths."""

    kind = "list_length"


class UnreadCellError(WeftError):
    """A body that reads a tensor which is not there, or a list where one cell is needed."""

    kind = "unread_cell"


class OperandError(WeftError):
    """An application with the wrong number of operands or results."""

    kind = "operand"
    rule = "an application gives every input, and as many results as there are"


class SymbolicSizeError(WeftError):
    """A size that is a symbol where a number is needed."""

    kind = "symbolic_size"
    rule = "what decides how much is built is a number: ranks, positions, counts"


class LimitError(WeftError):
    """A size, a list or a nesting beyond what templates may ask for."""

    kind = "limit"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint: the known names closest to `name`, or all of them when none is close."""
    names = sorted(known)
    by_letters: dict[str, list[str]] = {}
    for each in names:
        by_letters.setdefault(each.lower(), []).append(each)
    found = get_close_matches(name.lower(), by_letters, n=3, cutoff=0.6)
    close = [each for letters in found for each in by_letters[letters]]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known: {', '.join(names)}" if names else "there are none here"

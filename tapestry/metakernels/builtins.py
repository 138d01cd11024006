"""The functions of integer expressions.

    >>> call("broadcast", [(2, 1, 4), (3, 1)], ())
    (2, 3, 4)
    >>> call("resolve_shape", [(2, -1), 12], ())
    (2, 6)

`align` is the one that needs the index space: it compares sizes with index extents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, isqrt, prod
from typing import Final

from tapestry.metakernels.errors import (
    BroadcastMismatchError,
    DivisionByZeroError,
    IndexOutOfRangeError,
    KindMismatchError,
    ParameterError,
    RankMismatchError,
    SizeMismatchError,
    UnknownNameError,
    nearest,
)
from tapestry.metakernels.symbols import ceildiv, extremum, is_symbolic
from tapestry.metakernels.values import (
    Affine,
    Value,
    checked,
    count,
    describe,
    integer,
    integers,
    multiply,
    require_length,
)
from tapestry.zspace import ZSpaceError
from tapestry.zspace import shape as shapes

MAX_DIVIDED: Final = 1 << 40
"""The largest number whose divisors are looked for."""

_Function = Callable[[Sequence[Value], Sequence[int]], Value]


def _list(value: Value, what: str) -> tuple[Value, ...]:
    if isinstance(value, tuple):
        return value
    raise KindMismatchError(f"{what} must be a list, not {describe(value)}")


def _numbers(arguments: Sequence[Value], what: str) -> tuple[int, ...]:
    """The integers of one list, or of several numbers."""
    if len(arguments) == 1:
        return integers(arguments[0], f"the argument of {what}")
    return tuple(integer(value, f"an argument of {what}") for value in arguments)


def _len(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    return len(_list(arguments[0], "the argument of len"))


def _sum(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    return checked(sum(_numbers(arguments, "sum")))


def _prod(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    return checked(prod(_numbers(arguments, "prod")))


def _extremum(name: str, choose: Callable[[Sequence[int]], int]) -> _Function:
    def function(arguments: Sequence[Value], _: Sequence[int]) -> Value:
        numbers = _numbers(arguments, name)
        if not numbers:
            raise KindMismatchError(f"{name} of an empty list")
        return choose(numbers) if not any(map(is_symbolic, numbers)) else extremum(name, numbers)

    return function


def _ceildiv(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    a, b = (integer(value, "an argument of ceildiv") for value in arguments)
    if b == 0:
        raise DivisionByZeroError(f"ceildiv({a}, 0)")
    return ceildiv(a, b) if is_symbolic(a) or is_symbolic(b) else -(-a // b)


def _broadcast(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    lists = [integers(value, "an argument of broadcast") for value in arguments]
    try:
        return shapes.broadcast(*lists)
    except ZSpaceError as error:
        raise BroadcastMismatchError(str(error)) from None


def _broadcast_all(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    return _broadcast(_list(arguments[0], "the argument of broadcast_all"), _)


def _align(arguments: Sequence[Value], extents: Sequence[int]) -> Value:
    """`align(@d, $s)`: the last coordinates of d, held at 0 where the size in s is stretched."""
    coordinates = _list(arguments[0], "the first argument of align")
    sizes = integers(arguments[1], "the second argument of align")
    skipped = len(coordinates) - len(sizes)
    if skipped < 0:
        raise RankMismatchError(
            f"align of {len(coordinates)} coordinates with the {len(sizes)} sizes {describe(sizes)}"
        )
    rows: list[Value] = []
    for coordinate, size in zip(coordinates[skipped:], sizes, strict=True):
        dim = coordinate.unit if isinstance(coordinate, Affine) else None
        if dim is None:
            raise KindMismatchError(
                "the first argument of align must be coordinates, such as @batch"
            )
        if size not in (extents[dim], 1):
            raise BroadcastMismatchError(
                f"size {size} does not stretch to {extents[dim]}; it must be equal or 1"
            )
        rows.append(coordinate if size == extents[dim] else multiply(0, coordinate))
    return tuple(rows)


def _iota(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    length = count(arguments[0], "the argument of iota")
    if length < 0:
        raise IndexOutOfRangeError(f"iota({length}): a list has no negative length")
    return tuple(range(require_length(length)))


def _gcd(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    return gcd(*_numbers(arguments, "gcd"))


def _solve(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    """`solve(a, b, m)`: the least i >= 0 with a i = b modulo m, -1 when there is none."""
    a, b, modulus = (integer(value, "an argument of solve") for value in arguments)
    if modulus < 1:
        raise DivisionByZeroError(f"solve({a}, {b}, {modulus}): the modulus must be at least 1")
    common = gcd(a, modulus)
    if b % common:
        return -1
    reduced = modulus // common
    return b // common * pow(a // common, -1, reduced) % reduced


def _is_perm(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    listed = integers(arguments[0], "the argument of is_perm")
    values = [count(value, "an element of a permutation") for value in listed]
    return int(sorted(values) == list(range(len(values))))


def _inverse(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    """`inverse($perm)`: where each of 0, 1, ... stands in `$perm`."""
    values = integers(arguments[0], "the argument of inverse")
    if sorted(values) != list(range(len(values))):
        raise KindMismatchError(f"inverse of {describe(values)}, which is no permutation")
    return tuple(values.index(place) for place in range(len(values)))


def _others(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    """`others($axes, n)`: those of 0, 1, ..., n - 1 that are not in `$axes`, in order."""
    axes = integers(arguments[0], "the first argument of others")
    count = require_length(integer(arguments[1], "the second argument of others"))
    for axis in axes:
        if not 0 <= axis < count:
            raise IndexOutOfRangeError(f"others({describe(axes)}, {count}): {axis} is out of range")
    return tuple(place for place in range(count) if place not in axes)


def _resolve_shape(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    """`resolve_shape($shape, n)`: the shape with its one -1 replaced so that it has n cells."""
    sizes = integers(arguments[0], "the first argument of resolve_shape")
    cells = integer(arguments[1], "the second argument of resolve_shape")
    text = describe(sizes)
    open_dims = [dim for dim, size in enumerate(sizes) if size == -1]
    if len(open_dims) > 1 or any(size < -1 for size in sizes):
        raise ParameterError(f"shape {text} must have sizes >= 0, and at most one -1 for the rest")
    known = prod(size for size in sizes if size != -1)
    if open_dims and known and cells % known == 0:
        sizes = tuple(cells // known if size == -1 else size for size in sizes)
    elif open_dims:
        raise SizeMismatchError(
            f"{cells} cells cannot fill shape {text}: its other sizes hold {known} cells"
        )
    if prod(sizes) != cells:
        raise SizeMismatchError(f"shape {text} has {prod(sizes)} cells, not {cells}")
    return sizes


def _divisors(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    """The divisors of a number, from 1 on."""
    number = count(arguments[0], "the argument of divisors")
    if not 0 < number <= MAX_DIVIDED:
        raise KindMismatchError(f"divisors({number}): it takes a number from 1 to {MAX_DIVIDED}")
    small = [factor for factor in range(1, isqrt(number) + 1) if number % factor == 0]
    return tuple(sorted({*small, *(number // factor for factor in small)}))


def _contains(arguments: Sequence[Value], _: Sequence[int]) -> Value:
    return int(arguments[1] in _list(arguments[0], "the first argument of contains"))


_FUNCTIONS: Final[dict[str, tuple[int | None, _Function]]] = {
    "len": (1, _len),
    "sum": (None, _sum),
    "prod": (None, _prod),
    "min": (None, _extremum("min", min)),
    "max": (None, _extremum("max", max)),
    "ceildiv": (2, _ceildiv),
    "broadcast": (None, _broadcast),
    "broadcast_all": (1, _broadcast_all),
    "align": (2, _align),
    "iota": (1, _iota),
    "gcd": (None, _gcd),
    "solve": (3, _solve),
    "inverse": (1, _inverse),
    "is_perm": (1, _is_perm),
    "others": (2, _others),
    "divisors": (1, _divisors),
    "resolve_shape": (2, _resolve_shape),
    "contains": (2, _contains),
}
_ARGUMENTS: Final = {**{name: count for name, (count, _) in _FUNCTIONS.items()}, "where": 3}
"""How many arguments each takes; `where` is evaluated lazily, by `evaluation`."""


def check_call(name: str, given: int) -> None:
    """Raise unless there is a function `name` that takes as many arguments as are given."""
    if name not in _ARGUMENTS:
        raise UnknownNameError(f"unknown function {name}", hint=nearest(name, _ARGUMENTS))
    wanted = _ARGUMENTS[name]
    if wanted is not None and given != wanted:
        raise KindMismatchError(
            f"{name} takes {wanted} argument{'s' if wanted > 1 else ''}, not {given}"
        )
    if given == 0:
        raise KindMismatchError(f"{name} takes at least one argument")


def call(name: str, arguments: Sequence[Value], extents: Sequence[int]) -> Value:
    """`name(arguments)`; `extents` are those of the index dimensions."""
    check_call(name, len(arguments))
    return _FUNCTIONS[name][1](arguments, extents)

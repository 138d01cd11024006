"""A program that compiled functions alone compute, as one call of compiled code.

    linked = link(script, inputs)       # after a first call; None where it is more than that
    made = linked(inputs)               # None where arrays lie otherwise

A script is a list of functions, with a little of the interpreter between them and before each. That
is most of a call where few cells are computed. What a function of a script calls is `traced`: on
arrays that lie as the inputs do, and have no cells that anybody reads, it says which compiled
functions it would call, with which addresses. An address is in an input, in a result, in what is
between functions, or else is that of a constant. So a call is told where these three are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapestry.arena import ALIGNMENT
from tapestry.runtime.cpu.addresses import address, is_within
from tapestry.runtime.cpu.chains import Chain
from tapestry.runtime.cpu.multiplying import product_step
from tapestry.runtime.cpu.turns import Place, Step
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.memory import cache_size, maker
from tapestry.runtime.prepared.tapes.places import scratch

_LARGE = 1 << 23
"""Bytes that inputs lie in from which it does not matter what there is between functions."""


@dataclass(frozen=True)
class Traced:
    """What a function of arrays calls: steps whose addresses are known, and those places.

    `made` are its results, and `held` the arrays that steps write to.
    """

    steps: list[Step]
    made: Sequence[Array]
    held: list[Array]


@runtime_checkable
class Traceable(Protocol):
    """A function of a list of arrays that may be compiled code alone."""

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """What it calls; None where it does more, or was not called before."""
        ...


@dataclass(frozen=True)
class Linked:
    """A chain, the strides of what it is given, and how the arrays are made that it fills.

    `between` are the bytes of what functions hand over. What was linked is `held`, as constants are
    where it has them.
    """

    chain: Chain
    lies: tuple[tuple[int, ...], ...]
    makes: tuple[tuple[Any, tuple[int, ...], np.dtype[Any]], ...]
    between: int
    held: Any

    def __call__(self, given: Sequence[Array]) -> list[Array] | None:
        """The results, on memory of their own, row by row."""
        for array, lies in zip(given, self.lies, strict=True):
            if array.strides != lies:
                return None
        made = [make(shape, dtype) for make, shape, dtype in self.makes]
        self.chain.run([*given, *made, scratch(self.between)])
        return made

    def run_at(self, addresses: Sequence[int]) -> None:
        """The same where arrays that lie so are at addresses, those that are made after the others.

        These are row by row.
        """
        self.chain.run_at([*addresses, address(scratch(self.between))])


def link(run: Traceable, given: Sequence[Array]) -> Linked | None:
    """A function as one call, of arrays of such shapes and dtypes that lie like these."""
    if any(array.size == 0 for array in given) or sum(map(_span, given)) > _LARGE:
        return None
    inputs = [_like(array) for array in given]
    traced = run.traced(inputs)
    if traced is None or not Chain.fits(traced.steps):
        return None
    held = {id(array): array for array in traced.held}
    roots = [_root(one, list(held.values())) for one in traced.made]
    makes: list[tuple[Any, tuple[int, ...], np.dtype[Any]]] = []
    for root, one in zip(roots, traced.made, strict=True):
        if root is None or not _is_all(one, root) or sum(root is other for other in roots) > 1:
            return None
        makes.append((maker(one.shape, one.dtype), one.shape, one.dtype))
    starts, between = list[int](), 0
    inner = [one for one in held.values() if not any(one is root for root in roots)]
    for array in inner:
        starts.append(between)
        between += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    if between > cache_size() // 2:
        return None  # parts of a program that write over what they need no more are better
    last = len(inputs) + len(roots)
    places = [(_bounds(array), Place(n, 0)) for n, array in enumerate([*inputs, *traced.made])]
    places += [(_bounds(array), Place(last, at)) for array, at in zip(inner, starts, strict=True)]
    steps = [_placed(step, places) for step in traced.steps]
    lies = tuple(array.strides for array in given)
    return Linked(Chain(steps, last + 1), lies, tuple(makes), between, run)


def traced_in_turn(
    lines: Sequence[Any], values: list[Any], results: Sequence[int]
) -> Traced | None:
    """The lines of a script, whose values are in slots."""
    steps, held = list[Step](), list[Array]()
    for line in lines:
        given = [values[slot] for slot in line.ins]
        if line.memory == "view":
            (array,) = given
            made = [line.function(array)]
            if not is_within(made[0], array):
                return None
        else:
            traced = _traced(line.function, given)
            if traced is None:
                return None
            steps += traced.steps
            held += traced.held
            made = traced.made
        for slot, value in zip(line.outs, made, strict=True):
            values[slot] = value
    return Traced(steps, [values[slot] for slot in results], held)


def traced_product(given: Sequence[Array]) -> Traced | None:
    """What BLAS is called with for the product of two matrices, as `np.matmul` calls it."""
    a, b = given
    if address(a) == address(b) or a.shape[:-2] != b.shape[:-2] or a.dtype != b.dtype:
        return None  # NumPy multiplies a matrix by itself in another way
    out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    step = product_step(a, b, out)
    if step is None:
        return None
    places = zip(step.addresses, (Place(n, 0) for n in range(3)), strict=True)
    found = Step(step.function, step.arguments, tuple(places))
    return Traced([found.at([address(array) for array in (a, b, out)])], [out], [out])


def _traced(function: object, given: Sequence[Any]) -> Traced | None:
    """What a function calls, of arrays."""
    if not all(isinstance(one, np.ndarray) for one in given):
        return None
    if function is np.matmul:
        return traced_product(given)
    return function.traced(given) if isinstance(function, Traceable) else None


def _like(array: Array) -> Array:
    """An array of the same shape and strides on memory that nothing else is on."""
    low, _ = np.lib.array_utils.byte_bounds(array)
    room = np.empty(_span(array) + ALIGNMENT, np.uint8)
    first, size = address(array) - low, array.itemsize
    # As bytes, because NumPy cannot name every type of ml_dtypes.
    cell = room[first : first + size].view(f"V{size}")
    return as_strided(cell, array.shape, array.strides).view(array.dtype)


def _span(array: Array) -> int:
    """The bytes from the first of an array's cells in memory to the last one."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return high - low


def _bounds(array: Array) -> tuple[int, int, int]:
    """The address of the first cell, and where the memory of all cells begins and ends."""
    return address(array), *np.lib.array_utils.byte_bounds(array)


def _root(array: Array, held: Sequence[Array]) -> Array | None:
    """That of some arrays in whose memory another is."""
    return next((one for one in held if is_within(array, one)), None)


def _is_all(array: Array, root: Array) -> bool:
    """Whether an array has the cells of another in order, row by row."""
    alike = array.nbytes == root.nbytes and address(array) == address(root)
    return alike and array.flags.c_contiguous and root.flags.c_contiguous


def _placed(step: Step, places: Sequence[tuple[tuple[int, int, int], Place]]) -> Step:
    """A step whose addresses are away from arrays; what is in none of them stays where it is."""
    found: list[tuple[int, Place]] = []
    for at, _ in step.places:
        there = step.arguments[at]
        for (first, low, high), place in places:
            if low <= there < high:
                found.append((at, Place(place.base, place.offset + there - first)))
                break
    return replace(step, places=tuple(found))

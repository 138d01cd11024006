"""A program that compiled functions alone compute, as one call of compiled code.

    linked = link(program, inputs)      # after a first call; None where it is more than that
    made = linked(inputs)               # None where arrays lie otherwise

A script is a list of functions, with a little of the interpreter between them and before each. That
is most of a call where few cells are computed. What a function of a script calls is `traced`: on
arrays that lie as the inputs do, and have no cells that anybody reads, it says which compiled
functions it would call, with which addresses. An address is in an input, in a result, in what is
between functions, or else is that of a constant. So a call is told where these three are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapestry.arena import ALIGNMENT, Arena, lives, place
from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.addresses import address, is_within
from tapestry.runtime.cpu.blas import NUMPY, Blas, single_threaded_if
from tapestry.runtime.cpu.chains import Chain
from tapestry.runtime.cpu.multiplying import product_step
from tapestry.runtime.cpu.steps import Place, Step
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.memory import maker, reserved
from tapestry.runtime.prepared.tapes.places import scratch

LARGE = 1 << 27
"""Bytes from which it does not matter what there is between functions: of what inputs lie in, or
of all that functions make.
"""

_EVEN = 4
"""Matrices of a stack for each thread from which it matters little that some have one more."""

_FAILURES = 3
"""Calls in which a function failed, after which there are no more: each is done again otherwise."""

_BETWEEN = 1 << 22
"""Bytes of what functions hand over that a thread keeps for a program: of more, a script lets
others have what it does not need at the moment.
"""


@dataclass(frozen=True)
class Traced:
    """What a function of arrays calls: steps whose addresses are known, and those places.

    `made` are its results, arrays or boxes of one, and `held` the new arrays that steps write to.
    """

    steps: list[Step]
    made: Sequence[Any]
    held: list[Array]


def in_turn(parts: Iterable[Traced | None]) -> Traced | None:
    """One after another, with the results of all; None where one does more."""
    steps, made, held = list[Step](), list[Any](), list[Array]()
    for one in parts:
        if one is None:
            return None
        steps += one.steps
        made += one.made
        held += one.held
    return Traced(steps, made, held)


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
    threads: tuple[int, Callable[[], int]] | None
    """How many threads it was made for, and what says how many there are."""
    alone: bool
    """Whether BLAS must have no threads of its own meanwhile."""

    def __call__(self, given: Sequence[Array]) -> list[Array] | None:
        """The results, on memory of their own, row by row; None also where a function failed."""
        for array, lies in zip(given, self.lies, strict=True):
            if array.strides != lies:
                return None
        return self._made_by(self.chain.run, given)

    def of_alike(self, given: Sequence[object]) -> list[Array] | None:
        """The same; None also where they are not as many arrays of the dtypes and shapes that it
        was linked for.
        """
        return self._made_by(self.chain.run_alike, given) if len(given) == len(self.lies) else None

    def _made_by(
        self, run: Callable[[Sequence[Any]], bool], given: Sequence[object]
    ) -> list[Array] | None:
        if not self.is_possible():
            return None
        made = [make(shape, dtype) for make, shape, dtype in self.makes]
        with single_threaded_if(self.alone):
            is_done = run([*given, *made, scratch(self.between)])
        return made if is_done else None

    def run_at(self, addresses: Sequence[int]) -> bool:
        """Whether it was done where arrays that lie so are at addresses: those that are made, row
        by row, after the others. It has to be possible.
        """
        room = scratch(self.between)
        with single_threaded_if(self.alone):
            return self.chain.run_at([*addresses, address(room)])

    def is_possible(self) -> bool:
        """Whether there are the threads now that it was made for, and functions seldom fail."""
        if self.chain.failures >= _FAILURES:
            return False
        return self.threads is None or self.threads[1]() == self.threads[0]


def link(run: Traceable, given: Sequence[Array]) -> Linked | None:
    """A function as one call, of arrays of such shapes and dtypes that lie like these."""
    inputs = linkable(given)
    if inputs is None:
        return None
    try:
        with np.errstate(all="ignore"):  # cells that are copied are anything
            traced = run.traced(inputs) if native.is_ready() else None
    except (MemoryError, OSError):  # the system has no room for all at once
        return None
    if traced is None or not Chain.fits(traced.steps):
        return None
    held = {id(array): array for array in traced.held}
    roots = [owner_of(one, list(held.values())) for one in traced.made]
    makes: list[tuple[Any, tuple[int, ...], np.dtype[Any]]] = []
    for root, one in zip(roots, traced.made, strict=True):
        if root is None or sum(root is other for other in roots) > 1:
            return None
        makes.append((maker(one.shape, one.dtype), one.shape, one.dtype))
    inner = [one for one in held.values() if not any(one is root for root in roots)]
    last = len(inputs) + len(roots)
    places = [(_bounds(array), n) for n, array in enumerate([*inputs, *traced.made, *inner])]
    steps = [_placed(step, places) for step in traced.steps]
    arena = _arena(steps, inner, last)
    if arena.size > _BETWEEN:
        return None
    starts = {last + n: arena.offsets[n] for n in range(len(inner)) if n in arena.offsets}
    steps = [in_one(step, starts, last) for step in steps]
    lies = tuple(array.strides for array in given)
    asked = next(((step.threads, step.ask) for step in steps if step.ask is not None), None)
    alone = any(step.shared for step in steps)
    chain = Chain(steps, last + 1, given)
    return Linked(chain, lies, tuple(makes), arena.size, run, asked, alone)


def linkable(given: Sequence[Array]) -> list[Array] | None:
    """Arrays that lie like some, on memory that nothing else is on; None where they are large."""
    if any(array.size == 0 for array in given) or sum(map(_span, given)) > LARGE:
        return None
    try:
        return [like(array) for array in given]
    except (MemoryError, OSError):  # the system has no room for all at once
        return None


def _arena(steps: Sequence[Step], inner: Sequence[Array], first: int) -> Arena:
    """Where what is between steps lies in one memory; the bases of these begin with the `first`."""
    lived = lives([((), [p.base - first for _, p in s.places if p.base >= first]) for s in steps])
    sizes = {number: inner[number].nbytes for number in lived}
    return place(sizes, lived)


def in_parallel(team: Team | None, rows: Sequence[Sequence[Step]]) -> list[Step] | None:
    """Some steps for each thread of a team, or one after another where one thread has all.

    There are no more rows than threads; of more threads there might be more.
    """
    if len(rows) == 1:
        ask = None if team is None else team.count
        count = 1 if ask is None else ask()
        return [replace(step, threads=count, ask=ask) for step in rows[0]]
    step = None if team is None else team.step(rows)
    return None if step is None else [step]


def traced_product(
    given: Sequence[Array], by: Blas = NUMPY, team: Team | None = None
) -> Traced | None:
    """What BLAS is called with for the product of two matrices, as `np.matmul` calls it.

    Those of a stack are shared out among a team.
    """
    a, b = given
    if address(a) == address(b) or a.shape[:-2] != b.shape[:-2] or a.dtype != b.dtype:
        return None  # NumPy multiplies a matrix by itself in another way
    out = reserved((*a.shape[:-1], b.shape[-1]), a.dtype)
    count = len(a) if a.ndim == 3 else 1
    threads = 1 if team is None else team.count()
    if count % threads and count < _EVEN * threads:
        threads = 1  # some would wait for the others
    rows: list[list[Step]] = []
    for n in range(threads):
        part = slice(n * count // threads, (n + 1) * count // threads)
        own = [one[part] if threads > 1 else one for one in (a, b, out)]
        step = product_step(own[0], own[1], own[2], by)
        if step is None:
            return None
        places = zip(step.addresses, (Place(n, 0) for n in range(3)), strict=True)
        found = Step(step.function, step.arguments, tuple(places))
        rows.append([found.at([address(array) for array in own])])
    steps = in_parallel(team if count > 1 else None, rows)
    return None if steps is None else Traced(steps, [out], [out])


def traced_call(function: object, given: Sequence[Any]) -> Traced | None:
    """What a function calls, of arrays; and of boxes of them, if that is said of it."""
    if not all(isinstance(one, np.ndarray) for one in given):
        takes_boxes = getattr(function, "takes_boxes", False)
        if not takes_boxes or not all(isinstance(one, np.ndarray | BlockCells) for one in given):
            return None
    if function is np.matmul:
        return traced_product(given)
    return function.traced(given) if isinstance(function, Traceable) else None


def like(array: Array) -> Array:
    """An array of the same shape and strides on memory that nothing else is on."""
    low, _ = np.lib.array_utils.byte_bounds(array)
    room = reserved((_span(array) + ALIGNMENT,), np.dtype(np.uint8))
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


def owner_of(array: Array, held: Sequence[Array]) -> Array | None:
    """That of some arrays which has the cells of another in order, row by row, and no others."""
    owner = next((one for one in held if is_within(array, one)), None)
    if owner is None or array.nbytes != owner.nbytes or address(array) != address(owner):
        return None
    return owner if array.flags.c_contiguous and owner.flags.c_contiguous else None


def _placed(step: Step, arrays: Sequence[tuple[tuple[int, int, int], int]]) -> Step:
    """A step whose bases are arrays instead of addresses; what is in none stays where it is.

    That is where a base is: what is reached from it, step by step, may begin elsewhere.
    """
    found: list[tuple[int, Place]] = []
    for at, one in step.places:
        for (first, low, high), base in arrays:
            if low <= one.base < high:
                found.append((at, Place(base, one.base - first + one.offset)))
                break
    return replace(step, places=tuple(found))


def in_one(step: Step, starts: Mapping[int, int], to: int) -> Step:
    """A step whose bases that start somewhere in the one of a number are that one."""
    found = [
        (at, Place(to, starts[one.base] + one.offset) if one.base in starts else one)
        for at, one in step.places
    ]
    return replace(step, places=tuple(found))

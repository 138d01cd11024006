"""Parts that compiled functions alone compute, with no interpreter between these.

    driven = Driven(tapes, into)                    # where each part writes
    left = driven.run(wholes, views, threads)       # the parts that frames must play

A frame of each kind of parts says where its values lie: some bytes after where what it reads, what
it writes, or the thread's memory begins. That is the same for all parts of the kind. So parts are
steps of `tapestry.runtime.cpu.stealing`, as long as arrays lie as they did. A part in which a step
fails, as it reads at a place that is not there, is left to a frame, which says what was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapestry.arena import ALIGNMENT
from tapestry.runtime.cpu.addresses import address, is_within
from tapestry.runtime.cpu.blas import single_threaded_if
from tapestry.runtime.cpu.chains import Chain
from tapestry.runtime.cpu.checking import finite_step
from tapestry.runtime.cpu.multiplying import is_shared, product_step
from tapestry.runtime.cpu.stealing import Kind, PartQueues, can_take
from tapestry.runtime.cpu.steps import Place, Step
from tapestry.runtime.cpu.threads import Workers, thread_count
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Traced, in_one, in_parallel
from tapestry.runtime.prepared.loops.copying import ordered_by, ready_copy
from tapestry.runtime.prepared.loops.loop import Loop, lying
from tapestry.runtime.prepared.memory import CACHE, passes_caches, reserved
from tapestry.runtime.prepared.tapes.frames import Frame, Settled, stored
from tapestry.runtime.prepared.tapes.kinds import Tapes
from tapestry.runtime.prepared.tapes.meanings import Arranged, Product
from tapestry.runtime.prepared.tapes.places import scratch
from tapestry.runtime.prepared.tapes.tape import Call, Tape
from tapestry.zspace import Range

_WORKERS = Workers()

_Wholes = Sequence[Sequence[Any]]
_Views = Sequence[Array]


@dataclass(frozen=True)
class _Ready:
    """Parts, which are run together, and the bytes of memory that each thread needs for them."""

    queues: PartQueues | Chain
    """A chain where there is one part."""
    parts: list[Range]
    kinds: Sequence[Kind]
    starts: Sequence[tuple[int, Sequence[int]]]
    """Of each part its kind, and how far it is from each base of that."""
    numbers: Sequence[Sequence[int]]
    """Of each kind the numbers of its bases in a chain."""
    room: int
    shared: bool
    """Whether BLAS has threads of its own for some of it."""
    multiplies: bool
    """Whether it calls BLAS at all."""

    def steps(self, parts: slice) -> list[Step]:
        """Some parts as steps of a chain: of all that is read, what is written, and memory."""
        return [
            _moved(step, away, self.numbers[kind])
            for kind, away in self.starts[parts]
            for step in self.kinds[kind].steps
        ]


class Driven:
    """The parts of tapes, each of which writes `into` some arrays, of those that a call is for."""

    def __init__(self, tapes: Tapes, into: Callable[[Sequence[Array], Range], list[Array]]) -> None:
        self._tapes = tapes
        self._into = into
        self._possible = tapes.loops is not None and all(
            source.lies for one in tapes.recorded for source in one.sources
        )
        self._ready: dict[object, _Ready | None] = {}

    def run(self, wholes: _Wholes, views: Sequence[Array], threads: int) -> list[Range]:
        """Compute all parts, or some, from what they are taken of; gives those that are left.

        It is on as many threads of Tapestry's, or on all of the host's, if these share loops.
        """
        arrays = [*(one for own in wholes for one in own), *views]
        ready = self._found(arrays, wholes, views)
        if ready is None:
            return list(self._tapes.kinds)
        if isinstance(ready.queues, Chain):
            with single_threaded_if(ready.shared):
                is_done = ready.queues.run([*arrays, scratch(ready.room)])
            return [] if is_done else ready.parts
        team = self._tapes.loops.team if self._tapes.loops is not None else None
        if team is None:
            team, count = _WORKERS, min(threads, thread_count())
        else:
            count = min(team.count(), len(ready.parts))
        rooms = [scratch(ready.room, number) for number in range(count)]
        written = [address(view) for view in views]
        begins = [*map(address, rooms)]
        read = [[*map(address, own), *written] for own in wholes]
        # What addresses of a kind count from: what is read and written, memory, and nothing.
        rows = [[n for own in read for n in (*own, begin, 0)] for begin in begins]
        bases = np.array(rows, np.int64)
        with single_threaded_if(ready.multiplies):
            failed = ready.queues.run(bases, team)
        return [ready.parts[number] for number in failed]

    def traced(
        self, wholes: _Wholes, views: Sequence[Array], made: Sequence[Array]
    ) -> Traced | None:
        """What is called to compute `made`, of which `views` are.

        Parts are shared out among the host's threads, or else there is one.
        """
        arrays = [*(one for own in wholes for one in own), *views]
        ready = self._found(arrays, wholes, views)
        team = self._tapes.loops.team if self._tapes.loops is not None else None
        if ready is None or (team is None and (len(ready.parts) > 1 or ready.shared)):
            return None
        if not Chain.fits([step for kind, _ in ready.starts for step in ready.kinds[kind].steps]):
            return None
        count = 1 if team is None else min(team.count(), len(ready.parts))
        room = -(-ready.room // ALIGNMENT) * ALIGNMENT
        memory = reserved((count * room,), np.dtype(np.uint8))
        rows: list[list[Step]] = []
        for number in range(count):
            begins = [*map(address, arrays), address(memory) + number * room]
            # In turns: of causal rows the last ones are the longest.
            own = ready.steps(slice(number, None, count))
            rows.append([step.at(begins) for step in own])
        steps = in_parallel(team if len(ready.parts) > 1 else None, rows)
        return None if steps is None else Traced(steps, made, [*made, memory])

    def _found(self, arrays: Sequence[Array], wholes: _Wholes, views: _Views) -> _Ready | None:
        """What was prepared for arrays that lie like these; None where they must be played."""
        if not self._possible:
            return None
        key = tuple([(array.shape, array.strides) for array in arrays])
        if key not in self._ready:
            self._ready[key] = self._prepared(wholes, views) if can_take() else None
        return self._ready[key]

    def _prepared(self, wholes: _Wholes, views: Sequence[Array]) -> _Ready | None:
        """All parts as steps; None where other functions compute some of them."""
        tapes = self._tapes
        kinds: list[Kind] = []
        # Outputs are made for this: their cells lie at multiples of their bytes, as is needed then.
        large = (number for number, view in enumerate(views) if passes_caches(view.nbytes))
        passing = frozenset(large)
        room, first, starts = 0, dict[int, list[Array]](), list[tuple[int, list[int]]]()
        for part, kind in tapes.kinds.items():
            given, into = tapes.given(wholes, part), self._into(views, part)
            arrays = [*map(lying, given), *into]
            if kind not in first:
                settled = tapes.frame(part).settle(given, into, passing)
                found = None if settled is None else _steps(settled, given, into, passing)
                if settled is None or found is None or kind != len(kinds):
                    return None
                first[kind] = arrays
                steps, used = found
                room = max(room, used)
                kinds.append(Kind(steps, len(arrays) + 2))
            elif any(not _alike(*pair) for pair in zip(arrays, first[kind], strict=True)):
                return None
            begins = map(address, [*wholes[kind], *views])
            away = [address(one) - begin for one, begin in zip(arrays, begins, strict=True)]
            starts.append((kind, [*away, 0, 0]))
        steps = [step for kind in kinds for step in kind.steps]
        shared = any(step.shared for step in steps)
        numbers = _numbers(wholes, views)
        if len(starts) == 1 and Chain.fits(steps):
            ((_, away),) = starts
            queues = Chain([_moved(step, away, numbers[0]) for step in steps], len(away) - 1)
        else:
            queues = PartQueues(kinds, starts)
        multiplies = _multiplies(tapes)
        parts = list(tapes.kinds)
        return _Ready(queues, parts, kinds, starts, numbers, room, shared, multiplies)


def traced_frame(frame: Frame, given: Sequence[Any], into: Sequence[Array]) -> Traced | None:
    """What is called to play a tape on what is given, into some arrays."""
    settled = frame.settle(given, into)
    found = None if settled is None else _steps(settled, given, into)
    if found is None:
        return None
    steps, used = found
    memory = reserved((used,), np.dtype(np.uint8))
    begins = [*(address(lying(one)) for one in given), *map(address, into), address(memory), 0]
    return Traced([step.at(begins) for step in steps], into, [memory])


def _multiplies(tapes: Tapes) -> bool:
    """Whether a tape has products of matrices."""
    calls = (call for one in tapes.recorded for call in one.tape.calls)
    return any(isinstance(call.meaning, Product) for call in calls)


def _numbers(wholes: _Wholes, views: _Views) -> list[list[int]]:
    """The numbers of each kind's bases, but for its last, where those of all kinds are in order.

    What is read of each kind is before what is written, and the thread's memory last.
    """
    found: list[list[int]] = []
    total, first = sum(map(len, wholes)), 0
    for own in wholes:
        found.append([*range(first, first + len(own)), *range(total, total + len(views) + 1)])
        first += len(own)
    return found


def _moved(step: Step, away: Sequence[int], numbers: Sequence[int]) -> Step:
    """A step of a part that is so far away from its bases, the last of which is nothing.

    The others have `numbers` then.
    """
    arguments, places = list(step.arguments), list[tuple[int, Place]]()
    for at, place in step.places:
        offset = place.offset + away[place.base]
        if place.base == len(away) - 1:
            arguments[at] = offset
        else:
            places.append((at, Place(numbers[place.base], offset)))
    return replace(step, arguments=tuple(arguments), places=tuple(places))


def _steps(
    settled: Settled,
    given: Sequence[Any],
    into: Sequence[Array],
    passing: frozenset[int] = frozenset(),
) -> tuple[list[Step], int] | None:
    """What a tape does as steps, and the bytes of memory that a thread needs for them.

    Bases are what is given, the outputs, the thread's memory, and nothing: a constant is where it
    is. Caches need not have the outputs whose numbers are `passing`. None where it does more than
    loops, products, and views of what they make, or copies of it in another order.
    """
    tape, plan, values = settled.tape, settled.plan, settled.values
    begins = [*(address(lying(one)) for one in given), *map(address, into)]
    room, nothing = len(begins), len(begins) + 1
    begins += [address(plan.scratch), 0]
    base = {slot: number for number, slot in enumerate(tape.sources)}
    base |= dict.fromkeys(tape.constants, nothing)
    copies, used = dict[int, int](), plan.used
    planned = {id(call) for call, _ in plan.steps}
    past = {slot for slot, to in plan.direct.items() if to.number in passing} - _read(tape)
    steps: list[Step] = []
    for call in tape.calls:
        if call.kind == "view" or isinstance(call.meaning, Arranged):
            (slot,) = call.ins
            if id(call) in planned:
                values[call.out] = call.function(values[slot])
            base[call.out] = base[slot]
            if not is_within(values[call.out], values[slot]):
                ordered = ordered_by(call.function, values[slot])
                if ordered is None or used + ordered.cells.nbytes > plan.used + CACHE:
                    return None  # threads would keep that much memory
                cells = ordered.cells
                copy = reserved(cells.shape, cells.dtype)
                values[call.out] = ordered.of(copy)
                base[call.out] = len(begins)
                begins.append(address(copy))
                copies[base[call.out]] = used = -(-used // ALIGNMENT) * ALIGNMENT
                used += copy.nbytes
                step = _copying((base[call.out], copy), (base[slot], cells), begins)
                if step is None:
                    return None
                steps.append(step)
            continue
        for slot in call.outs:
            direct = plan.direct.get(slot)
            base[slot] = room if direct is None else len(given) + direct.number
        made = _of_call(call, values, base, begins, past)
        if made is None:
            return None
        steps += made
    for number in plan.copied:
        slot, out = settled.stores[number], into[number]
        if not isinstance(values[slot], np.ndarray) or values[slot].dtype != out.dtype:
            return None
        cells = np.broadcast_to(stored(values[slot], out), out.shape)
        step = _copying((len(given) + number, out), (base[slot], cells), begins)
        if step is None:
            return None
        steps.append(step)
    return [in_one(step, copies, room) for step in steps], used


def _copying(to: tuple[int, Array], cells: tuple[int, Array], begins: Sequence[int]) -> Step | None:
    """What writes cells to a place, each from its base on; None where no loop does."""
    ready = ready_copy(to[1], cells[1])
    if ready is None:
        return None
    places = _places([cells, to], begins)
    return Step(ready.function, ready.arguments, tuple(zip(ready.addresses, places, strict=True)))


def _read(tape: Tape) -> set[int]:
    """The slots that functions read, or views of them."""
    read = set[int]()
    for call in reversed(tape.calls):
        if call.kind != "view" or call.out in read:
            read.update(call.ins)
    return read


def _of_call(
    call: Call,
    values: Sequence[Any],
    base: dict[int, int],
    begins: Sequence[int],
    past: AbstractSet[int],
) -> list[Step] | None:
    """A loop, or a product, of values where they are; what has to be finite is looked at first.

    Caches need not have what is in the slots `past`.
    """
    slots = [*call.ins, *call.outs]
    arrays = [*(lying(values[slot]) for slot in call.ins), *(values[slot] for slot in call.outs)]
    if isinstance(call.function, Loop):
        passing = frozenset(n for n, slot in enumerate(call.outs) if slot in past)
        ready = call.function.ready([values[slot] for slot in call.ins], arrays, 1, passing)
        may_fail, shared = ready is not None and ready.may_fail, False
    elif isinstance(call.meaning, Product):
        slots = [*call.ins[:2], *call.outs]
        arrays = [*arrays[:2], *arrays[len(call.ins) :]]
        a, b, out = arrays
        ready, may_fail, shared = product_step(a, b, out), False, is_shared(a, b)
    else:
        return None
    if ready is None:
        return None
    places = _places(zip([base[slot] for slot in slots], arrays, strict=True), begins)
    steps: list[Step] = []
    if isinstance(call.meaning, Product) and call.meaning.finite is not None:
        check = finite_step(arrays[call.meaning.finite])
        if check is None:
            return None
        at = ((check.address, places[call.meaning.finite]),)
        steps.append(Step(check.function, check.arguments, at, may_fail=True))
    at = tuple(zip(ready.addresses, places, strict=True))
    return [*steps, Step(ready.function, ready.arguments, at, may_fail, shared)]


def _places(arrays: Iterable[tuple[int, Array]], begins: Sequence[int]) -> list[Place]:
    """Where arrays are, from the base of each on."""
    return [Place(base, address(array) - begins[base]) for base, array in arrays]


def _alike(one: Array, other: Array) -> bool:
    return (one.shape, one.strides, one.dtype) == (other.shape, other.strides, other.dtype)

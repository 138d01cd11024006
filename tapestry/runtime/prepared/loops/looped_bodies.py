"""A body as loops: one for all that it yields of one shape.

    body = LoopedBody(plain, 2, (), (), ((Scalar("arith.mulf", (f4, f4), f4), (0, 1)),), (2,))
    (y,) = body([state, bias])          # instead of a NumPy call per scalar operation

The first call shows the shapes of the arguments, which stay the same. `plain` runs where they are
of different ranks, and where nothing, or not every loop, is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from tapestry.algebra.named import Scalar
from tapestry.codegen.loops import Cell, Graph, Number, kind_of
from tapestry.codegen.loops.cells import written
from tapestry.codegen.loops.vectors import number_of
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.steps import Step
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Traced
from tapestry.runtime.prepared.loops.loop import Loop, NotCompiledError
from tapestry.runtime.prepared.memory import empty

_Run: TypeAlias = Callable[[Sequence[Any]], Sequence[Array]]

_Step: TypeAlias = tuple[Loop, list[int], list[int], list[tuple[tuple[int, ...], np.dtype[Any]]]]
"""A loop, the arguments that it takes, and the slots of what it makes, and its shapes."""


@dataclass(eq=False)
class LoopedBody:
    """What a body yields of arrays, which are in the first slots.

    The coordinates of points along some dimensions, `places`, come after the `arguments`, then
    numbers, then the result of each of `cells`, of values in some slots.
    """

    plain: _Run
    arguments: int
    places: tuple[Array, ...]
    numbers: tuple[Array, ...]
    cells: tuple[tuple[Scalar, tuple[int, ...]], ...]
    wanted: tuple[int, ...]
    team: Team | None = None

    def __post_init__(self) -> None:
        self._run: _Run | None = None
        self._steps: list[_Step] | None = None
        self._given = self.arguments + len(self.places)
        self._first = self._given + len(self.numbers)

    def __call__(self, given: Sequence[Any]) -> Sequence[Array]:
        if self._run is None:
            self._run = self._found(given) or self.plain
        try:
            return self._run(given)
        except NotCompiledError:
            self._run, self._steps = self.plain, None
            return self._run(given)

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that it calls."""
        if self._steps is None:
            return None
        steps, held, found = list[Step](), list[Array](), dict[int, Array]()
        values = [*given, *self.places]
        for loop, ins, slots, _ in self._steps:
            traced = loop.traced([values[place] for place in ins])
            if traced is None:
                return None
            steps += traced.steps
            held += traced.held
            found |= zip(slots, traced.made, strict=True)
        return Traced(steps, [found[slot] for slot in self.wanted], held)

    def _found(self, given: Sequence[Any]) -> _Run | None:
        """The body by loops; None where arguments are no arrays of one rank."""
        if not native.is_ready() or not all(isinstance(one, np.ndarray) for one in given):
            return None
        arrays = [*cast("Sequence[Array]", given), *self.places]
        ranks = {array.ndim for array in arrays}
        if len(ranks) != 1 and len(ranks - {0}) != 1:
            return None
        if any(kind_of(array.dtype) is None for array in arrays):
            return None
        shapes = [*(array.shape for array in arrays), *(() for _ in self.numbers)]
        for _, ins in self.cells:
            shapes.append(np.broadcast_shapes(*(shapes[slot] for slot in ins)))
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for slot in dict.fromkeys(self.wanted):
            by_shape.setdefault(shapes[slot], []).append(slot)
        if () in by_shape and ranks != {0}:
            return None
        steps = [self._step(shape, slots) for shape, slots in by_shape.items()]
        self._steps = steps

        def run(given: Sequence[Any]) -> list[Array]:
            found: dict[int, Array] = {}
            values = [*given, *self.places]
            for loop, ins, slots, kinds in steps:
                outs = [empty(*kind) for kind in kinds]
                loop([values[place] for place in ins], outs)
                found |= zip(slots, outs, strict=True)
            return [found[slot] for slot in self.wanted]

        return run

    def _step(self, shape: tuple[int, ...], wanted: list[int]) -> _Step:
        """The loop for values of a shape."""
        needed = set(wanted)
        for slot in reversed(range(self._first, self._first + len(self.cells))):
            if slot in needed:
                needed.update(self.cells[slot - self._first][1])
        order = sorted(needed)
        place = {slot: n for n, slot in enumerate(order)}
        ins = [slot for slot in order if slot < self._given]
        numbers = [self.numbers[slot - self._given] for slot in order if slot in self._between]
        own = [self.cells[slot - self._first] for slot in order if slot >= self._first]
        pairs = [pair for op, of in own for pair in zip(of, op.operands, strict=True)]
        taken = {slot: _kind(dtype) for slot, dtype in pairs}
        graph = Graph(
            tuple(taken[slot] for slot in ins),
            tuple(Number(number_of(number), _kind(number.dtype)) for number in numbers),
            tuple(
                Cell(partial(written, op), tuple(place[slot] for slot in of), _kind(op.result))
                for op, of in own
            ),
            tuple(place[slot] for slot in wanted),
        )
        about = f"of {len(own)} operations over {'x'.join(map(str, shape))}"
        kinds = [(shape, self.cells[slot - self._first][0].result) for slot in wanted]
        return Loop(graph, shape, (), about, team=self.team), ins, wanted, kinds

    @property
    def _between(self) -> range:
        """The slots of the numbers."""
        return range(self._given, self._first)


def _kind(dtype: np.dtype[Any]) -> str:
    kind = kind_of(dtype)
    assert kind is not None
    return kind

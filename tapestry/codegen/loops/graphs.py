"""What a loop computes for each point, and how arrays lie along its axes.

    Graph(inputs=("float",), numbers=(Number(2.0, "float"),), cells=(Cell(mulf, (0, 1)),),
          stores=(2,))

is `x * 2`: slots are inputs, then numbers, then what cells make, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tapestry.codegen.loops.vectors import Value, Writer

Emit = Callable[[Writer, list[Value]], Value]
"""What writes the instructions of a cell, from the values of its operands."""


@dataclass(frozen=True)
class Number:
    """A constant of a type."""

    value: float
    kind: str


@dataclass(frozen=True)
class Cell:
    """A value that is computed of those in some slots."""

    emit: Emit
    ins: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Fetch:
    """A cell of a box, at places that are in the slots `at`, one per dimension of the box.

    The box has its first cell where the input `array` is, and some extents, none of them 0. At a
    place outside, the value is that in the slot `otherwise`; without one, that fails, but not for
    points that are not `counted`.
    """

    array: int
    at: tuple[int, ...]
    extents: tuple[int, ...]
    kind: str
    otherwise: int | None = None
    counted: int | None = None

    @property
    def ins(self) -> tuple[int, ...]:
        """The slots that it depends on."""
        others = (self.otherwise, self.counted)
        return (self.array, *self.at, *(slot for slot in others if slot is not None))


@dataclass(frozen=True)
class Folded:
    """A slot whose values are combined along the folded axes, starting from `zero`."""

    slot: int
    primitive: str
    zero: float

    @property
    def slots(self) -> tuple[int, ...]:
        return (self.slot,)

    @property
    def zeros(self) -> tuple[float, ...]:
        return (self.zero,)


Merge = Callable[[Writer, Sequence[Value], Sequence[Value]], Sequence[Value]]
"""What writes the instructions that combine two states."""


@dataclass(frozen=True)
class Stays:
    """When a state stays as it is, merged with another, as far as one part of both says.

    It does where its `part` is `more` than the other's, by a comparison such as `ogt` or `slt`,
    which is strict, and false for NaN. Where it is false, the state may stay all the same. So a
    state whose part is the largest of several stays with all that are strictly smaller.
    """

    part: int
    more: str


@dataclass(frozen=True)
class Merged:
    """Slots whose values are the parts of a state: states are merged along the folded axes.

    The order in which that is done is any, unless the graph is running. Where it is, states are
    merged `one_by_one`, each with what was before it, if what a few of them come to may round or
    overflow where that of all before them does not. The parts that are `narrow` are 64-bit integers
    which are only compared and chosen; but for zeros, they are between the least and the most of 32
    bits. Of points with which a state surely `stays` as it is, no more need be known.
    """

    slots: tuple[int, ...]
    merge: Merge
    zeros: tuple[float, ...]
    one_by_one: bool = False
    narrow: frozenset[int] = frozenset()
    stays: Stays | None = None


FOLDS = frozenset(
    {"arith.addf", "arith.mulf", "arith.maximumf", "arith.minimumf"}
    | {"arith.addi", "arith.muli", "arith.maxsi", "arith.minsi"}
    | {"arith.andi", "arith.ori", "arith.xori"}
)
"""Operations that loops fold by."""

ROUNDED = frozenset({"arith.addf", "arith.mulf"})
"""Those whose result depends on the order, by what is rounded."""


@dataclass(frozen=True)
class Graph:
    """What is computed for a point: `stores` are written there, `folds` along the folded axes.

    If it is `running`, one axis is folded, and what that comes to at each place along it is kept.
    """

    inputs: tuple[str, ...]
    numbers: tuple[Number, ...]
    cells: tuple[Cell | Fetch, ...]
    stores: tuple[int, ...]
    folds: tuple[Folded | Merged, ...] = ()
    running: bool = False

    @property
    def kinds(self) -> list[str]:
        """The type of each slot."""
        return [*self.inputs, *(n.kind for n in self.numbers), *(c.kind for c in self.cells)]

    @property
    def boxes(self) -> dict[int, int]:
        """The inputs that are boxes, and how many dimensions these have."""
        return {cell.array: len(cell.extents) for cell in self.fetches}

    @property
    def fetches(self) -> list[Fetch]:
        """The cells at computed places."""
        return [cell for cell in self.cells if isinstance(cell, Fetch)]

    @property
    def may_fail(self) -> bool:
        """Whether there is something that is not to be computed."""
        return any(fetch.otherwise is None for fetch in self.fetches)

    @property
    def folded(self) -> list[int]:
        """The slots of what is folded, fold by fold."""
        return [slot for fold in self.folds for slot in fold.slots]


@dataclass(frozen=True)
class Layout:
    """The axes of the loops, outermost first, and the arrays: inputs, stores, folds.

    `folded` says which axes are folded; either the last ones are, or all but the last of those that
    are not come first. `moves` says per array along which axes it moves, and `dense` whether its
    cells are neighbours along the last. Inputs that are `ahead` are long: what is read of them some
    time later is fetched meanwhile. `boxed` says of which inputs that are boxes, and along which of
    their dimensions, strides are arguments; along others, cells are neighbours. Inputs that are
    `crossed` have neighbours along the axis before the last, and vary along both. The store that is
    `passing` is of so much memory that no cache has what was written first when the last is; it is
    dense, and cells lie at multiples of their bytes. Where there are several `columns`, the last
    axis is of rows of so many cells, one after another. If the axis is folded, that is each column,
    or each row where it is `by_rows`; what rows fold to is one after another. Inputs that are
    `repeated` have the same cells in each row, and those that are `spread` one cell for each, one
    after another; there are none where columns are folded.
    """

    folded: tuple[bool, ...]
    moves: tuple[tuple[bool, ...], ...]
    dense: tuple[bool, ...]
    ahead: tuple[int, ...] = ()
    boxed: tuple[tuple[int, int], ...] = ()
    crossed: tuple[int, ...] = ()
    passing: int | None = None
    columns: int = 1
    repeated: tuple[int, ...] = ()
    spread: tuple[int, ...] = ()
    by_rows: bool = False

    @property
    def arranged(self) -> tuple[int, ...]:
        """The inputs whose cells come again and again."""
        return *self.repeated, *self.spread

    @property
    def rank(self) -> int:
        return len(self.folded)

    @property
    def outer(self) -> int:
        """The axes outside of the folded ones."""
        return self.folded.index(True) if any(self.folded) else self.rank

    def level(self, array: int) -> int:
        """How many axes are outside of what is the same for a cell of an array."""
        return max((n + 1 for n, moves in enumerate(self.moves[array]) if moves), default=0)

    def arguments(self) -> list[tuple[int, int | None]]:
        """What comes after the extents: per array its address (None), and strides by axis.

        After those comes, for each array that is `ahead`, by how many bytes; then the strides that
        are `boxed`; then, where a graph may fail, what says whether it did.
        """
        found: list[tuple[int, int | None]] = []
        for array, moves in enumerate(self.moves):
            found.append((array, None))
            for axis, moving in enumerate(moves):
                if moving and not (axis == self.rank - 1 and self.dense[array]):
                    found.append((array, axis))
        return found

"""What a schedule is chosen for: the tile axes of a kernel, and what is done along them.

    Task("product", "contraction", {"M": 4096, "N": 4096, "K": 4096}, cell=2)

The lowering makes a task from projections and bodies; no operation is known by name.
`tasks(module)` are those of a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Kind = Literal["map", "fold", "scan", "contraction", "group"]

SCHEDULE = "schedule"
"""The attribute of an operation that says its schedule."""

PROCESSORS = 132
"""The multiprocessors of a Hopper GPU: as many persistent programs run at once."""


@dataclass(frozen=True)
class Task:
    """What a schedule is chosen for.

    `lengths` has the tile axes, in order, and the most points of each in a shard; 1 where it is
    unknown. A `cell` of what is multiplied has so many bytes, `split` says that factors are taken
    apart, `dots` that a group multiplies tiles at all, `sums` how many products of rows and columns
    it sums along K. `grid` are the axes that programs are spread over, and `held` those that one
    block has to hold. A fold `across` memory has points that lie side by side; rows are read in
    `walks` walks. `described` says that some tensor can be moved by descriptors, `bounded` that a
    domain ends or starts walks along K, `grows` that they are longer for later rows, `extras` that
    tensors are read when a walk has ended. States of an `atomic` fold are merged by memory itself;
    of one that `matches`, points count whose keys are rows of a program.
    """

    name: str
    kind: Kind
    lengths: Mapping[str, int]
    cell: int = 4
    split: bool = False
    dots: bool = False
    sums: int = 1
    grid: tuple[str, ...] = ()
    held: frozenset[str] = field(default_factory=frozenset[str])
    across: bool = False
    walks: int = 1
    described: bool = False
    bounded: bool = False
    grows: bool = False
    extras: bool = False
    atomic: bool = False
    matches: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", MappingProxyType(dict(self.lengths)))

    def __hash__(self) -> int:
        return hash((self.name, self.kind, tuple(self.lengths.items())))

    @property
    def multiplied(self) -> tuple[str, ...]:
        """The axes that are sides of a `tl.dot`."""
        return tuple(self.lengths) if self.kind == "contraction" or self.dots else ()

    @property
    def spread_columns(self) -> tuple[str, ...]:
        """The columns of products that programs are spread over, in blocks as rows are.

        Where an inner fold is folded again for each block of these, blocks are as long as can be.
        """
        columns = (axis for axis in self.grid if axis.startswith("N") and axis in self.lengths)
        return tuple(columns) if self.dots and not self.folds_inside else ()

    @property
    def folds_inside(self) -> bool:
        """Whether each step of a walk folds another axis first, as attention does for scores."""
        return any(axis.startswith("C") for axis in self.lengths)

    @property
    def swizzles(self) -> bool:
        """Whether programs are along blocks of rows and of columns."""
        return len(self.grid) > 1 and all(axis in self.lengths for axis in self.grid[-2:])

    @property
    def staggers(self) -> bool:
        """Whether blocks of rows with longer walks can come first for many heads together."""
        last = self.grid[-1:] == ("M",) and "M" in self.lengths
        return self.grows and last and len(self.grid) > 1 and self.grid[-2] not in self.lengths

    def loops(self, tile: Mapping[str, int]) -> bool:
        """Whether there is a loop along K that multiplies nothing."""
        return not self.multiplied and self.lengths.get("K", 1) > tile.get("K", 1)

    def has_full(self, tile: Mapping[str, int]) -> bool:
        """Whether some programs have full blocks of the axes that are masked in others."""
        sides = [(self.lengths[a], tile[a]) for a in self.grid if a in self.lengths]
        masked = [(length, size) for length, size in sides if length % size]
        return bool(masked) and all(length > size for length, size in masked)

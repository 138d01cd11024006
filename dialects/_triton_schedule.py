"""How a kernel walks its points, as data: `#triton.schedule<M = 128, N = 128, K = 64, warps = 8>`.

A schedule changes how fast a kernel is, never what it computes. The same text is an option:

    >>> text = "M = 128, N = 256, K = 64, warps = 8, stages = 3, swizzle = 8, loads = descriptor"
    >>> schedule = Schedule.parse(text)
    >>> schedule.tile["N"], schedule.swizzle, schedule.loads
    (256, 8, 'descriptor')
    >>> str(schedule) == text
    True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from types import MappingProxyType

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

LOADS = ("pointer", "descriptor")
"""How cells are loaded: by a pointer each, or by tensor descriptors where these can."""

ORDERS = ("ascending", "descending")
"""In which order programs take blocks of rows."""

MASKS = ("always", "boundary")
"""Where blocks of programs are masked: in all of them, or only where one is not full."""

PIPELINES = ("products", "loads")
"""Which loops have steps in flight: those that multiply tiles, or all that load some."""

AGAIN = ("plain", "kept", "backward")
"""How rows are read that several walks read: as any cells, to be kept, or from the end as well."""

EXTRAS = ("late", "early")
"""When what a walk's end reads is loaded: where it is read, or before the walk."""

VISITS = ("all", "matching")
"""Which points of a fold are visited: all of them, or those that match the rows of a program."""

_WORDS = {
    "loads": LOADS,
    "order": ORDERS,
    "masks": MASKS,
    "pipeline": PIPELINES,
    "again": AGAIN,
    "extras": EXTRAS,
    "visits": VISITS,
}

FLATTEN = "flatten"
"""The attribute of a loop that is to be one with the loop inside of it."""

PIPELINED = "pipelined"
"""The attribute of a loop that loads ahead for as many steps as the kernel has stages."""

BACKWARD = "backward"
"""The attribute of a loop that takes its steps from the last one to the first."""

UNROLL = "unroll"
"""The attribute of a loop that says how many of its steps are written one after another."""

WRITTEN_OUT = "written_out"
"""The attribute of a loop that becomes the code of each of its steps, whose places are numbers."""

MULTIPLE_OF = "multiple_of"
"""The attribute of a remainder that says of the size of which block it is a multiple."""

MATCHES = "matches"
"""The attribute of a loop over the points of a block that match the rows of a program: of each
match the rows that there are, how many points of a program's block lie in one row (0 where it has
one row), and whether there are several runs of these rows.

Rows are taken to be equally frequent.
"""

_NUMBERS = ("warps", "stages", "swizzle", "programs", "segments", "unroll", "parts")


_LEAST = {"stages": 1, "swizzle": 1, "programs": 0, "unroll": 1, "parts": 1}

_MOST = {"stages": 32, "swizzle": 1 << 16, "programs": 1 << 20, "unroll": 64, "parts": 1 << 20}
"""More than any GPU has a use for, and few enough for numbers of blocks in 32 bits."""

MAX_CELLS = 1 << 20
"""The most cells that Triton allows in a tile."""

_DIGITS = 18
"""More than any parameter has."""


class ScheduleError(ValueError):
    """A schedule that is not one, or that a kernel cannot have; says what would be right."""


@dataclass(frozen=True)
class Schedule:
    """How a kernel walks its points.

    `tile` has the points of a block of each tile axis, a power of two, in the order of the axes.
    `warps` run a program, and `stages` steps of a loop are in flight.

    Programs take blocks in row-major order; with `swizzle` = g, those of g blocks of rows take
    their columns together, so that both sides of a product are read from the L2. With `programs`,
    so many programs share all blocks (a *persistent* grid); 0 is a program for each.

    Where walks are longer for later rows, these are best taken first: `order` is `descending`.
    There `swizzle` = g takes the rows of g heads together, the longest walks of all of them first.

    With 2 `segments`, a loop walks blocks that are full, and fully inside a domain, first, without
    masks, and then those on the boundary; where that is one block, it is a step after the loop.
    With `masks` at the `boundary`, programs do likewise: those whose blocks are full branch to code
    without masks, so that neighbouring cells are moved together where lengths are odd.

    Loops that multiply no tiles wait for the loads of each step. With `unroll` = u, those of u
    steps are asked for together, and a loop over no more points, one by one, is written out: where
    each step reads is a number then. With the `pipeline` of `loads`, they are copied to shared
    memory ahead of time, `stages` - 1 steps of them.

    Rows that are walked again are read `again` from memory, but for what is in the L2. `kept`, the
    walks before the last ask the L2 to keep what they read, and the last one to let it go; with
    `backward`, that also begins where the walk before it ended.

    What is read at the end of a walk, such as a residual that is added to a product, is waited for
    there; `extras` that are loaded `early`, before the walk, come meanwhile, and take registers.

    Where a point counts only if a key of it is one of a program's rows, as where rows of a table
    are added up by number, `visits` of what is `matching` compare the keys of a block of K with all
    of the program's rows at once, and go to the points that match, one after another.

    With `parts`, so many programs share the fold of each point, and merge what they folded in
    memory by atomics: in any order, so that the last bits of float sums differ from run to run.
    """

    tile: Mapping[str, int] = field(default_factory=dict[str, int])
    warps: int = 4
    stages: int = 2
    swizzle: int = 1
    programs: int = 0
    loads: str = "pointer"
    segments: int = 1
    order: str = "ascending"
    masks: str = "always"
    unroll: int = 1
    pipeline: str = "products"
    parts: int = 1
    again: str = "plain"
    extras: str = "late"
    visits: str = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "tile", MappingProxyType(dict(self.tile)))
        for axis, size in self.tile.items():
            if size < 1 or size & (size - 1):
                raise ScheduleError(f"{axis} = {size} is not a power of two")
            if size > MAX_CELLS:
                raise ScheduleError(
                    f"{axis} = {size} is more than {MAX_CELLS}, the most cells of a tile"
                )
        if self.warps not in (1, 2, 4, 8, 16, 32):
            raise ScheduleError(f"warps = {self.warps} is not one of 1, 2, 4, 8, 16, 32")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ScheduleError(f"{name} = {value} is less than {least}")
            if value > _MOST[name]:
                raise ScheduleError(f"{name} = {value} is more than {_MOST[name]}")
        if self.segments not in (1, 2):
            raise ScheduleError(f"segments = {self.segments} is not 1 or 2")
        for name, words in _WORDS.items():
            if getattr(self, name) not in words:
                raise ScheduleError(f"{name} = {getattr(self, name)} is not {' or '.join(words)}")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((frozenset(self.tile.items()), self.besides("tile")))

    def besides(self, *names: str) -> tuple[object, ...]:
        """What it says besides some parameters, `tile` among them; equal where it says the same."""
        return tuple(getattr(self, name) for name in _names_besides(names))

    @property
    def blocks(self) -> dict[str, int]:
        """The sizes of blocks by the names that kernels give them."""
        return {f"BLOCK_{axis}": size for axis, size in self.tile.items()}

    @property
    def constants(self) -> dict[str, int]:
        """What a kernel takes at compile time, by name: its blocks, and how programs take them."""
        more = {
            "GROUP_M": self.swizzle if self.swizzle > 1 else 0,
            "PROGRAMS": self.programs,
            "PARTS": self.parts if self.parts > 1 else 0,
        }
        return {**self.blocks, **{name: value for name, value in more.items() if value}}

    @staticmethod
    def of(values: Mapping[str, int | str]) -> Schedule:
        """The schedule with some parameters; names in capitals are tile axes."""
        tile: dict[str, int] = {}
        numbers: dict[str, int] = {}
        words: dict[str, str] = {}
        for name, value in values.items():
            if name in _WORDS:
                words[name] = str(value)
            elif not isinstance(value, int):
                raise ScheduleError(f"{name} = {value} is not a number")
            elif name in _NUMBERS:
                numbers[name] = value
            elif name.isupper():
                tile[name] = value
            else:
                raise ScheduleError(
                    f"{name} is no parameter of a schedule: tile axes (in capitals), "
                    + ", ".join((*_NUMBERS, *_WORDS))
                )
        loads, order, masks, pipeline, again, extras, visits = (
            words.get(name, known[0]) for name, known in _WORDS.items()
        )
        return Schedule(
            tile,
            loads=loads,
            order=order,
            masks=masks,
            pipeline=pipeline,
            again=again,
            extras=extras,
            visits=visits,
            **numbers,
        )

    @staticmethod
    def parse(text: str) -> Schedule:
        """The schedule that a text says: `NAME = VALUE, ...`."""
        values: dict[str, int | str] = {}
        for item in filter(None, map(str.strip, text.split(","))):
            name, sign, value = (part.strip() for part in item.partition("="))
            if not sign or not name or not value:
                raise ScheduleError(f"{item!r} is not NAME = VALUE")
            if name in values:
                raise ScheduleError(f"{name} is said twice")
            if len(value) > _DIGITS:
                raise ScheduleError(f"{name} = {value[:_DIGITS]}... is too long")
            values[name] = int(value) if value.isdecimal() else value
        return Schedule.of(values)

    def __str__(self) -> str:
        """Its text: tile axes, warps, stages, and what differs from the defaults."""
        items: dict[str, int | str] = {**self.tile, "warps": self.warps, "stages": self.stages}
        for one in fields(self):
            if one.name not in ("tile", *items) and getattr(self, one.name) != one.default:
                items[one.name] = getattr(self, one.name)
        return ", ".join(f"{name} = {value}" for name, value in items.items())


@cache
def _names_besides(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a schedule's parameters without some of them."""
    return tuple(one.name for one in fields(Schedule) if one.name not in names)


@irdl_attr_definition
class ScheduleAttr(Data[Schedule]):
    """A schedule: `#triton.schedule<M = 128, N = 128, K = 64, warps = 8, stages = 3>`."""

    name = "triton.schedule"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Schedule:
        values: dict[str, int | str] = {}

        def item() -> None:
            name = parser.parse_identifier(" for a parameter of a schedule")
            if name in values:
                parser.raise_error(f"{name} is said twice")
            parser.parse_punctuation("=")
            number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            values[name] = parser.parse_identifier(" or a number") if number is None else number

        position = parser.pos
        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, item)
        try:
            return Schedule.of(values)
        except ScheduleError as error:
            parser.raise_error(str(error), position)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))

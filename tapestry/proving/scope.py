"""What changed between two programs, cut out: programs of the changed region alone.

    a:  %h = linear(%x, %w)   %r = relu(%h)      %y = softmax(%r)   %z = exp(%y)   return %z
    b:  %h = linear(%x, %w)   %y = relu_softmax(%h)                 %z = exp(%y)   return %z

`%h` is the same in both: the same operation, attributes and operands, all the way up. So the
programs agree when these two do on every `%h`:

    a:  main(%h) { %r = relu(%h)  %y = softmax(%r)  %z = exp(%y)  return %z }
    b:  main(%h) { %y = relu_softmax(%h)  %z = exp(%y)  return %z }

That is `cut_scope`. When they do not agree the programs still may, because `%h` does not take every
value: `rounds` widens the region, in both alike, by the operations just above the cut.

`cut_scopes` goes further, for programs that a pass changed in many places. Values that have kept
their name and type are supposed to be equal, `%y` here; what has to be shown for each is a scope of
its own, and whatever follows from it is the same again (`%z`). Equal scopes are listed once. Each
scope rests only on values that come before its own in `b`, so no two rest on each other. Where a
scope does not agree nothing is shown of the programs: `cut_scope` decides.

Time and space are linear in the size of the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import func
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp, NameLoc, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tapestry.proving.numbering import Numbering, symbols_of
from tapestry.proving.sizes.holding import Held, held_by
from tapestry.runtime.program import ENTRY, arguments, main_function


@dataclass(frozen=True)
class Scope:
    """The changed region of two programs; no results when nothing changed."""

    a: ModuleOp
    b: ModuleOp
    results: int
    """How many values are compared."""
    operations: int
    """How many operations both regions hold."""
    is_whole: bool
    """Whether both start from the programs' own arguments, and end in what they return."""
    count: int = 1
    """How many places of the programs look like this."""


def cut_scope(a: ModuleOp, b: ModuleOp, *, rounds: int | None = 0) -> Scope:
    """The changed region of two verified programs over the same arguments.

    `rounds` widens it that many times by the operations just above the cut; None cuts nowhere but
    at the arguments.
    """
    numbering = Numbering()
    one, other = _number(a, numbering), _number(b, numbering)
    pairs = [
        pair
        for pair in zip(one.returned, other.returned, strict=True)
        if one.numbers[pair[0]] != other.numbers[pair[1]]
    ]
    inputs = set(one.arguments)
    common = set(inputs)
    if rounds is not None:
        common = set(one.numbers.values()) & set(other.numbers.values())

    def regions() -> list[_Region]:
        ends = list(zip(*pairs, strict=True)) or [(), ()]
        return [
            program.region(end, common.__contains__)
            for program, end in zip((one, other), ends, strict=True)
        ]

    found = regions()
    for _ in range(rounds or 0):
        frontier = {number for region in found for number in region.cut} - inputs
        if not frontier:
            break
        common -= frontier
        found = regions()
    cut = {number for region in found for number in region.cut}
    return _scope((one, other), found, pairs, is_whole=cut <= inputs)


def cut_scopes(a: ModuleOp, b: ModuleOp) -> tuple[Scope, ...]:
    """Regions that show the programs equal if all of them agree; none when nothing changed."""
    numbering = Numbering()
    one = _number(a, numbering)
    other = _number(b, numbering, one)
    inputs = set(one.arguments)
    # The place in b from which on a number stands for a value that both programs have.
    first = dict.fromkeys(inputs, -1)
    shared = set(one.numbers.values())
    for place, op in enumerate(other.main.body.block.ops):
        for result in op.results:
            if other.numbers[result] in shared:
                first.setdefault(other.numbers[result], place)
    pairs = list(other.supposed)
    end = len(other.kinds)
    pairs += [
        (y, x, end)
        for x, y in zip(one.returned, other.returned, strict=True)
        if one.numbers[x] != other.numbers[y]
    ]
    scopes: dict[Hashable, Scope] = {}
    for value, pair, place in pairs:

        def known(number: int, place: int = place) -> bool:
            return first.get(number, place) < place

        shown = (pair, value) if place < end else (None, None)
        regions = [one.region([pair], known, shown[0]), other.region([value], known, shown[1])]
        cut = dict.fromkeys(number for region in regions for number in region.cut)
        order = {number: index for index, number in enumerate(cut)}
        key = tuple(
            program.shape(region, end, order)
            for program, region, end in zip((one, other), regions, (pair, value), strict=True)
        )
        seen = scopes.get(key)
        if seen is not None:
            scopes[key] = replace(seen, count=seen.count + 1)
            continue
        is_whole = set(cut) <= inputs and place == end
        scopes[key] = _scope((one, other), regions, [(pair, value)], is_whole=is_whole)
    return tuple(scopes.values())


@dataclass(frozen=True)
class _Region:
    """Operations that compute some results, in order, and the values they start from by number."""

    operations: tuple[Operation, ...]
    cut: dict[int, SSAValue]


@dataclass(frozen=True)
class _Numbered:
    """A program whose values are numbered: equal numbers are equal values."""

    module: ModuleOp
    main: func.FuncOp
    numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    kinds: dict[Operation, int] = field(default_factory=dict[Operation, int])
    held: dict[SSAValue, Held] = field(default_factory=dict[SSAValue, Held])
    """The coordinates that values hold: those that hold any are not cut, for drawn ones are small
    wherever an axis ends."""
    places: dict[Operation, int] = field(default_factory=dict[Operation, int])
    supposed: list[tuple[SSAValue, SSAValue, int]] = field(
        default_factory=list[tuple[SSAValue, SSAValue, int]]
    )
    """Values given the number of one of another program, that one, and their place."""

    @property
    def returned(self) -> Sequence[SSAValue]:
        end = self.main.body.block.last_op
        return () if end is None else end.operands

    @property
    def arguments(self) -> dict[int, tuple[int, str]]:
        """The position and the name of each argument, by number."""
        named = enumerate(arguments(self.module))
        values = (self.numbers[argument] for argument in self.main.args)
        return {n: (place, x.name) for n, (place, x) in zip(values, named, strict=True)}

    def region(
        self,
        ends: Sequence[SSAValue],
        is_known: Callable[[int], bool],
        supposed: SSAValue | None = None,
    ) -> _Region:
        """What computes some values from values whose numbers are known.

        One that is `supposed` is computed too: its number is what has to be shown.
        """
        needed: set[Operation] = set()
        cut: dict[int, SSAValue] = {}
        waiting = list(ends)
        while waiting:
            value = waiting.pop()
            number, owner = self.numbers[value], value.owner
            cuts = is_known(number) and value is not supposed and not self.held[value].origins
            if not isinstance(owner, Operation) or cuts:
                cut.setdefault(number, value)
            elif owner not in needed:
                needed.add(owner)
                waiting += owner.operands
        return _Region(tuple(sorted(needed, key=self.places.__getitem__)), cut)

    def shape(self, region: _Region, end: SSAValue, cut: dict[int, int]) -> Hashable:
        """What a region computes, wherever in the program it is: equal shapes, equal regions."""
        local: dict[SSAValue, int] = {}

        def of(value: SSAValue) -> tuple[object, ...]:
            number = local.get(value)
            if number is None:
                return ("cut", cut[self.numbers[value]], value.type)
            return (number,)

        rows: list[Hashable] = []
        for op in region.operations:
            rows.append((self.kinds[op], tuple(of(operand) for operand in op.operands)))
            for result in op.results:
                local[result] = len(local)
        return (tuple(rows), of(end), len(cut))

    def build(
        self,
        region: _Region,
        ends: Sequence[SSAValue],
        names: dict[int, tuple[str, Attribute]],
    ) -> ModuleOp:
        """A program of the region, which takes the values in `names`."""
        types = [kind for _, kind in names.values()], [value.type for value in ends]
        main = func.FuncOp(ENTRY, types)
        block = main.body.block
        by_number: dict[int, SSAValue] = {}
        for argument, (number, (name, _)) in zip(block.args, names.items(), strict=True):
            argument.location = NameLoc(StringAttr(name), UNKNOWN_LOC)
            by_number[number] = argument
        mapping = {value: by_number[number] for number, value in region.cut.items()}
        made = {result for op in region.operations for result in op.results}
        for value in (*(x for op in region.operations for x in op.operands), *ends):
            if value not in made:
                mapping.setdefault(value, by_number[self.numbers[value]])
        block.add_ops([op.clone(mapping) for op in region.operations])
        block.add_op(func.ReturnOp(*(mapping[value] for value in ends)))
        main.location = self.main.location
        return ModuleOp([*(op.clone() for op in self._symbols(region)), main])

    def _symbols(self, region: _Region) -> list[Operation]:
        """The symbols of the module that the region uses, in order."""
        known = symbols_of(self.module)
        used: set[str] = set()
        waiting = [inner for op in region.operations for inner in op.walk()]
        while waiting:
            for attribute in waiting.pop().properties.values():
                if isinstance(attribute, SymbolRefAttr):
                    name = attribute.root_reference.data
                    if name in known and name not in used:
                        used.add(name)
                        waiting.append(known[name])
        return [op for name, op in known.items() if name in used]


def _number(module: ModuleOp, numbering: Numbering, like: _Numbered | None = None) -> _Numbered:
    """Number the values of a program.

    With `like`, a value that is not in that program, but whose counterpart by name and type is, is
    supposed to equal it.
    """
    main = main_function(module)
    found = _Numbered(module, main, held=held_by(module))
    symbols = numbering.symbols(module)
    for place, argument in enumerate(main.args):
        found.numbers[argument] = numbering.number(("argument", place))
    anchors = {} if like is None else _counterparts(like.main, main)
    have: set[int] = set() if like is None else set(like.numbers.values())
    for place, op in enumerate(main.body.block.ops):
        found.places[op] = place
        kind = found.kinds[op] = numbering.kind(op, symbols)
        operands = tuple(found.numbers[operand] for operand in op.operands)
        for position, result in enumerate(op.results):
            number = numbering.value(kind, operands, position)
            pair = anchors.get(result)
            if like is not None and pair is not None and number not in have:
                found.supposed.append((result, pair, place))
                number = like.numbers[pair]
            found.numbers[result] = number
    return found


def _counterparts(one: func.FuncOp, other: func.FuncOp) -> dict[SSAValue, SSAValue]:
    """Per value of the other function, the one with its name and type, where they are as many."""

    def named(main: func.FuncOp) -> dict[Hashable, list[SSAValue]]:
        groups: dict[Hashable, list[SSAValue]] = {}
        for op in main.body.block.ops:
            for result in op.results:
                groups.setdefault((result.name_hint, result.type), []).append(result)
        return groups

    groups = named(one)
    return {
        value: pair
        for name, values in named(other).items()
        if len(groups.get(name, ())) == len(values)
        for value, pair in zip(values, groups[name], strict=True)
    }


def _scope(
    programs: Sequence[_Numbered],
    regions: Sequence[_Region],
    pairs: Sequence[tuple[SSAValue, SSAValue]],
    *,
    is_whole: bool,
) -> Scope:
    """The regions as programs that return the first, and the second, values of the pairs."""
    names = _names(programs, regions)
    ends = [[pair[side] for pair in pairs] for side in (0, 1)]
    built = [
        program.build(region, end, names)
        for program, region, end in zip(programs, regions, ends, strict=True)
    ]
    operations = sum(len(region.operations) for region in regions)
    return Scope(built[0], built[1], len(pairs), operations, is_whole)


def _names(
    programs: Sequence[_Numbered], regions: Sequence[_Region]
) -> dict[int, tuple[str, Attribute]]:
    """A name and a type for each value that regions start from: arguments first, in order."""
    cut = {number: value for region in reversed(regions) for number, value in region.cut.items()}
    given = programs[0].arguments
    found: dict[int, tuple[str, Attribute]] = {}
    taken: set[str] = set()
    for number in sorted(cut, key=lambda number: given.get(number, (len(given), ""))):
        _, name = given.get(number, (0, cut[number].name_hint or "cut"))
        unique, suffix = name, 1
        while unique in taken:
            unique, suffix = f"{name}.{suffix}", suffix + 1
        taken.add(unique)
        found[number] = (unique, cut[number].type)
    return found

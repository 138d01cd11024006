"""Modules as plain data, which is read many times faster than text.

    data, cells = encode(module)         # lists, numbers and strings: JSON
    same = decode(data, cells, ctx)      # equal to the module, with its names and places

Each attribute and type is in a table once, with the numbers of what it is made of; operations name
theirs by number, and values count in the order in which they are defined. What attributes hold that
is no number, string or attribute is written in the syntax of its dialect.

The cells of large constants stay outside: the data has their digests, `cells` has them by digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    BytesAttr,
    CallSiteLoc,
    DenseArrayBase,
    DictionaryAttr,
    FileLineColLoc,
    FloatData,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import (
    Attribute,
    Block,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.parser import Parser

from tapestry.dialects.loom import DataAttr

Encoded: TypeAlias = dict[str, Any]
"""Plain JSON: `names`, `attributes`, and the `module`, made of numbers in these."""

Cells: TypeAlias = Mapping[str, DataAttr]
"""Large constants by the digest of their cells."""

SMALL = 1 << 10
"""Bytes of a constant that are written with the module."""


_Numbers: TypeAlias = "list[int]"
_Hints: TypeAlias = "list[str | None]"

_Regions: TypeAlias = "list[list[_Block]]"
_Block: TypeAlias = "tuple[_Numbers, _Numbers, _Hints, list[_Operation]]"
"""The types, places and names of the arguments, and the operations."""

_Operation: TypeAlias = "tuple[int, _Numbers, _Numbers, _Numbers, _Numbers, int, _Regions, _Hints]"
"""Name, operands, types of results, properties, attributes, place, regions, names of results."""

_PLACES = {kind.name: kind for kind in (CallSiteLoc, FusedLoc, NameLoc, UnknownLoc)}
"""Locations, which no dialect has registered."""


class EncodingError(Exception):
    """A module that has no plain data, or data that is no module."""


def encode(module: ModuleOp) -> tuple[Encoded, Cells]:
    """The data of a module, and the large constants that are not in it.

    EncodingError for a module with branches, or with a value that is read before it is defined.
    """
    encoder = _Encoder()
    row = encoder.operation(module)
    data = {"names": list(encoder.names), "attributes": encoder.rows, "module": row}
    return data, encoder.cells


def decode(data: Encoded, cells: Cells, ctx: Context) -> ModuleOp:
    """The module of what `encode` made, which is not verified again.

    Raises EncodingError for other data, and where a large constant is not in `cells`.
    """
    try:
        made = _Decoder(data, cells, ctx).operation(data["module"])
    except EncodingError:
        raise
    except Exception as error:
        raise EncodingError(f"{type(error).__name__}: {error}") from error
    if not isinstance(made, ModuleOp):
        raise EncodingError(f"the data is of a {made.name}")
    return made


def encode_exactly(module: ModuleOp, cells: Cells, ctx: Context) -> Encoded:
    """The data of a module that `decode` makes the same module of; EncodingError if it does not.

    That is so where an attribute is not what its text says, and for large constants not in `cells`.
    """
    data, _ = encode(module)
    same = decode(data, cells, ctx)
    if encode(same)[0] != data or not module.is_structurally_equivalent(same):
        raise EncodingError("what is read is not what was written")
    return data


def text_without_names(op: Operation) -> str:
    """What an operation is, equal for those that differ in names of values and places alone.

    EncodingError as of `encode`, also where it reads a value from outside.
    """
    encoder = _Encoder(bare=True)
    row = encoder.operation(op)
    return json.dumps([list(encoder.names), encoder.rows, row])


class _Encoder:
    """Makes the rows; where it is `bare`, without names of values and without places."""

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self.names: dict[str, int] = {}
        self.rows: list[list[Any]] = []
        self.cells: dict[str, DataAttr] = {}
        self._numbers: dict[Attribute, int] = {}
        self._by_identity: dict[int, tuple[Attribute, int]] = {}
        self._values: dict[SSAValue, int] = {}

    def operation(self, op: Operation) -> _Operation:
        if op.successors:
            raise EncodingError(f"{op.name} branches")
        try:
            operands = [self._values[operand] for operand in op.operands]
        except KeyError:
            raise EncodingError(f"{op.name} reads a value before it is defined") from None
        # A region reads what is defined before, but no result of the operation that it is in.
        regions = [self._region(region) for region in op.regions]
        return (
            self._name(op.name),
            operands,
            [self.attribute(kind) for kind in op.result_types],
            self._mapping(op.properties),
            self._mapping(op.attributes),
            self._place(op.location),
            regions,
            [self._value(result) for result in op.results],
        )

    def _region(self, region: Region) -> list[_Block]:
        return [self._block(block) for block in region.blocks]

    def _block(self, block: Block) -> _Block:
        kinds = [self.attribute(argument.type) for argument in block.args]
        places = [self._place(argument.location) for argument in block.args]
        hints = [self._value(argument) for argument in block.args]
        return kinds, places, hints, [self.operation(op) for op in block.ops]

    def _value(self, value: SSAValue) -> str | None:
        """Number a value; its name."""
        self._values[value] = len(self._values)
        return None if self._bare else value.name_hint

    def _place(self, location: LocationAttr) -> int:
        return self.attribute(UNKNOWN_LOC if self._bare else location)

    def _mapping(self, named: Mapping[str, Attribute]) -> list[int]:
        flat: list[int] = []
        for name, value in named.items():
            flat += self._name(name), self.attribute(value)
        return flat

    def _name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def attribute(self, attribute: Attribute) -> int:
        """The number of an attribute in the table."""
        # Most are shared objects, and hashing one walks all that it is made of.
        known = self._by_identity.get(id(attribute))
        if known is not None:
            return known[1]
        number = self._numbers.get(attribute)
        if number is None:
            row = self._row(attribute)
            number = self._numbers[attribute] = len(self.rows)
            self.rows.append(row)
        self._by_identity[id(attribute)] = attribute, number
        return number

    def _row(self, attribute: Attribute) -> list[Any]:
        match attribute:
            case StringAttr():
                return ["s", attribute.data]
            case IntAttr():
                return ["i", attribute.data]
            case FloatData():
                return ["f", attribute.data.hex()]
            case ArrayAttr():
                return ["a", *map(self.attribute, attribute.data)]
            case DictionaryAttr():
                return ["m", *self._mapping(attribute.data)]
            case DataAttr() if len(attribute.data) > SMALL:
                digest = sha256(attribute.data).hexdigest()
                self.cells[digest] = attribute
                return ["c", digest]
            case BytesAttr():
                return ["b", attribute.data.hex()]
            case DenseArrayBase():  # whose name is that of ArrayAttr
                data = cast("DenseArrayBase[Any]", attribute)
                return ["d", self.attribute(data.elt_type), self.attribute(data.data)]
            case FileLineColLoc():
                file = self.attribute(attribute.filename)
                return ["l", file, attribute.line.data, attribute.column.data]
            case ParametrizedAttribute():
                kind = "t" if isinstance(attribute, TypeAttribute) else "p"
                return [
                    kind,
                    self._name(attribute.name),
                    *map(self.attribute, attribute.parameters),
                ]
            case _:
                return ["x", attribute.name, str(attribute)]


class _Decoder:
    def __init__(self, data: Encoded, cells: Cells, ctx: Context) -> None:
        self._ctx = ctx
        self._names: list[str] = data["names"]
        self._cells = cells
        self._values: list[SSAValue] = []
        self._attributes: list[Attribute] = []
        self._kinds: dict[int, type[Operation]] = {}
        ctx.get_optional_dialect("builtin")  # whose types have names without a dialect
        for row in data["attributes"]:
            self._attributes.append(self._attribute(row[0], row[1:]))

    def operation(self, row: _Operation) -> Operation:
        name, operands, kinds, properties, attributes, place, regions, hints = row
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = self._ctx.get_op(self._names[name])
        location = self._attributes[place]
        if not isinstance(location, LocationAttr):
            raise EncodingError(f"{location} is no place")
        given = [self._values[number] for number in operands]
        op = kind.create(
            operands=given,
            result_types=[self._attributes[number] for number in kinds],
            properties=self._mapping(properties),
            attributes=self._mapping(attributes),
            location=location,
            regions=[Region([self._block(block) for block in region]) for region in regions],
        )
        self._define(op.results, hints)
        return op

    def _block(self, row: _Block) -> Block:
        kinds, places, hints, ops = row
        block = Block(arg_types=[self._attributes[number] for number in kinds])
        for argument, place in zip(block.args, places, strict=True):
            argument.location = cast(LocationAttr, self._attributes[place])
        self._define(block.args, hints)
        for op in ops:
            block.add_op(self.operation(op))
        return block

    def _define(self, values: Sequence[SSAValue], hints: Sequence[str | None]) -> None:
        for value, hint in zip(values, hints, strict=True):
            value.name_hint = hint
            self._values.append(value)

    def _mapping(self, flat: Sequence[int]) -> dict[str, Attribute]:
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {self._names[name]: self._attributes[value] for name, value in pairs}

    def _attribute(self, kind: str, row: Sequence[Any]) -> Attribute:
        parts = cast("Sequence[int]", row)  # of most kinds
        match kind:
            case "s":
                return StringAttr(row[0])
            case "i":
                return IntAttr(row[0])
            case "f":
                return FloatData(float.fromhex(row[0]))
            case "a":
                return ArrayAttr(tuple(self._attributes[part] for part in parts))
            case "m":
                return DictionaryAttr(self._mapping(parts))
            case "b":
                return BytesAttr(bytes.fromhex(row[0]))
            case "d":
                element, data = (self._attributes[part] for part in parts)
                return DenseArrayBase.new([element, data])
            case "l":
                file = cast(StringAttr, self._attributes[parts[0]])
                return FileLineColLoc(file, IntAttr(row[1]), IntAttr(row[2]))
            case "c":
                if row[0] not in self._cells:
                    raise EncodingError("the cells of a constant are not given")
                return self._cells[row[0]]
            case "t" | "p":
                name = self._names[parts[0]]
                find = self._ctx.get_type if kind == "t" else self._ctx.get_attr
                made = _PLACES.get(name) or cast("type[ParametrizedAttribute]", find(name))
                return made.new([self._attributes[part] for part in parts[1:]])
            case _:
                return Parser(self._ctx, row[1]).parse_attribute()

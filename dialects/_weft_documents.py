"""Templates as dictionary attributes, and back: what `weft.metakernel` holds.

    wrap: max(x, 0)      <->   wrap = "max(x, 0)"
    fold: {n: {...}}     <->   fold = [{n = {...}}]

Dictionary attributes are unordered, and the inputs, steps, ... of a template are not: their
mappings are written as lists of one-entry dictionaries.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    BytesAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute

from tapestry.diagnostics import Location
from tapestry.metakernels.documents import Entries, Items, Leaf, Node
from tapestry.metakernels.errors import TemplateError

ORDERED: Final = ("params", "inputs", "outputs", "let", "fold", "scan", "steps")
"""The sections of a template whose entries have an order."""

_MOST: Final = 1 << 63


def attribute_of(document: Entries) -> DictionaryAttr:
    """The attribute that holds a template's document."""
    return DictionaryAttr(
        {
            str(key.value): _ordered(value)
            if key.value in ORDERED and isinstance(value, Entries)
            else _attribute(value)
            for key, value in document.entries
        }
    )


def _ordered(entries: Entries) -> ArrayAttr[Attribute]:
    return ArrayAttr(
        DictionaryAttr({str(key.value): _attribute(value)}) for key, value in entries.entries
    )


def _attribute(node: Node) -> Attribute:
    match node:
        case Leaf(int(value), text, location) if not -_MOST <= value < _MOST:
            raise TemplateError(
                f"{text} is beyond 64 bits, and IR cannot hold it", location=location
            )
        case Leaf(value):
            return _scalar(value)
        case Items(items):
            return ArrayAttr(map(_attribute, items))
        case Entries(entries):
            return DictionaryAttr({str(key.value): _attribute(value) for key, value in entries})


def _scalar(value: str | float | bool | None) -> Attribute:
    match value:
        case bool():
            return BoolAttr(value, i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case None:
            return UnitAttr()


def document_of(attribute: DictionaryAttr, location: Location | None) -> Entries:
    """The document that an attribute holds; everything in it stands at `location`."""
    place = Location("<template>", 1, 1) if location is None else location
    entries: list[tuple[Leaf, Node]] = []
    for key, value in attribute.data.items():
        node = _node(value, place)
        if key in ORDERED and isinstance(node, Items):
            node = _joined(key, node)
        entries.append((Leaf(key, key, place, exact=False), node))
    return Entries(tuple(entries), place)


def _joined(key: str, items: Items) -> Entries:
    """A list of one-entry dictionaries as one mapping."""
    entries: list[tuple[Leaf, Node]] = []
    for item in items.items:
        if not isinstance(item, Entries) or len(item.entries) != 1:
            raise TemplateError(
                f"{key} must be a list of one-entry dictionaries",
                location=items.location,
                hint=f"{key} = [{{x = ...}}, {{y = ...}}]",
            )
        entries.extend(item.entries)
    names = [name.value for name, _ in entries]
    for name in names:
        if names.count(name) > 1:
            raise TemplateError(f"{key} has {name} twice", location=items.location)
    return Entries(tuple(entries), items.location)


def _node(attribute: Attribute, place: Location) -> Node:
    match attribute:
        case DictionaryAttr():
            return Entries(
                tuple(
                    (Leaf(key, key, place, exact=False), _node(value, place))
                    for key, value in attribute.data.items()
                ),
                place,
            )
        case ArrayAttr():
            items: tuple[Attribute, ...] = attribute.data
            return Items(tuple(_node(item, place) for item in items), place)
        case StringAttr():
            return Leaf(attribute.data, attribute.data, place, exact=False)
        case BytesAttr():
            # What text with characters that are not printed is parsed as.
            text = attribute.data.decode("utf-8", errors="replace")
            return Leaf(text, text, place, exact=False)
        case IntegerAttr():
            value = attribute.value.data
            if attribute.type == i1:
                return Leaf(bool(value), "true" if value else "false", place, exact=False)
            return Leaf(value, str(value), place, exact=False)
        case FloatAttr():
            number = attribute.value.data
            return Leaf(number, str(number), place, exact=False)
        case UnitAttr():
            return Leaf(None, "", place, exact=False)
        case _:
            raise TemplateError(
                f"a template holds strings, numbers, lists and dictionaries, not {attribute}",
                location=place,
            )

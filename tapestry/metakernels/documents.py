r"""YAML documents that remember where every key and value stands.

    >>> document = read_yaml("relu:\n  wrap: max(x, 0)\n", "ops.yaml")
    >>> str(document.at("relu", "wrap").location)
    'ops.yaml:2:9'
    >>> document.plain()
    {'relu': {'wrap': 'max(x, 0)'}}

Only YAML's own scalars, lists and mappings are read. Aliases, tags, duplicate keys, and files that
are large or nest deep are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml
from yaml.reader import Reader

from tapestry.diagnostics import Location
from tapestry.metakernels.errors import LimitError, TemplateError
from tapestry.metakernels.text import Text

MAX_BYTES: Final = 1 << 20
"""Size of one file."""

MAX_NESTING: Final = 32

_OPENING: Final = ("[", "{", "- ", "? ")
_MANY_OPENINGS: Final = 5000
"""How much may be opened on one line before it is looked at how deep it nests."""

_STRING: Final = "tag:yaml.org,2002:str"
_COLLECTIONS: Final = frozenset(("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"))
_SCALARS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")
)

ScalarValue: TypeAlias = "str | int | float | bool | None"
Data: TypeAlias = "ScalarValue | list[Data] | dict[str, Data]"
Step: TypeAlias = "str | int"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One scalar and its text; `exact` when that stands in the file as it is, at `location`."""

    value: ScalarValue
    text: str
    location: Location
    exact: bool = True

    def plain(self) -> Data:
        """The value alone."""
        return self.value

    def at(self, *_: Step) -> Node:
        """This leaf: there is nothing below it."""
        return self


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    location: Location

    def plain(self) -> Data:
        """The list without places."""
        return [item.plain() for item in self.items]

    def at(self, *path: Step) -> Node:
        """The node at `path`, or the last one on the way there."""
        if path and isinstance(path[0], int) and path[0] < len(self.items):
            return self.items[path[0]].at(*path[1:])
        return self


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping, in the order of the file."""

    entries: tuple[tuple[Leaf, Node], ...]
    location: Location

    def plain(self) -> dict[str, Data]:
        """The mapping without places."""
        return {str(key.value): value.plain() for key, value in self.entries}

    def at(self, *path: Step) -> Node:
        """The node at `path`, or the last one on the way there."""
        for key, value in self.entries:
            if path and key.value == path[0]:
                return value.at(*path[1:])
        return self

    def key(self, name: str) -> Leaf | None:
        """The key `name` itself, with its place."""
        return next((key for key, _ in self.entries if key.value == name), None)


Node: TypeAlias = Leaf | Items | Entries


def text_of(node: Node) -> Text:
    """The text of a leaf, or of a list of leaves, with its place: expressions are read from it."""
    if isinstance(node, Leaf):
        return Text(node.text, node.location, node.exact)
    items = node.items if isinstance(node, Items) else ()
    return Text(f"[{', '.join(text_of(item).text for item in items)}]", node.location, exact=False)


_TEMPLATES: Final = "a template file is a mapping from names to templates"


def read_file(path: Path, form: str = _TEMPLATES) -> Entries:
    """The document in a file; a TemplateError says why it cannot be read, or what its form is."""
    return read_yaml(read_text(path), str(path), form=form)


def read_text(path: Path) -> str:
    """The text of a file; a TemplateError says why it cannot be read."""
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8") if size <= MAX_BYTES else ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TemplateError(f"cannot read {path}: {reason}") from None
    if size > MAX_BYTES:
        raise LimitError(f"{path} has {size} bytes, more than {MAX_BYTES}")
    return text


def read_yaml(text: str, file: str, *, first_line: int = 1, form: str = _TEMPLATES) -> Entries:
    """The document in `text`, which must be one mapping; `file` names it in messages.

    `first_line` is the line of the file that `text` begins with, and `form` says what is not
    followed where it is no mapping.
    """
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    openings = sum(map(text.count, _OPENING))
    try:
        if openings > _MANY_OPENINGS:
            _check_nesting(text, file, first_line, loader)
        root: yaml.Node | None = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        if openings > MAX_NESTING:
            # libyaml may have looked ahead of what it has read, and found it too deep by itself.
            with suppress(yaml.YAMLError):
                _check_nesting(text, file, first_line, yaml.SafeLoader)
        mark = error.problem_mark or error.context_mark
        place = None if mark is None else Location(file, first_line + mark.line, mark.column + 1)
        raise TemplateError(f"this is not YAML: {error.problem}", location=place) from None
    except (yaml.YAMLError, RecursionError) as error:
        place = _unprintable(text, file, first_line)
        raise TemplateError(f"this is not YAML: {_first_line(error)}", location=place) from None
    if root is None:
        return Entries((), Location(file, first_line, 1))
    document = _Reader(file, first_line).node(root, 0)
    if not isinstance(document, Entries):
        raise TemplateError(form, location=document.location)
    return document


def _check_nesting(text: str, file: str, first_line: int, loader: Any) -> None:
    """Refuse what nests too deep for libyaml, which would end the process, not raise an error."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_NESTING + 1:
            mark: Any = event.start_mark
            raise LimitError(
                f"this nests deeper than {MAX_NESTING} levels",
                location=Location(file, first_line + mark.line, mark.column + 1),
            )


def _unprintable(text: str, file: str, first_line: int) -> Location:
    """Where the first character is that no YAML may have; where the text begins if there is none.

    LibYAML says how many bytes are before it, if anything.
    """
    found = Reader.NON_PRINTABLE.search(text)
    at = 0 if found is None else found.start()
    return Location(file, first_line + text.count("\n", 0, at), at - text.rfind("\n", 0, at))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["unreadable"])[0]


class _Reader:
    """Turns PyYAML's nodes into ours; a node met twice was an alias."""

    def __init__(self, file: str, first_line: int) -> None:
        self._file = file
        self._first_line = first_line
        self._seen: set[int] = set()
        loader: Any = yaml.SafeLoader("")
        self._construct: Callable[[yaml.Node], ScalarValue] = loader.construct_object

    def node(self, node: yaml.Node, depth: int) -> Node:
        mark = node.start_mark
        place = Location(self._file, self._first_line + mark.line, mark.column + 1)
        if id(node) in self._seen:
            raise TemplateError("YAML aliases are not allowed", location=place)
        self._seen.add(id(node))
        if depth > MAX_NESTING:
            raise LimitError(f"this nests deeper than {MAX_NESTING} levels", location=place)
        if isinstance(node, yaml.ScalarNode):
            return self._leaf(node, place)
        if node.tag not in _COLLECTIONS:
            raise TemplateError(f"YAML tags ({node.tag}) are not allowed", location=place)
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self.node(item, depth + 1) for item in node.value), place)
        assert isinstance(node, yaml.MappingNode)
        return Entries(self._entries(node, depth), place)

    def _entries(self, node: yaml.MappingNode, depth: int) -> tuple[tuple[Leaf, Node], ...]:
        entries: list[tuple[Leaf, Node]] = []
        places: dict[str, Location] = {}
        for key_node, value_node in node.value:
            key = self.node(key_node, depth + 1)
            if not isinstance(key, Leaf) or not isinstance(key.value, str):
                raise TemplateError(
                    "a key must be a name", location=key.location, hint="quote it if it is a word"
                )
            if key.value in places:
                raise TemplateError(
                    f"{key.value} is given twice (first at {places[key.value]})",
                    location=key.location,
                )
            places[key.value] = key.location
            entries.append((key, self.node(value_node, depth + 1)))
        return tuple(entries)

    def _leaf(self, node: yaml.ScalarNode, place: Location) -> Leaf:
        if node.tag not in _SCALARS:
            # A date, a merge key, binary data, or an explicit tag: what was meant is its text.
            raise TemplateError(
                f"`{node.value}` is no string, number or truth value",
                location=place,
                hint="quote it",
            )
        text = str(node.value)
        try:
            value = text if node.tag == _STRING else self._construct(node)
        except ValueError:
            raise TemplateError(f"`{node.value}` is no number", location=place) from None
        start, end = node.start_mark, node.end_mark
        # libyaml says "" where PyYAML says None: neither quoted nor a block.
        quotes = 1 if node.style in ("'", '"') else 0
        exact = (quotes == 1 or not node.style) and (
            start.line == end.line and end.column - start.column == len(text) + 2 * quotes
        )
        place = Location(place.file, place.line, place.column + (quotes if exact else 0))
        return Leaf(value, text, place, exact)

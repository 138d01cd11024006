"""Finds templates by name: the library that comes with Tapestry, and folders of a user's own.

    >>> load_library().get("matmul").name
    'matmul'

A file holds any number of templates, `name: template`. A user's template takes the place of the
library's of the same name. The library's templates are read when first asked for, one by one, so
that a program pays for those that it uses; a user's all at once, so that a mistake in one is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tapestry.diagnostics import Location
from tapestry.metakernels.documents import Node, read_file, read_yaml
from tapestry.metakernels.errors import TemplateError, UnknownNameError, nearest
from tapestry.metakernels.reading import read_template
from tapestry.metakernels.templates import Template

LIBRARY: Final = Path(__file__).parent / "library"
"""The folder of the templates that come with Tapestry."""


_ENTRY: Final = re.compile(r"^(\w+):", re.MULTILINE)
"""Where a template of the library begins: its name, at the start of a line."""


@dataclass(frozen=True, slots=True)
class Unread:
    """The text of one template of the library, and the lines before it in its file."""

    file: str
    text: str
    before: int

    def read(self) -> Node:
        """The template's document, every place in it that of the file."""
        ((_, node),) = read_yaml(self.text, self.file, first_line=self.before + 1).entries
        return node


class Library:
    """Templates by name; each is parsed once, when first asked for."""

    def __init__(self, documents: Mapping[str, Node | Unread]) -> None:
        self._documents = dict(documents)
        self._templates: dict[str, Template] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all templates, sorted."""
        return tuple(sorted(self._documents))

    def get(self, name: str) -> Template:
        """The template called `name`; UnknownNameError lists the nearest names."""
        template = self._templates.get(name)
        if template is None:
            if name not in self._documents:
                raise UnknownNameError(
                    f"there is no metakernel @{name}", hint=nearest(name, self._documents)
                )
            document = self._documents[name]
            document = document.read() if isinstance(document, Unread) else document
            template = read_template(name, document)
            self._templates[name] = template
        return template

    def shares(self, name: str, other: Library) -> bool:
        """Whether `name` is the same template here and in `other`."""
        return self._documents.get(name) is other._documents.get(name)

    def extended(self, documents: Mapping[str, Node]) -> Library:
        """A library in which `documents` come first; what is parsed stays parsed."""
        library = Library({**self._documents, **documents})
        library._templates = {
            name: template for name, template in self._templates.items() if name not in documents
        }
        return library

    def with_text(self, text: str, file: str = "<text>") -> Library:
        """This library extended by the templates in YAML `text`; `file` names it in messages."""
        documents = {str(key.value): node for key, node in read_yaml(text, file).entries}
        library = self.extended(documents)
        library.check(documents)
        return library

    def check(self, names: Iterable[str]) -> None:
        """Read these templates now, so that a mistake in one is seen before it is applied."""
        for name in names:
            self.get(name)


def load_library(folders: Iterable[str | Path] = ()) -> Library:
    """The library, extended by every `*.yaml` in `folders` (later folders come first).

    Raises a located TemplateError for a file that cannot be read or a template that is wrong.
    """
    library = _standard()
    for folder in folders:
        documents = read_folder(Path(folder))
        library = library.extended(documents)
        library.check(documents)
    return library


@cache
def _standard() -> Library:
    documents: dict[str, Unread] = {}
    for path in sorted(LIBRARY.glob("*.yaml")):
        for name, part in unread_templates(path.read_text(encoding="utf-8"), str(path)).items():
            if name in documents:
                raise TemplateError(
                    f"{name} is defined twice (first in {documents[name].file})",
                    location=Location(part.file, part.before + 1, 1),
                )
            documents[name] = part
    return Library(documents)


def unread_templates(text: str, file: str) -> dict[str, Unread]:
    r"""The templates in the `text` of a file of the library, by name.

    >>> parts = unread_templates("# Two.\n\na:\n  doc: A\nb:\n  doc: B\n", "f.yaml")
    >>> [(name, part.text, part.before) for name, part in parts.items()]
    [('a', 'a:\n  doc: A\n', 2), ('b', 'b:\n  doc: B\n', 4)]
    """
    found = list(_ENTRY.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return {
        match[1]: Unread(file, text[match.start() : end], text.count("\n", 0, match.start()))
        for match, end in zip(found, ends, strict=True)
    }


def read_folder(folder: Path) -> dict[str, Node]:
    """The templates of every `*.yaml` file in `folder`, unparsed."""
    if not folder.is_dir():
        raise TemplateError(f"{folder} is no folder of templates")
    documents: dict[str, Node] = {}
    for path in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
        for key, node in read_file(path).entries:
            name = str(key.value)
            if name in documents:
                raise TemplateError(
                    f"{name} is defined twice (first at {documents[name].location})",
                    location=key.location,
                )
            documents[name] = node
    return documents

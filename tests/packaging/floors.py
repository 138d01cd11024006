"""Which module imports which, and the floors that docs/architecture.md puts them on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PAGE = ROOT / "docs" / "architecture.md"
_LINKED = ("dialects", "passes", "tools")


@dataclass(frozen=True)
class Import:
    """`module` imports `imported`; `late` when only inside a function, when it is called."""

    module: str
    imported: str
    late: bool


def modules() -> dict[str, Path]:
    """Every module of the package by name, without its leading `tapestry.`."""
    found: dict[str, Path] = {}
    for path in sorted((ROOT / "tapestry").glob("**/*.py")):
        inside = path.relative_to(ROOT / "tapestry")
        if inside.parts[0] not in _LINKED:
            found[_name(inside)] = path
    for folder in _LINKED:
        for path in sorted((ROOT / folder).glob("**/*.py")):
            found[_name(path.relative_to(ROOT))] = path
    return found


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix("__init__").rstrip(".")


def imports(module: str, path: Path, known: dict[str, Path]) -> Iterator[Import]:
    """What a module imports of the package, types for checkers alone left out."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test)
        for inner in ast.walk(outer)
    }
    late = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        for name in _names(node):
            inside = name.removeprefix("tapestry").lstrip(".")
            while inside and inside not in known:
                inside = inside.rpartition(".")[0]
            if name.split(".")[0] == "tapestry" and inside and inside != module:
                yield Import(module, inside, id(node) in late)


def _names(node: ast.AST) -> list[str]:
    match node:
        case ast.ImportFrom(module=str(module), level=0):
            return [f"{module}.{one.name}" for one in node.names]
        case ast.Import():
            return [one.name for one in node.names]
        case _:
            return []


def floors() -> list[list[str]]:
    """The prefixes of modules on each floor, the ground floor first, as the page lists them."""
    rows = re.findall(r"^\| \d+ \| [^|]* \| ([^|]*) \|", _PAGE.read_text(), re.MULTILINE)
    return [re.findall(r"`([\w.]+)`", row) for row in rows]


def exceptions() -> list[tuple[str, str]]:
    """The imports that go up: a module, and what it imports when it is called."""
    rows = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|", _PAGE.read_text(), re.MULTILINE)
    return list(rows)


def floor_of(module: str, order: list[list[str]]) -> int | None:
    """The floor of a module: that of the longest prefix which is listed."""
    listed = [
        (len(prefix), number)
        for number, prefixes in enumerate(order)
        for prefix in prefixes
        if module == prefix or module.startswith((f"{prefix}.", f"{prefix}_"))
    ]
    return max(listed)[1] if listed else None

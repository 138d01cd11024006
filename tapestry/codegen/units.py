"""What of a module of kernels a kernel is compiled from: itself, and what it calls.

    unit_of(source, "softmax")      # the source of a module with that kernel alone

The same kernel of two programs has the same unit, wherever it is in their modules and whatever is
said about it there: so it is compiled once, and found again where another part of a program has
changed. Triton compiles where lines are into a kernel, so a unit is a file of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache


def unit_of(source: str, kernel: str) -> str:
    """The source of a module with all that is there for a kernel.

    Functions and named values that it does not use are not in it, nor is what stands between them.
    """
    parts = _parts(source)
    by_name = {name: part for part in parts for name in part.names}
    kept = {kernel}
    found = [kernel]
    while found:
        part = by_name.get(found.pop())
        new = (part.uses & by_name.keys()) - kept if part is not None else set[str]()
        kept |= new
        found += new
    texts = [part.text for part in parts if not part.names or kept & part.names]
    return "\n\n\n".join(texts) + "\n"


@dataclass(frozen=True)
class _Part:
    """A statement of a module: the names that it alone defines, none where it is always kept."""

    text: str
    names: frozenset[str]
    uses: frozenset[str]


@lru_cache(maxsize=4)
def _parts(source: str) -> tuple[_Part, ...]:
    return tuple(_parts_of(source))


def _parts_of(source: str) -> Iterator[_Part]:
    lines = source.splitlines()
    try:
        tree = ast.parse(source)
    except SyntaxError:  # who compiles it says so
        yield _Part(source, frozenset(), frozenset())
        return
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Constant()):  # what the module is for
                continue
            case ast.FunctionDef(name=name):
                names = frozenset([name])
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names = frozenset([name])
            case _:
                names = frozenset[str]()
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        start = min([node.lineno, *(one.lineno for one in decorators)])
        yield _Part("\n".join(lines[start - 1 : node.end_lineno]), names, _used(node))


def _used(node: ast.stmt) -> frozenset[str]:
    """The names that a statement takes from its module: variables of a function are its own."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    own = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    own |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    kept = own if isinstance(node, ast.FunctionDef) else set[str]()
    return frozenset(one.id for one in names) - kept

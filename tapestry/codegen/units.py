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

    Functions and named values that nothing in it uses are not in it, nor what stands between them.
    """
    parts = _parts(source)
    known = {name for part in parts for name in part.names}
    kept: set[str] = set()
    new = {kernel}.union(*(part.uses for part in parts if not part.names))
    while new:
        kept |= new
        new = {n for part in parts if kept & part.names for n in part.uses & known} - kept
    texts = [part.text for part in parts if not part.names or kept & part.names]
    return "\n\n\n".join(texts) + "\n"


@dataclass(frozen=True)
class _Part:
    """A statement of a module: the name that it alone defines, none where it is always kept."""

    text: str
    names: frozenset[str]
    uses: frozenset[str]


@lru_cache(maxsize=4)
def _parts(source: str) -> tuple[_Part, ...]:
    return tuple(_parts_of(source))


def _parts_of(source: str) -> Iterator[_Part]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # who compiles it says so
        yield _Part(source, frozenset(), frozenset())
        return
    # Not `splitlines`, for which more ends a line than for Python.
    lines = source.split("\n")
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Constant()):  # what the module is for
                continue
            case (
                ast.FunctionDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
                | ast.AugAssign(target=ast.Name(id=name))
            ):
                names = frozenset([name])
            case _:
                names = frozenset[str]()
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        start = min([node.lineno, *(one.lineno for one in decorators)])
        yield _Part("\n".join(lines[start - 1 : node.end_lineno]), names, _used(node))


def _used(node: ast.stmt) -> frozenset[str]:
    """The names that a statement takes from its module: variables of a function are its own."""
    if not isinstance(node, ast.FunctionDef):
        return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    inside = [one for statement in node.body for one in ast.walk(statement)]
    own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    own |= {o.id for o in inside if isinstance(o, ast.Name) and isinstance(o.ctx, ast.Store)}
    # What decorators, defaults and annotations name is the module's, whatever it is inside.
    outside = [*node.decorator_list, node.args, *([node.returns] if node.returns else [])]
    found = {o.id for one in outside for o in ast.walk(one) if isinstance(o, ast.Name)}
    found |= {one.id for one in inside if isinstance(one, ast.Name)} - own
    return frozenset(found)

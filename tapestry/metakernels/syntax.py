"""The syntax trees of the template language: what `parsing` makes of text.

    >>> from tapestry.metakernels.parsing import parse_expression
    >>> parse_expression("2 * $a")
    Binary(operator='*', left=Number(value=2), right=Variable(name='a'))

Integer expressions and scalar bodies share their nodes; `Name` and fractional numbers occur in
bodies only. Trees are values: equal text gives equal trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal, TypeAlias, cast


@dataclass(frozen=True, slots=True)
class Number:
    """`12`, or in a body also `0.5`."""

    value: int | float


@dataclass(frozen=True, slots=True)
class String:
    """`'tanh'`: a choice of an enum parameter."""

    value: str


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: a size, a list of sizes, a parameter, or what `let` defines."""

    name: str


@dataclass(frozen=True, slots=True)
class Count:
    """`#name`: how many entries a list-valued input has."""

    name: str


@dataclass(frozen=True, slots=True)
class Coordinate:
    """`@name`: the coordinate along the index dimension (or dimensions) of that label."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """`x` in a body: an input's cell, `fold`, or a dtype."""

    name: str


@dataclass(frozen=True, slots=True)
class Splice:
    """`x...` as an argument in a body: the cells of every tensor of the list `x`."""

    name: str


@dataclass(frozen=True, slots=True)
class Negate:
    """`-e`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """`left + right` and the other arithmetic and logic operators."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare:
    """`left < right` and the other comparisons."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Not:
    """`not e`, in a body."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Item:
    """`base[index]`; a list as the index picks several elements."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Slice:
    """`base[low:high]`, half-open."""

    base: Expr
    low: Expr | None
    high: Expr | None


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments)`, in a body also `function(arguments, else=otherwise)`."""

    function: str
    arguments: tuple[Expr, ...]
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`[value for $variable in extent if condition]`: a value for each number below the extent."""

    value: Expr
    variable: str
    extent: Expr
    condition: Expr | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a list: `label = value...{count}`.

    `+` and `-` (rows of a projection in cursor form) have no value of their own. `spread` is the
    `...`: it splices a list, and repeats a number `count` times, or as often as the rank leaves.
    """

    value: Expr | Literal["+", "-"]
    spread: bool = False
    count: Expr | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ListExpr:
    """`[element, ...]`."""

    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class ProjectionExpr:
    """`rows + offset :> box`."""

    rows: ListExpr
    offset: ListExpr | None
    box: ListExpr | None


@dataclass(frozen=True, slots=True)
class Clause:
    """`$variable in extent`: a family has a member for each number below `extent`."""

    variable: str
    extent: Expr


@dataclass(frozen=True, slots=True)
class DtypeBinding:
    """`$t`, `$t: float` or `float`: what an input's element type binds and may be."""

    name: str | None
    constraint: str


@dataclass(frozen=True, slots=True)
class Dimension:
    """`$name` in a pattern: binds the size of one dimension. `each` is the `$i` of `$name[$i]`."""

    name: str
    each: str | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """`$name...` or `...` in a pattern: any number of dimensions, or exactly `pin` of them."""

    name: str | None
    each: str | None = None
    pin: Expr | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """`$name=(items)` in a pattern: a name for several dimensions."""

    name: str
    items: tuple[PatternItem, ...]
    each: str | None = None


@dataclass(frozen=True, slots=True)
class Exactly:
    """`12` or `=(expr)` in a pattern: a dimension of that size."""

    size: Expr


@dataclass(frozen=True, slots=True)
class Anything:
    """`_` in a pattern: a dimension of any size."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """`[item, ...]`: what the shape of an input looks like."""

    items: tuple[PatternItem, ...]


Expr: TypeAlias = (
    Number
    | String
    | Variable
    | Count
    | Coordinate
    | Name
    | Splice
    | Negate
    | Binary
    | Compare
    | Not
    | Item
    | Slice
    | Call
    | ListExpr
    | Comprehension
)
PatternItem: TypeAlias = Dimension | Sequence | Group | Exactly | Anything
Tree: TypeAlias = Expr | PatternItem | Pattern | Element | ProjectionExpr | Clause | DtypeBinding

_NODES = (
    Number, String, Variable, Count, Coordinate, Name, Splice, Negate, Binary, Compare, Not, Item,
    Slice, Call, ListExpr, Comprehension, Element, ProjectionExpr, Clause, DtypeBinding, Dimension,
    Sequence, Group, Exactly, Anything, Pattern,
)  # fmt: skip


_PARTS = {kind: tuple(item.name for item in fields(kind)) for kind in _NODES}


def children(tree: Tree) -> Iterator[Tree]:
    """The trees directly inside `tree`, in the order of the text."""
    for name in _PARTS[type(tree)]:
        value: object = getattr(tree, name)
        for part in value if isinstance(value, tuple) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if type(part) in _PARTS:  # pyright: ignore[reportUnknownArgumentType]
                yield cast(Tree, part)


def walk(tree: Tree) -> Iterator[Tree]:
    """`tree` and everything inside it."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(children(node))


def depth(tree: Tree) -> int:
    """How deep trees nest in `tree`; 1 for a leaf. Not recursive: it guards what is."""
    level: list[Tree] = [tree]
    count = 0
    while level:
        count += 1
        level = [child for node in level for child in children(node)]
    return count


@lru_cache(maxsize=8192)
def variables(tree: Tree) -> frozenset[str]:
    """The names that `tree` reads with `$` or `#`, but does not bind itself."""
    free: set[str] = set()
    pending: list[tuple[Tree, frozenset[str]]] = [(tree, frozenset())]
    while pending:
        node, bound = pending.pop()
        if isinstance(node, Variable | Count) and node.name not in bound:
            free.add(node.name)
        inside = bound | {node.variable} if isinstance(node, Comprehension) else bound
        for child in children(node):
            is_extent = isinstance(node, Comprehension) and child is node.extent
            pending.append((child, bound if is_extent else inside))
    return frozenset(free)


@lru_cache(maxsize=8192)
def coordinates(tree: Tree) -> frozenset[str]:
    """The labels that `tree` reads with `@`."""
    return frozenset(node.name for node in walk(tree) if isinstance(node, Coordinate))

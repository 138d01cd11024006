"""Gives scalar bodies their types: promotion, constants, casts and choices made at expansion.

    >>> body = Body(Scope({"n": 4}), {"x": "f32"})
    >>> mean = body.read(parse_scalar("x / $n"), "f32")
    >>> mean.name, mean.operands
    ('div', (Cell(name='x', dtype='f32'), Constant(value=4.0, dtype='f32')))

A number takes the type of what it meets. `where` with a condition on parameters and sizes keeps
only the branch it takes. Cells of half precision are computed in f32 when `widen` is set, and
rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tapestry.metakernels import constants, functions
from tapestry.metakernels.blocks import Block
from tapestry.metakernels.constants import NAMED, Known, coerce, extreme
from tapestry.metakernels.dtypes import HALVES, evaluate_dtype, is_float, promote
from tapestry.metakernels.errors import (
    BoxError,
    DtypeMismatchError,
    IndexOutOfRangeError,
    KindMismatchError,
    UnknownNameError,
    UnreadCellError,
    nearest,
)
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.parsing import parse_scalar
from tapestry.metakernels.scalars import Cast, Cell, Constant, Folded, Position, Scalar
from tapestry.metakernels.syntax import (
    Binary,
    Call,
    Compare,
    Comprehension,
    Coordinate,
    Count,
    Expr,
    Item,
    ListExpr,
    Name,
    Negate,
    Not,
    Number,
    Slice,
    Splice,
    String,
    Variable,
    walk,
)
from tapestry.metakernels.values import Affine, Names, integer

__all__ = ["Body", "parse_scalar", "rounds"]

FOLD = "fold"
"""What `unwrap` calls the folded value."""

Term = Scalar | Known


@dataclass(frozen=True, slots=True)
class Body:
    """Reads bodies: `cells` gives inputs their dtypes, `folded` the parts of states theirs.

    `states` names states and the parts that they have; all parts are those of `fold` unless given.
    `absent` are inputs of the template that have no cell here.
    """

    scope: Scope
    cells: Mapping[str, str]
    folded: tuple[str, ...] = ()
    widen: bool = False
    states: Mapping[str, range] | None = None
    blocks: Mapping[str, Block] = field(default_factory=dict[str, Block])
    absent: frozenset[str] = frozenset()

    def within(self, names: Names) -> Body:
        """The same, where further names are known."""
        return replace(self, scope=replace(self.scope, names={**self.scope.names, **names}))

    def read(self, expr: Expr, dtype: str) -> Scalar:
        """`expr` as a value of `dtype`; floats round to it, nothing else is converted silently."""
        return self.convert(self.term(expr), dtype)

    def convert(self, term: Term, dtype: str) -> Scalar:
        """`term` as a value of `dtype`, by the same rule."""
        if isinstance(term, Known):
            return coerce(term, dtype)
        if is_float(term.dtype) and is_float(dtype):
            return coerce(term, dtype)
        if promote(term.dtype, dtype) != dtype:
            raise DtypeMismatchError(
                f"it is computed in {term.dtype}, and {dtype} is required",
                hint=f"convert it explicitly: cast(..., {dtype})",
            )
        return coerce(term, dtype)

    def constant(self, expr: Expr, dtype: str) -> Constant:
        """`expr` as a number of `dtype` that is known at expansion."""
        term = self.term(expr)
        if isinstance(term, Known):
            term = coerce(term, dtype)
        if not isinstance(term, Constant):
            raise KindMismatchError(
                "it must be known before the operation runs",
                hint="a number, lowest($t), or what parameters and sizes compute",
            )
        if term.dtype != dtype:
            raise DtypeMismatchError(f"it is a {term.dtype}, and {dtype} is required")
        return term

    def state(self, expr: Expr) -> Scalar:
        """`expr` in its own type, as a part of a fold's state."""
        term = self.term(expr)
        if isinstance(term, Known):
            raise DtypeMismatchError(
                f"the folded value is the constant {term.value}, which has no dtype of its own",
                hint="give it one: cast(1, i64)",
            )
        return term

    def term(self, expr: Expr) -> Term:
        """The typed value of `expr`, or a number that has no type yet."""
        match expr:
            case Number(value):
                return Known(value)
            case String(value):
                return Known(value)
            case Name(name):
                return self._name(name)
            case Item(Name(name), index):
                return self._part(name, index)
            case (
                Variable() | Count() | Coordinate() | Item() | Slice() | ListExpr()
                | Comprehension()
            ):  # fmt: skip
                return self._evaluated(expr)
            case Splice(name):
                raise KindMismatchError(
                    f"{name}... is a list of cells", hint=f"as arguments: max({name}...)"
                )
            case Negate(operand):
                return functions.negate(self.term(operand))
            case Not(operand):
                return functions.invert(self.term(operand))
            case Binary("^", left, right):
                return functions.power(self.term(left), self.term(right))
            case Binary("and" | "or" as operator, left, right):
                return functions.logic(operator, self.term(left), self.term(right))
            case Binary(operator, left, right):
                return functions.arithmetic(operator, self.term(left), self.term(right))
            case Compare(operator, left, right):
                return functions.compare(operator, self.term(left), self.term(right))
            case Call("read", (block, *indices), otherwise):
                return self._read(block, indices, otherwise)
            case Call(function, arguments):
                return self._call(function, arguments)

    def _parts(self, name: str) -> range | None:
        """The parts of the state `name`; None when there is no such state."""
        if self.states is not None:
            return self.states.get(name)
        return range(len(self.folded)) if name == FOLD and self.folded else None

    def _name(self, name: str) -> Term:
        parts = self._parts(name)
        if parts is not None:
            if len(parts) > 1:
                raise KindMismatchError(
                    f"the state {name} has {len(parts)} parts", hint=f"write {name}[0], {name}[1]"
                )
            return self._part(name, Number(0))
        if name not in self.cells and name in NAMED:
            return Known(NAMED[name])
        return self._cell(self._only(name))

    def _only(self, name: str) -> str:
        """The cell of the input `name`, of which there must be one."""
        if name in self.cells:
            return name
        cells = self._list(name)
        if len(cells) == 1:
            return cells[0]
        if cells:
            raise UnreadCellError(
                f"{name} is {len(cells)} cells here, where one is needed",
                hint=f"pick one of them, {name}[0], or take all as arguments, max({name}...)",
            )
        if name in self.absent:
            raise UnreadCellError(
                f"{name} is not read here: it is not given, or its `when` does not hold",
                hint=f"write where(#{name}, ...): it keeps only the branch that it takes",
            )
        known = (*self.cells, *((FOLD,) if self.folded else ()))
        raise UnknownNameError(f"{name} is no input", hint=nearest(name, known))

    def _list(self, name: str) -> list[str]:
        """The cells of the list `name`, in order."""
        return [cell for cell in self.cells if cell.partition(".")[0] == name]

    def _cell(self, name: str) -> Scalar:
        return self._widened(Cell(name, self.cells[name]))

    def _widened(self, cell: Scalar) -> Scalar:
        return Cast(cell, "f32") if self.widen and cell.dtype in HALVES else cell

    def _read(self, block: Expr, indices: Sequence[Expr], otherwise: Expr | None) -> Scalar:
        match block:
            case Name(name):
                name = self._only(name)
            case Item(Name(name), index):
                name = self._element(name, index)
            case _:
                name = ""
        if name not in self.blocks:
            raise BoxError("read takes an input with a box first")
        dtype = self.cells[name]
        fill = None if otherwise is None else self.read(otherwise, dtype)
        places = [self.term(index) for index in indices]
        return self._widened(self.blocks[name].read(name, dtype, places, fill))

    def _element(self, name: str, index: Expr) -> str:
        """The cell of the list `name` at a position."""
        position = integer(evaluate(index, self.scope), "the position in a list")
        if f"{name}.{position}" not in self.cells:
            read = ", ".join(cell.partition(".")[2] for cell in self._list(name))
            raise UnreadCellError(
                f"{name}[{position}] is not read here", hint=f"read: {read or 'none'}"
            )
        return f"{name}.{position}"

    def _part(self, name: str, index: Expr) -> Scalar:
        parts = self._parts(name)
        if parts is None and name not in self.cells:
            return self._cell(self._element(name, index))
        if parts is None:
            raise KindMismatchError(
                f"{name}[...]: an input's cell has no elements",
                hint="the projection (ipf) says which cell is read",
            )
        part = evaluate(index, self.scope)
        if not isinstance(part, int) or not 0 <= part < len(parts):
            raise IndexOutOfRangeError(
                f"{name}[{part}]: the state {name} has {len(parts)} parts, counted from 0"
            )
        return Folded(parts[part], self.folded[parts[part]])

    def _evaluated(self, expr: Expr) -> Term:
        value = evaluate(expr, self.scope)
        if isinstance(value, Affine):
            dim = value.unit
            assert dim is not None
            return Position(dim)
        if isinstance(value, tuple):
            raise KindMismatchError(
                f"a list of {len(value)} values stands where one is needed",
                hint="pick one of its elements with [0]",
            )
        return Known(value)

    def _spliced(self, arguments: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The arguments, with `x...` replaced by the cells of the list x."""
        found: list[Expr] = []
        for argument in arguments:
            if isinstance(argument, Splice):
                positions = [cell.partition(".")[2] for cell in self._list(argument.name)]
                if not positions:
                    raise UnreadCellError(f"{argument.name}... is no cell here: the list is empty")
                found.extend(Item(Name(argument.name), Number(int(p))) for p in positions)
            else:
                found.append(argument)
        return tuple(found)

    def _call(self, function: str, arguments: tuple[Expr, ...]) -> Term:
        spliced = self._spliced(arguments)
        functions.check_call(function, len(spliced), spliced=spliced != arguments)
        arguments = spliced
        if function == "cast":
            term, dtype = self.term(arguments[0]), evaluate_dtype(arguments[1], self.scope.names)
            return coerce(term, dtype, explicit=True)
        if function in ("lowest", "highest", "largest"):
            return extreme(function, evaluate_dtype(arguments[0], self.scope.names))
        if function == "where":
            condition = self.term(arguments[0])
            if isinstance(condition, Known):
                return self.term(arguments[1 if constants.truth(condition) else 2])
            return functions.select(condition, self.term(arguments[1]), self.term(arguments[2]))
        if function == "random":
            seed, word = (self.term(argument) for argument in arguments)
            return functions.random(seed, word, self.scope.extents)
        return functions.call(function, [self.term(argument) for argument in arguments])


@lru_cache(maxsize=4096)
def rounds(expr: Expr) -> bool:
    """Whether `expr` computes (and so rounds) floats, rather than only choosing among cells."""
    return any(
        (isinstance(node, Binary) and node.operator not in ("and", "or"))
        or (isinstance(node, Call) and functions.is_rounding(node.function))
        for node in walk(expr)
    )

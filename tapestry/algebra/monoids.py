"""Monoids: how folded values are combined, and what an empty fold is.

A monoid is a state of typed parts, a zero, and an associative merge written as a body of scalar
operations. The built-in ones are generic in their types:

    >>> from xdsl.dialects.builtin import f32, i64
    >>> builtin_monoid("max", (f32,)).zero
    (-inf,)
    >>> builtin_monoid("argmax", (f32, i64)).primitive is None    # merges two parts
    True

Maxima and minima propagate NaN, and argmax and argmin take the first of equal values and the first
NaN, as PyTorch does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import (
    AnyFloat,
    ModuleOp,
    StringAttr,
    f32,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tapestry.algebra._statistics import STATISTICS, statistic
from tapestry.algebra.dtypes import (
    BODY_TYPES,
    integer_width,
    is_complex,
    is_float,
    is_half,
    is_integer,
    is_storage_only,
)
from tapestry.algebra.literals import number_attr, number_in
from tapestry.dialects import loom

BUILTIN_MONOIDS = ("add", "mul", "max", "min", "and", "or", "argmax", "argmin", *STATISTICS)
"""The monoids known by name, for every type that they make sense for."""


@dataclass(frozen=True, eq=False)
class Monoid:
    """A way to fold: `zero` starts, `merge` (a block of 2n arguments) combines two states."""

    name: str
    state: tuple[Attribute, ...]
    zero: tuple[int | float | complex, ...]
    merge: Block
    commutative: bool

    @property
    def merged(self) -> tuple[SSAValue, ...]:
        """What the merge yields: a value for each part of the state."""
        return loom.yielded(self.merge)

    @property
    def real_zero(self) -> tuple[int | float, ...]:
        """The zero of a monoid that has no complex part."""
        reals = tuple(part for part in self.zero if not isinstance(part, complex))
        assert len(reals) == len(self.zero)
        return reals

    @property
    def primitive(self) -> type[Operation] | None:
        """The operation that merge is, when it is a single one on the two states in order.

        It is what lets an executor use a ready-made reduction, whatever the monoid's name.
        """
        (found,) = self.primitives if len(self.state) == 1 else (None,)
        return found

    @property
    def primitives(self) -> tuple[type[Operation] | None, ...]:
        """Per part of the state, `primitive`; None for one that is merged by more, or with others.

        >>> from xdsl.dialects.builtin import f32
        >>> builtin_monoid("max", (f32,)).primitives[0].name
        'arith.maximumf'
        """
        count = len(self.state)
        if len(self.merge.ops) != count + 1:
            return (None,) * count
        found: list[type[Operation] | None] = []
        for part, value in enumerate(self.merged):
            op, both = value.owner, (self.merge.args[part], self.merge.args[count + part])
            single = isinstance(op, Operation) and tuple(op.operands) == both
            found.append(type(op) if isinstance(op, Operation) and single else None)
        return tuple(found)


def _float_zero(name: str) -> float | None:
    return {
        "add": 0.0,
        "mul": 1.0,
        "max": float("-inf"),
        "min": float("inf"),
        "argmax": float("-inf"),
        "argmin": float("inf"),
    }.get(name)


def _integer_zero(name: str, width: int) -> int | None:
    low, high = (0, 1) if width == 1 else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    return {
        "add": 0,
        "mul": 1,
        "max": low,
        "min": high,
        "or": 0,
        "and": 1 if width == 1 else -1,
        "argmax": low,
        "argmin": high,
    }.get(name)


_Binary = Callable[[SSAValue, SSAValue], Operation]

_FLOAT: dict[str, _Binary] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
# Complex numbers have no order: there is no largest of them.
_COMPLEX: dict[str, _Binary] = {
    "add": complex_dialect.AddOp,
    "mul": complex_dialect.MulOp,
}
_INTEGER: dict[str, _Binary] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
}
# On truth values (i1) "signed" order would put true below false.
_TRUTH: dict[str, _Binary] = {
    "add": arith.OrIOp,
    "mul": arith.AndIOp,
    "max": arith.OrIOp,
    "min": arith.AndIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
}


def _binary_merge(name: str, element: Attribute) -> Region | None:
    if isinstance(element, AnyFloat):
        build = _FLOAT.get(name)
    elif is_complex(element):
        build = _COMPLEX.get(name)
    else:
        build = (_TRUTH if element == i1 else _INTEGER).get(name)
    if build is None:
        return None
    block = Block(arg_types=[element, element])
    merged = build(block.args[0], block.args[1])
    block.add_ops([merged, loom.YieldOp(merged)])
    return Region(block)


def _extremum_merge(name: str, element: Attribute, position: Attribute) -> Region:
    """Keep the better (value, position); of equal values the smaller position; NaN is best."""
    block = Block(arg_types=[element, position, element, position])
    a, i, b, j = block.args
    if isinstance(element, AnyFloat):
        # What is not ordered holds also where a or b is NaN, so b must be a number; two NaNs tie.
        better = arith.CmpfOp(a, b, "ugt" if name == "argmax" else "ult")
        b_number = arith.CmpfOp(b, b, "ord")
        wins = arith.AndIOp(better.result, b_number.result)
        equal = arith.CmpfOp(a, b, "oeq")
        a_nan = arith.CmpfOp(a, a, "uno")
        tie = arith.OrIOp(equal.result, a_nan.result)
        block.add_ops([better, b_number, wins, equal, a_nan, tie])
    else:
        order = "u" if element == i1 else "s"
        wins = arith.CmpiOp(a, b, order + ("gt" if name == "argmax" else "lt"))
        tie = arith.CmpiOp(a, b, "eq")
        block.add_ops([wins, tie])
    first = arith.CmpiOp(i, j, "sle")
    tie_first = arith.AndIOp(tie.result, first.result)
    take = arith.OrIOp(wins.result, tie_first.result)
    value = arith.SelectOp(take.result, a, b)
    index = arith.SelectOp(take.result, i, j)
    block.add_ops([first, tie_first, take, value, index, loom.YieldOp(value, index)])
    return Region(block)


def _zero(name: str, element: Attribute) -> int | float | None:
    if is_complex(element):
        return _float_zero(name) if name in _COMPLEX else None
    return _float_zero(name) if is_float(element) else _integer_zero(name, integer_width(element))


def _definition(name: str, state: tuple[Attribute, ...]) -> loom.MonoidOp | None:
    if not state or name not in BUILTIN_MONOIDS or not {*state} <= {*BODY_TYPES}:
        return None
    if any(map(is_storage_only, state)):
        return None
    element = state[0]
    if name in STATISTICS:
        fits = is_float(element) and state == (element,) * STATISTICS[name][0]
        return statistic(name, element) if fits else None
    zero = _zero(name, element)
    if zero is None:
        return None
    zeros: list[Attribute] = [number_attr(zero, element)]
    if name in ("argmax", "argmin"):
        if len(state) != 2 or not is_integer(state[1]) or state[1] == i1:
            return None
        zeros.append(number_attr((1 << (integer_width(state[1]) - 1)) - 1, state[1]))
        merge: Region | None = _extremum_merge(name, element, state[1])
    else:
        merge = _binary_merge(name, element) if len(state) == 1 else None
    if merge is None:
        return None
    return loom.MonoidOp(name, zeros, merge, commutative=True)


def monoid_from(definition: loom.MonoidOp) -> Monoid:
    """The monoid that a (verified) `loom.monoid` defines."""
    zeros: list[int | float | complex] = []
    for attribute in definition.zero:
        zero = number_in(attribute)
        assert zero is not None
        zeros.append(zero)
    return Monoid(
        name=definition.sym_name.data,
        state=definition.state_types,
        zero=tuple(zeros),
        merge=definition.merge.block,
        commutative=definition.is_commutative,
    )


@lru_cache(maxsize=1024)
def builtin_monoid(name: str, state: tuple[Attribute, ...]) -> Monoid | None:
    """The built-in monoid `name` on a state of these types; None when there is none."""
    definition = _definition(name, state)
    return None if definition is None else monoid_from(definition)


def find_monoid(op: Operation, name: str, state: tuple[Attribute, ...]) -> Monoid | None:
    """The monoid `name` as `op` sees it: a built-in one, else one its module defines."""
    if name in BUILTIN_MONOIDS:
        return builtin_monoid(name, state)
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    if module is None:
        return None
    for candidate in module.body.block.ops:
        if isinstance(candidate, loom.MonoidOp) and candidate.sym_name == StringAttr(name):
            # The definition may stand after its user and be wrong: its own verifier says how.
            formed = len(candidate.merge.blocks) == 1 and candidate.state_types == state
            return monoid_from(candidate) if formed else None
    return None


def monoid_of(op: loom.BlockSignature) -> Monoid | None:
    """The monoid that a verified operation or kernel folds by; None when it does not fold."""
    name = op.monoid_name
    return None if name is None else find_monoid(op, name, op.state_types)


def accumulating(monoid: Monoid) -> Monoid:
    """The monoid that executors fold by: of a single operation on 16-bit floats, that on float32.

    What is folded has the state's type, and so has what is stored or unwrapped; only in between is
    nothing rounded. Merges of several operations compute in the types that they are written in.
    """
    if monoid.primitive is None or not is_half(monoid.state[0]):
        return monoid
    single = monoid.merge.first_op
    assert single is not None
    block = Block(arg_types=[f32, f32])
    wide = type(single).create(
        operands=block.args, result_types=[f32], properties=single.properties.copy()
    )
    block.add_ops([wide, loom.YieldOp(*wide.results)])
    return replace(monoid, state=(f32,), merge=block)


def accumulating_monoid_of(op: loom.BlockSignature) -> Monoid | None:
    """The monoid that executors fold a verified operation or kernel by; None without a fold."""
    monoid = monoid_of(op)
    return None if monoid is None else accumulating(monoid)

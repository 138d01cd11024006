"""Rules of bodies: scalar operations alone, and types that fit from cells to outputs.

    loom.operation @y: wrap yields (f64), but the outputs hold (f32)

Each rule is a function that lists what is wrong, nothing when all is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tapestry.algebra.dtypes import BODY_TYPES, is_complex, is_storage_only
from tapestry.algebra.scalars import has_meaning
from tapestry.dialects._loom_blocks import BlockType, element_of
from tapestry.issues import Problem

if TYPE_CHECKING:
    from tapestry.dialects import loom

_CONVERSIONS = ("arith.extf", "arith.truncf")
_BODY_DIALECTS = ("arith", "math", "complex")
_PREDICATES = {
    "arith.cmpi": len(CMPI_COMPARISON_OPERATIONS),
    "arith.cmpf": len(CMPF_COMPARISON_OPERATIONS),
}
_BODY_OPERATIONS = ("loom.random", "loom.read")


def types_text(values: Iterable[Attribute]) -> str:
    """`(f32, i64)`."""
    return "(" + ", ".join(map(str, values)) + ")"


def body(
    name: str, block: Block, arguments: Sequence[Attribute], dims: Sequence[int]
) -> list[Problem]:
    """Arguments, operations, types, coordinates and definition order of a body."""
    problems: list[Problem] = []
    have = [argument.type for argument in block.args]
    if have != list(arguments):
        message = f"{name} takes {types_text(have)}, but its cells are {types_text(arguments)}"
        problems.append(Problem("body-arguments", message, arguments=have, cells=arguments))
    last = block.last_op
    if last is None or last.name != "loom.yield":
        problems.append(Problem("body-end", f"{name} does not end with loom.yield", at=last))
    defined: set[SSAValue] = set(block.args)
    for op in block.ops:
        if op is not last:
            problems += _body_operation(name, op, dims)
        for place, operand in enumerate(op.operands):
            if isinstance(operand.type, BlockType) and not (op.name == "loom.read" and place == 0):
                message = f"{name} uses a block in {op.name}; only loom.read takes cells of it"
                problems.append(Problem("block-use", message, at=op, block=operand.type))
            if operand not in defined:
                message = f"{name} uses a value from outside itself, or before it is defined"
                problems.append(Problem("dominance", message, at=op))
        defined.update(op.results)
    unknown = {value.type for value in defined if element_of(value.type) not in BODY_TYPES}
    for kind in sorted(unknown, key=str):
        message = f"{name} holds values of type {kind}; bodies compute on {types_text(BODY_TYPES)}"
        problems.append(Problem("body-type", message, type=kind))
    return problems


def _body_operation(name: str, op: Operation, dims: Sequence[int]) -> list[Problem]:
    """A body holds scalar operations, and coordinates of dimensions it has."""
    stored = [v.type for v in (*op.operands, *op.results) if is_storage_only(v.type)]
    if stored and op.name not in _CONVERSIONS:
        message = (
            f"{name} computes {op.name} on {stored[0]}, which is only stored; arith.extf makes "
            "numbers of it to compute with, arith.truncf brings them back"
        )
        return [Problem("body-operation", message, at=op, operation=op.name)]
    known = _PREDICATES.get(op.name)
    predicate = op.properties.get("predicate")
    if known and isinstance(predicate, IntegerAttr) and predicate.value.data not in range(known):
        number = predicate.value.data
        message = f"{name} compares by predicate {number}; those of {op.name} are 0 to {known - 1}"
        return [Problem("body-operation", message, at=op, predicate=number)]
    if op.name in _BODY_OPERATIONS or has_meaning(op):
        return []
    if op.name.partition(".")[0] in _BODY_DIALECTS:
        message = f"{name} holds {op.name}, which no executor computes"
        return [Problem("body-operation", message, at=op, operation=op.name)]
    if op.name != "loom.index":
        message = f"{name} holds {op.name}; only scalar arith, math and complex operations may"
        return [Problem("body-operation", message, at=op, operation=op.name)]
    dim = op.properties.get("dim")
    if not isinstance(dim, IntegerAttr) or dim.value.data in dims:
        return []
    number = dim.value.data
    message = f"{name} asks for the coordinate of dimension {number}; it has {list(dims)}"
    return [Problem("body-index", message, at=op, dimension=number, dimensions=dims)]


def single_block(name: str, region: Region) -> list[Problem]:
    """A body has one block at most."""
    if len(region.blocks) <= 1:
        return []
    message = f"{name} has {len(region.blocks)} blocks; a body is a single one, without branches"
    return [Problem("body-blocks", message, blocks=len(region.blocks))]


def yielded(block: Block) -> tuple[SSAValue, ...]:
    """The values that a body yields."""
    last = block.last_op
    return () if last is None else tuple(last.operands)


def yielded_types(block: Block) -> list[Attribute]:
    """The types that a body yields."""
    return [value.type for value in yielded(block)]


def signature_bodies(
    op: loom.BlockSignature,
    ins: Sequence[Attribute] | None,
    extras: Sequence[Attribute] | None,
    outs: Sequence[Attribute] | None,
) -> list[Problem]:
    """Types through wrap, monoid and unwrap; None for types that only operands would tell."""
    from tapestry.algebra.monoids import BUILTIN_MONOIDS, find_monoid

    wrap, unwrap = op.wrap.first_block, op.unwrap.first_block
    if wrap is None:
        return [Problem("body-missing", "the wrap body is missing")]
    if ins is None:
        ins = [argument.type for argument in wrap.args]
    problems = [*single_block("wrap", op.wrap), *single_block("unwrap", op.unwrap)]
    if problems:
        return problems
    problems += body("wrap", wrap, ins, range(len(op.kinds)))
    state = yielded_types(wrap)
    result, last = state, "wrap"
    name = op.monoid_name
    if op.fold_dims and op.scan_dim is not None:
        message = "it folds and scans; make one of them an operation of its own"
        problems.append(Problem("iterators", message, iterators=op.kinds))
    if op.kinds.count("scan") > 1:
        message = "it scans along several dimensions; a scan of a scan is two operations"
        problems.append(Problem("iterators", message, iterators=op.kinds))
    if name is None:
        for kind, verb in (("fold", "folds"), ("scan", "scans")):
            if kind in op.kinds:
                message = f"it {verb}, but names no monoid; add `by @add`, for example"
                problems.append(Problem("monoid-missing", message))
        if unwrap is not None:
            problems.append(Problem("unwrap-unused", "it has an unwrap body, but folds nothing"))
        if extras:
            message = "it has extra inputs, but folds nothing; make them inputs"
            problems.append(Problem("extra-unused", message))
    else:
        if not op.fold_dims and op.scan_dim is None:
            message = f"it names the monoid @{name}, but no dimension is folded or scanned"
            problems.append(Problem("monoid-unused", message, monoid=name))
        if find_monoid(op, name, tuple(state)) is None:
            message = (
                f"no monoid @{name} folds states of type {types_text(state)}; built in are "
                + ", ".join(BUILTIN_MONOIDS)
            )
            if name in BUILTIN_MONOIDS and any(map(is_complex, state)):
                message += "; of complex numbers, which have no order, add and mul"
            problems.append(Problem("monoid-unknown", message, monoid=name, state=state))
        if unwrap is not None:
            if extras is None:
                extras = [argument.type for argument in unwrap.args[len(state) :]]
            problems += body("unwrap", unwrap, [*state, *extras], op.kept_dims)
            result, last = yielded_types(unwrap), "unwrap"
        elif extras:
            message = "it has extra inputs, but no unwrap body that reads them"
            problems.append(Problem("extra-unused", message))
    if outs is not None and result != list(outs):
        message = f"{last} yields {types_text(result)}, but the outputs hold {types_text(outs)}"
        problems.append(Problem("body-yield", message, yielded=result, outputs=outs))
    return problems


def is_ordered(op: loom.BlockSignature) -> bool:
    """Whether an operation or kernel merges states by a monoid that does not commute."""
    from tapestry.algebra.monoids import find_monoid

    name, wrap = op.monoid_name, op.wrap.first_block
    if name is None or wrap is None:
        return False
    monoid = find_monoid(op, name, tuple(yielded_types(wrap)))
    return monoid is not None and not monoid.commutative

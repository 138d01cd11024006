"""Why a program is in as many pieces as it is: what joined, what could not, and what moves.

    >>> from tapestry.frontend import parse_module
    >>> module = parse_module('''
    ... !x = !loom.tensor<[0, 0] : [4, 6], f32>
    ... !y = !loom.tensor<[0] : [4], f32>
    ... func.func @main(%x: !x) -> (!x, !y) {
    ...   %e = weft.apply @exp(%x) : (!x) -> !x
    ...   %s = weft.apply @sum(%e) {axis = 1} : (!x) -> !y
    ...   func.return %e, %s : !x, !y
    ... }''')
    >>> from tapestry.frontend import run_pipeline
    >>> run_pipeline(module, "weft-apply,loom-fuse,loom-shard{op=e grid=4,1}")
    >>> [edge] = boundaries(module)
    >>> print(edge.why_apart)
    func.return reads what @e writes too, so it is stored anyway
    >>> edge.moved, edge.read
    (72, 96)

The reasons are the very conditions of the passes (`loom-fuse`, `loom-derive`, `loom-group`): what
is not met is said of the operations at hand, and nothing else decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.explaining_groups import FlatProgram
from tapestry.halos import halos
from tapestry.locations import location_of
from tapestry.movement import Edge, Splittable, edges, moved_bytes, read_bytes, splittables
from tapestry.passes.loom.derivation.emission import REFUSED
from tapestry.passes.loom.derivation.planning import Found, find_derivation
from tapestry.passes.loom.fuse import Bounds, epilogue, prologue
from tapestry.passes.loom.rebuilding.notes import ASSUMES
from tapestry.passes.triton.groups.cutting import kernels_of
from tapestry.passes.triton.groups.lowering import why_several_kernels
from tapestry.temporaries import temporaries


@dataclass(frozen=True)
class Boundary:
    """A tensor stored between two operations: why, and what of it moves between shards.

    `why_apart` is why they are not one operation, `why_no_group` why not one group; None where they
    could be. `read` is what the reader's shards read, `moved` what of it was written elsewhere, in
    bytes.
    """

    edge: Edge
    why_apart: str
    why_no_group: str | None
    read: int
    moved: int


def boundaries(module: ModuleOp) -> tuple[Boundary, ...]:
    """Every tensor that one operation writes and another reads, in program order."""
    flat = FlatProgram.of(module)
    return tuple(
        Boundary(
            edge,
            _why_apart(edge),
            flat.why_no_group(edge.producer, edge.reader),
            read_bytes(edge),
            moved_bytes(edge),
        )
        for reader in splittables(module)
        for edge in edges(reader)
    )


def derivation_steps(op: Splittable) -> tuple[str, ...]:
    """How `loom-derive` made an operation, step by step; nothing where it did not."""
    return _noted(op, "derivation")


def _noted(op: Splittable, attribute: str) -> tuple[str, ...]:
    """What an attribute of an operation lists."""
    notes = op.attributes.get(attribute)
    if not isinstance(notes, ArrayAttr):
        return ()
    return tuple(n.data for n in cast(ArrayAttr[Attribute], notes) if isinstance(n, StringAttr))


def why_not_derived(op: Splittable) -> str | None:
    """Why a fold that reads earlier folds over its cells stays apart; None if it reads none."""
    found = find_derivation(op) if isinstance(op, loom.OperationOp) else None
    if isinstance(found, Found):
        return "loom-derive has not run"
    recorded = op.attributes.get(REFUSED)
    return recorded.data if found is None and isinstance(recorded, StringAttr) else found


def _why_apart(edge: Edge) -> str:
    producer, reader = edge.producer, edge.reader
    if not isinstance(producer, loom.OperationOp) or not isinstance(reader, loom.OperationOp):
        other = reader if isinstance(producer, loom.OperationOp) else producer
        what = "a group" if isinstance(other, loom.FusedOp) else "an external kernel"
        return f"{other.subject} is {what}, which loom-fuse leaves alone"
    if edge.tensor not in reader.operands:
        return "a view stands between them: loom-simplify folds it into what is read"
    folds = producer.monoid_name is not None
    reason = epilogue(producer, reader, Bounds()) if folds else prologue(producer, Bounds())
    return reason if isinstance(reason, str) else "loom-fuse has not run"


def _why_several_kernels(op: Splittable) -> str | None:
    """Why a group is not one kernel; None where it is, or where it cannot be lowered at all."""
    try:
        return why_several_kernels(op) if isinstance(op, loom.FusedOp) else None
    except InvalidProgramError:
        return None


def explain(module: ModuleOp) -> Iterator[str]:
    """The same as lines of text: what is external, then each operation, and what it reads.

    Last, what the tensors in between take.
    """
    yield from _externals(module)
    flat = FlatProgram.of(module)
    for op in splittables(module):
        yield f"{op.subject} over <{op.index}>"
        for member in op.members if isinstance(op, loom.FusedOp) else (op,):
            if member is not op:
                yield f"  holds {member.subject} over <{member.index}>"
            for step in derivation_steps(member):
                yield f"  derived: {step}"
            for assumed in _noted(member, ASSUMES):
                yield f"  assumes: {assumed}"
        several = _why_several_kernels(op)
        if several is not None and isinstance(op, loom.FusedOp):
            yield f"  several kernels of Triton: {several}"
            kernels = (" with ".join(f"@{label}" for label in one) for one in kernels_of(op))
            yield f"  kernels of Triton: {'; '.join(kernels)}"
        for halo in halos(op):
            yield f"  a shard reads {halo}"
        refused = why_not_derived(op)
        if refused is not None:
            yield f"  not derived: {refused}"
        said: set[str] = set()
        for edge in edges(op):
            producer, moved, read = edge.producer, moved_bytes(edge), read_bytes(edge)
            apart = f"  apart from {producer.subject}: {_why_apart(edge)}"
            if apart not in said:
                said.add(apart)
                yield apart
                reason = flat.why_no_group(producer, op)
                if reason is not None:
                    yield f"  no group with {producer.subject}: {reason}"
            if moved:
                yield f"  moves {moved:,} of the {read:,} bytes that it reads of it: {_split(edge)}"
    held = temporaries(module)
    if held.count:
        yield (
            f"tensors in between: {held.count} of {held.bytes:,} bytes, which take {held.arena:,} "
            "where they share memory"
        )


def _externals(module: ModuleOp) -> Iterator[str]:
    """Each kernel that is only a name: how often it is used, and where first."""
    found: dict[str, list[loom.ExternalOp]] = {}
    for op in module.walk():
        if isinstance(op, loom.ExternalOp):
            found.setdefault(op.subject, []).append(op)
    for name, uses in found.items():
        place = location_of(uses[0])
        yield f"external: {len(uses)} x {name}" + (f", first at {place}" if place else "")


def _split(edge: Edge) -> str:
    """How the two are split."""
    one, other = (
        f"{op.subject} is " + ("whole" if op.partition is None else f"split by {op.partition}")
        for op in (edge.producer, edge.reader)
    )
    return f"{one}, {other}"

"""Which branches of a program were really sampled: taken in a cell where it matters for an output.

A site is a maximum, a minimum, a comparison of what is read. It is forced one way, everywhere; when
that changes an output, then somewhere the other way was taken, without a tie, in a cell that
reaches it. That is tried on several inputs; what never changes anything is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.monoids import monoid_of
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.proving.evaluation import evaluate_program
from tapestry.proving.floats import NARROW, FloatArithmetic
from tapestry.proving.inputs import Draw
from tapestry.runtime.executor import Array

SITES = 48
"""How many sites of a program are looked at."""

_EXTREMA = (
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.MaxUIOp,
    arith.MinUIOp,
)
_COMPARES = (arith.CmpfOp, arith.CmpiOp)
BRANCHING = (*_EXTREMA, *_COMPARES)
"""Scalar operations that choose, or say what is chosen."""


@dataclass(frozen=True)
class Site:
    """A scalar operation that branches or steps, in an operation of the program."""

    op: Operation
    label: str

    def outcome(self, taken: bool) -> str:
        """What was not sampled, in words."""
        if isinstance(self.op, _EXTREMA):
            return f"{self.op.name} in @{self.label} taking its {'first' if taken else 'second'}"
        return f"{self.op.name} in @{self.label} being {'true' if taken else 'false'}"


def sites(module: ModuleOp, kinds: tuple[type[Operation], ...] = BRANCHING) -> Iterator[Site]:
    """The sites of a program, each once: those that branch, unless other kinds are asked for."""
    seen: set[Operation] = set()
    for op in module.walk():
        if not isinstance(op, loom.BlockSignature):
            continue
        label = op.label.data if isinstance(op, loom.OperationOp) else "kernel"
        monoid = monoid_of(op)
        blocks = [op.wrap_block, op.unwrap_block, None if monoid is None else monoid.merge]
        for block in blocks:
            for found in () if block is None else _depending(block, kinds):
                if found not in seen:
                    seen.add(found)
                    yield Site(found, label)


def _depending(block: Block, kinds: tuple[type[Operation], ...]) -> Iterator[Operation]:
    """Operations of a body that depend on what the body is given, not on coordinates alone."""
    given: set[SSAValue] = set(block.args)
    for op in block.ops:
        if any(operand in given for operand in op.operands):
            given.update(op.results)
            if isinstance(op, kinds):
                yield op


class Forced(FloatArithmetic):
    """Floats, with one site forced one way."""

    def __init__(self, site: Operation, outcome: bool) -> None:
        super().__init__(NARROW)
        self.folds_whole = False  # the merge may be the site
        self._site, self._outcome = site, outcome

    def compute(self, op: Operation, operands: Sequence[Array]) -> Array:
        if op is not self._site:
            return super().compute(op, operands)
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        if isinstance(op, _EXTREMA):
            return np.broadcast_to(operands[0 if self._outcome else 1], shape)
        return np.full(shape, self._outcome)


def uncovered(module: ModuleOp, draws: Sequence[Sequence[Draw]]) -> list[str]:
    """What was not sampled by any of some inputs, in words."""
    more = len(list(sites(module))) - SITES
    rest = [f"{more} more branches"] if more > 0 else []
    return [site.outcome(taken) for site, taken in uncovered_sites(module, draws)] + rest


def uncovered_sites(module: ModuleOp, draws: Sequence[Sequence[Draw]]) -> list[tuple[Site, bool]]:
    """The sites, of the first `SITES`, that none of some inputs took that way."""
    left: list[tuple[Site, bool]] = [
        (site, taken) for site in islice(sites(module), SITES) for taken in (False, True)
    ]
    for draw in draws:
        if not left:
            break
        given = [x.as_cells(NARROW) for x in draw]
        plain = _outputs(module, given, FloatArithmetic(NARROW))
        if plain is None:
            continue  # the program takes no such inputs, so they sample nothing
        # Forced to be `not taken`: a change shows that `taken` was, where it matters.
        left = [
            (site, taken)
            for site, taken in left
            if _same(plain, _outputs(module, given, Forced(site.op, not taken)))
        ]
    return left


def _outputs(
    module: ModuleOp, given: Sequence[Array], arithmetic: FloatArithmetic
) -> tuple[Array, ...] | None:
    """What a program makes of some inputs; None where it cannot run on them."""
    try:
        return evaluate_program(module, given, arithmetic)
    except TapestryError:
        return None


def _same(one: Sequence[Array], other: Sequence[Array] | None) -> bool:
    """Whether forcing a site changed nothing. A forced guard may leave a block: a change."""
    if other is None:
        return False
    pairs = zip(one, other, strict=True)
    return all(np.allclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True) for x, y in pairs)

"""Products that one kernel sums beside each other: one after another, where that is faster.

A gate and what it gates, `silu(x @ g) * (x @ u)`, are one fold with two sums, which reads `x` once.
A program of it has tiles of both sums in its registers, each half as large as one alone could be,
and so moves more to multiply as much. As two folds (`passes.loom.parting`), the first one's result
is written and read again: little beside products of many terms. Which is faster, the cost model
says, as far as it can: on an H100 products alone took 0.8 of what was predicted, two sums in one
kernel 1.1, so that what is predicted alike is parted.

In and out: loom. What has a schedule is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.passes.loom.parting import find_parting, part_off
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.separate import separable_parts, separate
from tapestry.passes.triton.alternatives.alone import alone, gains
from tapestry.passes.triton.alternatives.splitting import Predict, seconds
from tapestry.passes.triton.kernels.contraction import find_contractions
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.passes.triton.schedules.task import SCHEDULE


@dataclass(frozen=True)
class PartOff(RewritePattern):
    """A fold becomes one of a product that ends apart, and one of the others.

    Legal where there is a `Parting`: no sum is in another order, and unwrap computes the same. What
    is folded besides for each row, which both may need, is a fold of its own before them.
    """

    chosen: Collection[loom.OperationOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op not in self.chosen:
            return
        if separable_parts(op):
            op = separate(op, rewriter)
            rewriter.insertion_point = InsertPoint.before(op)
        parting = find_parting(op, _products(op))
        if parting is not None:
            part_off(op, parting, rewriter)


@dataclass
class PartingChooser:
    """Chooses folds of several products to be parted; equal ones are looked at once."""

    predict: Predict
    _known: dict[str, bool] = field(default_factory=dict[str, bool])

    def chosen(self, module: ModuleOp) -> list[loom.OperationOp]:
        """The folds of which a part is to be one of its own."""
        return [
            op
            for op in module.walk()
            if isinstance(op, loom.OperationOp)
            and _may_part(op)
            and gains(alone(op), self._gains, self._known)
        ]

    def _gains(self, program: ModuleOp) -> bool:
        parted = program.clone()
        apply_partings(parted, _folds_of_products(parted))
        if len(_folds_of_products(parted)) == 1:
            return False  # Its sums need each other.
        apart = seconds(self.predict(parted, True))
        return apart <= seconds(self.predict(program, True, apart))


def apply_partings(module: ModuleOp, chosen: Collection[loom.OperationOp]) -> None:
    """Part the folds that are chosen."""
    if chosen:
        PatternRewriteWalker(PartOff(chosen), apply_recursively=False).rewrite_module(module)


def _folds_of_products(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp) and _products(op)]


def _may_part(op: loom.OperationOp) -> bool:
    """Whether a fold sums several products: known without a kernel."""
    if in_group(op) or SCHEDULE in op.attributes or op.partition is not None or op.index.is_empty:
        return False
    return len(_products(op)) > 1


def _products(op: loom.OperationOp) -> list[int]:
    """The parts of a fold's state that are sums of products."""
    found = find_contractions(map_fold_of(op)) if op.fold_dims and not in_group(op) else []
    return [part for part, product in enumerate(found) if product is not None]

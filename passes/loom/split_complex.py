"""`loom-split-complex`: complex numbers become pairs of real ones.

    func.func @main(%x: !loom.tensor<[0] : [4], complex<f32>>)
        -> !loom.tensor<[0] : [4], complex<f32>> {
      %y = loom.operation @f ... ins(%x : (d0) -> (d0)) ... wrap (%c: complex<f32>) { ... } ...

becomes

    func.func @main(%x: !loom.tensor<[0, 0] : [4, 2], f32>) -> !loom.tensor<[0, 0] : [4, 2], f32> {
      %x_re = loom.view %x : (d0) -> (d0, 0) ...
      %x_im = loom.view %x : (d0) -> (d0, 1) ...
      %y_re, %y_im = loom.operation @f ... ins(%x_re : ..., %x_im : ...) ... wrap (%c_re, %c_im) ...
      %y = loom.assemble %y_re at (d0) -> (d0, 0), %y_im at (d0) -> (d0, 1) ...

Inside a function every complex tensor is two real ones of its range. What a function takes and
returns has one more, innermost dimension instead, of the two parts: that is how complex arrays lie
in memory, so that NumPy and PyTorch see one as the other without a copy. The built-in monoids `add`
and `mul` become monoids of two parts, written out in the module.

Input: any verified loom program; external kernels take no complex numbers. Output: a program
without complex numbers, whose values are the parts of what they were, up to the rounding of
functions like `exp` (`complex_numbers.scalars` has each). Best followed by `loom-simplify`, which
reads through the views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, Region
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import Rewriter

from tapestry.algebra.complexes import find_complex
from tapestry.algebra.dtypes import is_complex
from tapestry.algebra.literals import number_attr
from tapestry.algebra.monoids import BUILTIN_MONOIDS, monoid_of
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.locations import nearest_location
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.complex_numbers.bodies import SplitScalar, SplitYield, is_split
from tapestry.passes.loom.complex_numbers.signatures import (
    SplitApplication,
    SplitGroup,
    SplitMerge,
    SplitMonoid,
    SplitSignature,
)
from tapestry.passes.loom.complex_numbers.tensors import (
    SplitAssemble,
    SplitConstant,
    SplitFunction,
    SplitReturn,
    SplitView,
)

_SPLIT = (
    loom.OperationOp,
    loom.FusedOp,
    loom.ApplicationOp,
    loom.MergeOp,
    loom.ViewOp,
    loom.ReshapeOp,
    loom.AssembleOp,
    loom.ConstantOp,
    loom.YieldOp,
    func.ReturnOp,
)
"""What functions and groups hold that can be split."""


@dataclass(frozen=True)
class LoomSplitComplex(ModulePass):
    """Make two real tensors of each complex one."""

    name = "loom-split-complex"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split every complex value of the module."""
        if not holds_complex(op):
            return
        _check(op)
        monoids = _write_monoids(op)
        patterns: list[RewritePattern] = [
            SplitFunction(),
            SplitReturn(),
            SplitView(),
            SplitAssemble(),
            SplitConstant(),
            SplitMonoid(),
            SplitSignature(monoids),
            SplitApplication(),
            SplitMerge(),
            SplitGroup(),
            SplitYield(),
            SplitScalar(),
        ]
        with collection_paused():
            # Each operation once, in order: what it uses has been split before.
            applier = GreedyRewritePatternApplier(patterns, dce_enabled=False)
            PatternRewriteWalker(applier, apply_recursively=False).rewrite_module(op)
            for cast in [cast for cast in op.walk() if cast.name == _CAST]:
                Rewriter.erase_op(cast)


_CAST = "builtin.unrealized_conversion_cast"


def holds_complex(module: ModuleOp) -> bool:
    """Whether there is anything to split; a monoid that nothing folds by counts."""
    if find_complex(module) is not None:
        return True
    monoids = (op for op in module.body.block.ops if isinstance(op, loom.MonoidOp))
    return any(is_complex(kind) for monoid in monoids for kind in monoid.state_types)


def _check(module: ModuleOp) -> None:
    """Raise InvalidProgramError for an operation that cannot be split."""
    for op in _steps(module):
        if not isinstance(op, _SPLIT) and any(map(is_split, (*op.operands, *op.results))):
            what = f"@{op.callee.data}" if isinstance(op, loom.ExternalOp) else op.name
            first = "weft-apply" if op.name.startswith("weft.") else None
            first = "loom-inline" if isinstance(op, func.CallOp) else first
            raise InvalidProgramError(
                f"{what} is on complex numbers, which cannot be split there",
                location=nearest_location(op),
                hint=f"run {first} first"
                if first
                else "give it real and imaginary parts as tensors of their own",
            )


def _steps(module: ModuleOp) -> Iterator[Operation]:
    """The operations of functions, and of the groups in them."""
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp):
            for block in function.body.blocks:
                for op in block.ops:
                    yield op
                    if isinstance(op, loom.FusedOp):
                        yield from op.body.block.ops


def _write_monoids(module: ModuleOp) -> dict[tuple[str, str], str]:
    """Write out the built-in monoids that fold complex numbers; their names, by name and type."""
    symbols = (op.properties.get("sym_name") for op in module.body.block.ops)
    taken = {symbol.data for symbol in symbols if isinstance(symbol, StringAttr)}
    written: dict[tuple[str, str], str] = {}
    for op in list(module.walk()):
        if not isinstance(op, loom.OperationOp | loom.KernelOp):
            continue
        if op.monoid_name not in BUILTIN_MONOIDS or not any(map(is_complex, op.state_types)):
            continue
        monoid = monoid_of(op)
        assert monoid is not None
        (kind,) = monoid.state
        if (monoid.name, str(kind)) in written:
            continue
        name = _fresh(f"complex_{monoid.name}", taken)
        written[monoid.name, str(kind)] = name
        zero = [number_attr(part.real, kind) for part in map(complex, monoid.zero)]
        parent = monoid.merge.parent
        assert isinstance(parent, Region)
        definition = loom.MonoidOp(name, zero, parent.clone(), commutative=monoid.commutative)
        definition.location = op.location
        first = module.body.block.first_op
        assert first is not None
        module.body.block.insert_op_before(definition, first)
    return written


def _fresh(wanted: str, taken: set[str]) -> str:
    name, count = wanted, 1
    while name in taken:
        name, count = f"{wanted}_{count}", count + 1
    taken.add(name)
    return name


def split_of(modules: Sequence[ModuleOp]) -> tuple[ModuleOp, ...]:
    """The modules, with copies in place of those that hold complex numbers."""
    found: list[ModuleOp] = []
    for module in modules:
        split = module
        if holds_complex(module):
            split = module.clone()
            LoomSplitComplex().apply(Context(), split)
        found.append(split)
    return tuple(found)

"""`weft-bind`: puts numbers in the place of symbolic sizes.

    func.func @main(%x: !weft.tensor<[N, "2 * N"], f32>) ...

becomes, under `weft-bind{N=4}`,

    func.func @main(%x: !loom.tensor<[0, 0] : [4, 8], f32>) ...

Input: any program with `!weft.tensor` types; every symbol of it must be given, and nothing else.
Output: the same program on `!loom.tensor`s that start at zero, which `weft-apply` takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.utils.arg_spec import ArgSpec

from tapestry.dialects.weft import SymbolicTensorType
from tapestry.locations import location_of
from tapestry.metakernels.errors import ParameterError, WeftError, nearest


@dataclass
class BindSizes(RewritePattern):
    """Replace the types of one operation that have symbolic sizes by those with numbers.

    Legal when every symbol has a number and no size becomes negative; otherwise a WeftError at the
    operation says which.
    """

    sizes: Mapping[str, int]

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        try:
            for value in _values(op):
                if isinstance(value.type, SymbolicTensorType):
                    rewriter.replace_value_with_new_type(value, value.type.bound(self.sizes))
            if isinstance(op, func.FuncOp):
                self._bind_function(op, rewriter)
        except WeftError as error:
            raise error.within("weft-bind", location_of(op)) from None

    def _bind_function(self, op: func.FuncOp, rewriter: PatternRewriter) -> None:
        old = op.function_type
        new = FunctionType.from_lists(
            [self._bound(kind) for kind in old.inputs], [self._bound(kind) for kind in old.outputs]
        )
        if new != old:
            op.function_type = new
            rewriter.handle_operation_modification(op)

    def _bound(self, kind: Attribute) -> Attribute:
        return kind.bound(self.sizes) if isinstance(kind, SymbolicTensorType) else kind


@dataclass(frozen=True)
class WeftBind(ModulePass):
    """Give every symbolic size a number: `weft-bind{N=4 K=8}`."""

    name = "weft-bind"

    sizes: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)

    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """The pass that `weft-bind{N=4 K=8}` names; ValueError for a value that is no size."""
        sizes: dict[str, int] = {}
        for name, values in spec.parameters.items():
            match values:
                case (int() as value,) if not isinstance(value, bool) and value >= 0:
                    sizes[name] = value
                case _:
                    raise ValueError(f"{name} must be one number of at least 0, as in {name}=4")
        return cls(sizes)

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        """How a pipeline names this pass."""
        return ArgSpec(self.name, {name: (size,) for name, size in self.sizes.items()})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = self._check(op)
        for name in self.sizes:
            if name not in symbols:
                raise ParameterError(f"no tensor has the size {name}", hint=nearest(name, symbols))
        PatternRewriteWalker(BindSizes(self.sizes), apply_recursively=False).rewrite_module(op)

    def _check(self, module: ModuleOp) -> dict[str, None]:
        """The symbols of the program; an error at the first operation with one more."""
        symbols: dict[str, None] = {}
        for op in module.walk():
            found = dict.fromkeys(name for kind in _types(op) for name in symbols_in(kind))
            missing = [name for name in found if name not in self.sizes]
            if missing:
                wanted = " ".join(f"{name}=..." for name in (*self.sizes, *missing))
                raise ParameterError(
                    f"{op.name} has the symbolic sizes {', '.join(missing)}, which are not given",
                    location=location_of(op),
                    hint=f"weft-bind{{{wanted}}}",
                )
            symbols.update(found)
        return symbols


def _values(op: Operation) -> list[SSAValue]:
    """What `op` defines: its results, and the arguments of its blocks."""
    blocks = [block for region in op.regions for block in region.blocks]
    return [*op.results, *(argument for block in blocks for argument in block.args)]


def _types(op: Operation) -> list[Attribute]:
    function = [op.function_type] if isinstance(op, func.FuncOp) else []
    return [*function, *(value.type for value in _values(op))]


def symbols_in(kind: Attribute) -> tuple[str, ...]:
    """The symbols of a type, or of the types of a function."""
    match kind:
        case SymbolicTensorType():
            return kind.symbols
        case FunctionType():
            return tuple(name for one in (*kind.inputs, *kind.outputs) for name in symbols_in(one))
        case _:
            return ()

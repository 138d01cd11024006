"""`weft-apply`: turns applications of metakernels into loom operations.

Input: `weft.apply` on tensors, `weft.metakernel` definitions. Output: `loom.operation`, `loom.view`
and `loom.reshape` instead (and a `loom.monoid` for each that a template defines), and no weft
operation left.

    %r = weft.apply @relu(%x) : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32>

becomes

    %r = loom.operation @r over <[0] : [8]> [map]
      ins(%x : (d0) -> (d0))
      outs((d0) -> (d0))
      wrap (%x: f32) {
        %0 = arith.constant 0.000000e+00 : f32
        %1 = arith.maximumf %x, %0 : f32
        loom.yield %1 : f32
      }
      : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32>

An operation is labelled by the name of the application's result, or by the metakernel's name. Equal
applications (same metakernel, types and parameters) are expanded once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import weft
from tapestry.dialects._weft_documents import document_of
from tapestry.dialects.loom import TensorType
from tapestry.locations import location_of
from tapestry.metakernels import Expansion, Library, TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.documents import Node
from tapestry.metakernels.errors import (
    DtypeMismatchError,
    OperandError,
    SizeMismatchError,
    SymbolicSizeError,
    TemplateError,
)
from tapestry.metakernels.operands import misapplied
from tapestry.passes._collection import collection_paused
from tapestry.passes.weft.bind import symbols_in
from tapestry.passes.weft.recipes.making import make_recipe, tensor_of
from tapestry.passes.weft.recipes.monoids import Monoids
from tapestry.passes.weft.recipes.parameters import parameter_values
from tapestry.passes.weft.recipes.recipe import Recipe

_Key = tuple[Attribute, ...]


@dataclass
class ApplyMetakernel(RewritePattern):
    """Replace one application by the operations its template expands to.

    Legal when the operands match the template (ranks, sizes, dtypes, parameters, requirements) and
    the declared results are what it computes; otherwise a WeftError at the application says what
    would fit.
    """

    library: Library
    monoids: Monoids = field(default_factory=Monoids)

    def __post_init__(self) -> None:
        self._recipes: dict[_Key, Recipe] = {}

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: weft.ApplyOp, rewriter: PatternRewriter) -> None:
        key = (
            op.metakernel,
            op.parameters,
            op.groups or op.metakernel,
            *(operand.type for operand in op.operands),
            op.metakernel,  # operand types end here
            *op.result_types,
        )
        recipe = self._recipes.get(key)
        if recipe is None:
            recipe = self._recipes[key] = self._recipe(op)
        hint = op.results[0].name_hint if op.results else None
        made, results = recipe.stamp(op.operands, hint or op.metakernel_name, op.location)
        for result, value in zip(op.results, results, strict=True):
            if result.name_hint is not None and isinstance(value.owner, Operation):
                value.name_hint = result.name_hint
        rewriter.replace(op, made, results)

    def _recipe(self, op: weft.ApplyOp) -> Recipe:
        name = op.metakernel_name
        operands = [cast(TensorType, operand.type) for operand in op.operands]
        results = [cast(TensorType, result) for result in op.result_types]
        try:
            template = self.library.get(name)
        except WeftError as error:
            raise type(error)(
                error.message, location=error.location or location_of(op), hint=error.hint
            ) from None
        _require_numbers(op)
        specs = [_specs(value) for value in op.per_input]
        try:
            expansion = expand(template, specs, parameter_values(op.parameters), self.library)
            _check_results(expansion, results)
            return make_recipe(expansion, operands, results, self.monoids)
        except WeftError as error:
            raise misapplied(error, template, specs, location_of(op)) from None


def _require_numbers(op: weft.ApplyOp) -> None:
    """Raise SymbolicSizeError unless every size of `op` is a number."""
    types = [*(operand.type for operand in op.operands), *op.result_types]
    if any(isinstance(kind, weft.SymbolicTensorType) for kind in types):
        symbols = dict.fromkeys(name for kind in types for name in symbols_in(kind))
        given = " ".join(f"{name}=..." for name in symbols)
        raise SymbolicSizeError(
            f"@{op.metakernel_name} has symbolic sizes ({', '.join(symbols) or 'none left'})",
            location=location_of(op),
            hint=f"weft-bind{{{given}}} makes them numbers, before weft-apply",
        )


def spec_of(tensor: TensorType) -> TensorSpec:
    """The shape and dtype of a tensor type; where it starts does not matter to a template."""
    return TensorSpec(tensor.box.shape, _dtype_name(tensor.element_type))


@lru_cache
def _dtype_name(element: Attribute) -> str:
    return str(element)


def _specs(value: SSAValue | list[SSAValue]) -> TensorSpec | list[TensorSpec]:
    """What an application gives for one input."""
    if isinstance(value, SSAValue):
        return spec_of(cast(TensorType, value.type))
    return [spec_of(cast(TensorType, one.type)) for one in value]


def _check_results(expansion: Expansion, results: list[TensorType]) -> None:
    if len(results) != len(expansion.outputs):
        raise OperandError(
            f"it has {len(expansion.outputs)} results, and {len(results)} are declared"
        )
    for output, result in zip(expansion.outputs, results, strict=True):
        declared = spec_of(result)
        if declared == output.spec:
            continue
        kind = SizeMismatchError if declared.shape != output.spec.shape else DtypeMismatchError
        raise kind(
            f"{output.title} is {output.spec}, and {declared} is declared",
            hint=f"a type that fits: {tensor_of(output.spec)}",
        )


@dataclass(frozen=True)
class WeftApply(ModulePass):
    """Expand every `weft.apply`; `metakernels` is a folder of templates beside the library's."""

    name = "weft-apply"

    metakernels: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        folders = () if self.metakernels is None else (self.metakernels,)
        apply_metakernels(op, load_library(folders))


def apply_metakernels(module: ModuleOp, library: Library) -> None:
    """Expand every `weft.apply` of `module` by its own metakernels, and those of `library`."""
    library = own_library(module, library)
    with collection_paused():
        monoids = Monoids.of(module)
        pattern = ApplyMetakernel(library, monoids)
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)
        monoids.insert(module)
    for definition in _definitions(module):
        definition.detach()
        definition.erase()


def own_library(module: ModuleOp, library: Library) -> Library:
    """`library`, extended by the metakernels of `module`, which come first."""
    definitions = _definitions(module)
    return library.extended(_documents(definitions)) if definitions else library


def _definitions(module: ModuleOp) -> list[weft.MetakernelOp]:
    return [op for op in module.body.block.ops if isinstance(op, weft.MetakernelOp)]


def _documents(definitions: list[weft.MetakernelOp]) -> dict[str, Node]:
    documents: dict[str, Node] = {}
    for definition in definitions:
        name, place = definition.sym_name.data, location_of(definition)
        if name in documents:
            raise TemplateError(
                f"weft.metakernel @{name} is defined twice (first at {documents[name].location})",
                location=place,
            )
        documents[name] = document_of(definition.template, place)
    return documents

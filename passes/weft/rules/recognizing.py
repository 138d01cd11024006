"""Reads loom operations as applications of metakernels, where they are what those expand to.

    %y = loom.operation @y over ... wrap { arith.maximumf %x, %0 }      ->   relu, of %x

    reading = Recognizer([relu], expansions, monoids).read(op)
    reading.template, reading.order, reading.parameters

An operation is compared with what a metakernel becomes for its operands' types and for parameters
that are tried: truth values, choices, axes, permutations, the shape and dtype of the result, and
defaults. What was sharded or fused is no longer what `weft-apply` makes, and is not read.
Operations alike are read once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, permutations, product
from typing import Final, cast

from xdsl.ir import Attribute, Operation, Region

from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType
from tapestry.metakernels import Template, TensorSpec, WeftError
from tapestry.metakernels.parameters import Parameter
from tapestry.passes.weft.apply import spec_of
from tapestry.passes.weft.recipes.making import make_recipe
from tapestry.passes.weft.recipes.monoids import Monoids
from tapestry.passes.weft.recipes.recipe import BodyRecipe, OpRecipe
from tapestry.rewriting.binding import Expansions

MAX_TRIED: Final = 128
"""Combinations of parameters that are tried for one operation and metakernel."""

MAX_LISTED: Final = 4
"""Dimensions up to which permutations and sets of axes are tried."""

_LABEL: Final = "label"


@dataclass(frozen=True)
class Reading:
    """An operation read as an application: its operands by their place in the operation."""

    template: Template
    order: tuple[int, ...]
    parameters: Mapping[str, object]


class Recognizer:
    """Reads operations as the first of some metakernels that expands to them."""

    def __init__(
        self, templates: Sequence[Template], expansions: Expansions, monoids: Monoids
    ) -> None:
        self._templates = templates
        self._expansions = expansions
        self._monoids = monoids
        self._known: dict[Hashable, Reading | None] = {}

    def read(self, op: Operation) -> Reading | None:
        """The application that `op` is; None where it is none."""
        if not isinstance(op, loom.OperationOp | loom.ViewOp | loom.ReshapeOp):
            return None
        form = _form(op)
        key = form, tuple(operand.type for operand in op.operands)
        if key not in self._known:
            self._known[key] = next(self._readings(op, form), None)
        return self._known[key]

    def _readings(self, op: Operation, form: Hashable) -> Iterator[Reading]:
        types = [cast(TensorType, operand.type) for operand in op.operands]
        results = [cast(TensorType, result) for result in op.result_types]
        outputs = [spec_of(result) for result in results]
        for template in self._templates:
            if len(template.inputs) != len(types):
                continue
            for order in permutations(range(len(types))):
                given = [types[place] for place in order]
                specs = [spec_of(kind) for kind in given]
                for parameters in _parameters(template, specs, outputs[0]):
                    try:
                        expansion = self._expansions.of(template, specs, parameters)
                        if [output.spec for output in expansion.outputs] != outputs:
                            continue
                        recipe = make_recipe(expansion, given, results, self._monoids)
                    except WeftError:
                        continue
                    slots = tuple(range(len(types)))
                    if len(recipe.ops) == 1 and recipe.results == tuple(
                        len(types) + n for n in range(len(results))
                    ):
                        (made,) = recipe.ops
                        placed = tuple(order[operand] for operand in made.operands)
                        if placed == slots and _recipe_form(made) == form:
                            yield Reading(template, order, parameters)


def _form(op: Operation) -> Hashable:
    """What an operation is, whatever it is called and works on."""
    bodies = tuple(_body_form(region) for region in op.regions)
    return type(op), tuple(op.result_types), _properties(op.properties), bodies


def _recipe_form(op: OpRecipe) -> Hashable:
    bodies = tuple(None if body is None else _ops_form(body) for body in op.bodies)
    return op.kind, tuple(op.result_types), _properties(op.properties), bodies


def _properties(properties: Mapping[str, Attribute]) -> Hashable:
    return frozenset((name, value) for name, value in properties.items() if name != _LABEL)


def _body_form(region: Region) -> Hashable:
    return _ops_form(BodyRecipe.of(region)) if region.blocks else None


def _ops_form(body: BodyRecipe) -> Hashable:
    ops = tuple(
        (op.kind, op.operands, op.result_types, frozenset(op.properties.items())) for op in body.ops
    )
    return body.types, ops


def _parameters(
    template: Template, specs: Sequence[TensorSpec], output: TensorSpec
) -> Iterator[Mapping[str, object]]:
    """Parameters that could have been given, defaults first."""
    names = [parameter.name for parameter in template.parameters]
    ranks = {
        entry.name: len(spec.shape) for entry, spec in zip(template.inputs, specs, strict=True)
    }
    values = [_values(parameter, ranks, output) for parameter in template.parameters]
    for combination in islice(product(*values), MAX_TRIED):
        yield dict(zip(names, combination, strict=True))


def _values(parameter: Parameter, ranks: Mapping[str, int], output: TensorSpec) -> Sequence[object]:
    default = () if parameter.default is None else (parameter.default,)
    rank = max(ranks.values(), default=0)
    if parameter.axis_of is not None:
        rank = ranks.get(parameter.axis_of, 0)
    match parameter.kind:
        case "bool":
            tried: Iterator[object] = iter((False, True))
        case "enum":
            tried = iter(parameter.values)
        case "dtype":
            tried = iter((output.dtype,))
        case "int" if parameter.axis_of is not None:
            tried = iter(range(rank))
        case "int[]" if parameter.axis_of is not None and rank <= MAX_LISTED:
            tried = chain(*(combinations(range(rank), n) for n in range(1, rank + 1)))
        case "int[]":
            orders = permutations(range(rank)) if rank <= MAX_LISTED else ()
            tried = chain((output.shape,), orders)
        case _:
            tried = iter(())
    return list(dict.fromkeys((*default, *tried)))

"""What a rule produces, as operations on the values of a program.

    production of factor: p*q + p*r  ->  p * (q + r)

        %y_s = weft.apply @add(%q, %r)
        %y = weft.apply @mul(%p, %y_s)

What replaces a value has its type, starts included, and its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from tapestry.attributes import attribute_of
from tapestry.dialects import loom, weft
from tapestry.dialects.zspace import ProjectionAttr
from tapestry.metakernels import TensorSpec
from tapestry.passes.weft.recipes.making import tensor_of
from tapestry.rewriting.binding import Production
from tapestry.rewriting.rules import Application, Rule, Value
from tapestry.zspace import AffineMap, Projection


def build_application(
    application: Application,
    operands: Sequence[SSAValue],
    arguments: Mapping[str, object],
    results: Sequence[loom.TensorType],
) -> weft.ApplyOp:
    """An application of a rule on values."""
    attributes = {name: attribute_of(value) for name, value in arguments.items()}
    given = application.per_input(operands)
    while given and not isinstance(given[-1], SSAValue) and not given[-1]:
        given.pop()
    return weft.ApplyOp(application.template.name, given, results, attributes)


def build_number(value: float, spec: TensorSpec) -> loom.ConstantOp:
    """A tensor with one number in every cell."""
    return loom.ConstantOp.of(np.array(value), tensor_of(spec))


def build_production(
    rule: Rule,
    production: Production,
    values: Mapping[str, SSAValue],
    location: LocationAttr,
) -> tuple[list[Operation], dict[str, SSAValue]]:
    """Operations, in order, and the value that takes the place of each output.

    `values` are those of all tensors of the match, outputs included.
    """
    made: list[Operation] = []
    known = {name: value for name, value in values.items() if name not in rule.outputs}
    hint = values[rule.outputs[0]].name_hint
    for entry in production.made:
        operands: list[SSAValue] = []
        for position, operand in enumerate(entry.application.operands):
            if isinstance(operand, Value):
                operands.append(known[operand.name])
                continue
            number, dtype = entry.numbers[position]
            made.append(build_number(number, TensorSpec((), dtype)))
            operands += made[-1].results
        names = entry.application.results
        results = [
            cast(loom.TensorType, values[name].type)
            if name in rule.outputs
            else tensor_of(production.specs[name])
            for name in names
        ]
        op = build_application(entry.application, operands, entry.arguments, results)
        made.append(op)
        for name, result in zip(names, op.results, strict=True):
            known[name] = result
            result.name_hint = f"{hint}_{name.replace('.', '_')}" if hint else None
            if name in rule.outputs:
                result.name_hint = values[name].name_hint
    for name, source in rule.aliases.items():
        moved = _moved(known[source], cast(loom.TensorType, values[name].type))
        made += moved
        known[name] = moved[-1].results[0] if moved else known[source]
    for op in made:
        op.location = location
    return made, {name: known[name] for name in rule.outputs}


def _moved(value: SSAValue, result: loom.TensorType) -> list[Operation]:
    """A view of `value` that starts where `result` does; none when it starts there already."""
    kind = cast(loom.TensorType, value.type)
    if kind == result:
        return []
    shift = [a - b for a, b in zip(kind.box.start, result.box.start, strict=True)]
    source = AffineMap.identity(len(shift)).translate(shift)
    return [
        loom.ViewOp.create(
            operands=[value],
            result_types=[result],
            properties={"projection": ProjectionAttr(Projection.cells(source))},
        )
    ]

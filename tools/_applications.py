"""Programs of one application: what a metakernel's examples say, as a module that can run.

    application = example_application(template, template.examples[0], library)
    module = application.module(library)         # func.func @main, in loom
    run(module, application.inputs, on="numpy")

The operands are called like the template's inputs, those of a list `tensors.0`, `tensors.1`, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isinf
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Attribute, SSAValue

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.algebra.literals import float_attr
from tapestry.attributes import attribute_of
from tapestry.dialects import weft
from tapestry.dialects.loom import TensorType
from tapestry.frontend import verify_module
from tapestry.metakernels import Expansion, Library, Template, TensorSpec, expand
from tapestry.metakernels.constants import extreme, limits
from tapestry.metakernels.dtypes import DTYPES
from tapestry.metakernels.errors import DtypeMismatchError, OperandError, nearest
from tapestry.metakernels.operands import Given
from tapestry.metakernels.templates import Example
from tapestry.passes.weft.apply import apply_metakernels
from tapestry.runtime.executor import Array
from tapestry.zspace import Range


@dataclass(frozen=True)
class Application:
    """A metakernel on arrays; `inputs` are named like those of its template."""

    template: Template
    expansion: Expansion
    parameters: Mapping[str, object]
    inputs: Mapping[str, Array]

    def module(self, library: Library) -> ModuleOp:
        """The program of this one application, expanded: a `func.func @main` in loom."""
        operands = [_tensor(tensor.spec) for tensor in self.expansion.inputs]
        results = [_tensor(tensor.spec) for tensor in self.expansion.outputs]
        main = func.FuncOp("main", (operands, results))
        block = main.body.block
        for argument, tensor in zip(block.args, self.expansion.inputs, strict=True):
            argument.name_hint = tensor.cell
        parameters = {name: attribute_of(value) for name, value in self.parameters.items()}
        operands = _per_input(self.template, self.expansion, block.args)
        op = weft.ApplyOp(self.template.name, operands, results, parameters)
        for result, tensor in zip(op.results, self.expansion.outputs, strict=True):
            result.name_hint = f"{self.template.name}_{tensor.cell}"
        block.add_ops([op, func.ReturnOp(*op.results)])
        module = ModuleOp([main])
        verify_module(module)
        apply_metakernels(module, library)
        verify_module(module)
        return module


def example_application(template: Template, example: Example, library: Library) -> Application:
    """What an example applies; a WeftError when its values do not fit the template."""
    known = [entry.name for entry in template.inputs]
    for name in (*example.inputs, *example.dtypes):
        if name not in known:
            raise OperandError(f"{name} is no input", hint=nearest(name, known))
    inputs: dict[str, Array] = {}
    specs: list[Given] = []
    for entry in template.inputs:
        if entry.name not in example.inputs:
            if not entry.optional:
                raise OperandError(f"the input {entry.name} is not given")
            specs.append(None)
            continue
        dtype = example.dtypes.get(entry.name, "f32")
        values: Any = example.inputs[entry.name]
        if entry.each is None:
            tensors = {entry.name: array_of(values, dtype, entry.name)}
        else:
            tensors = arrays_of(values, dtype, entry.name)
        inputs.update(tensors)
        given = [TensorSpec(array.shape, dtype) for array in tensors.values()]
        specs.append(given[0] if entry.each is None else given)
    parameters = dict(example.parameters)
    expansion = expand(template, specs, parameters, library)
    return Application(template, expansion, parameters, inputs)


def arrays_of(values: Any, dtype: str, what: str) -> dict[str, Array]:
    """The arrays of a list of tensors, by the names that operands have."""
    if not isinstance(values, list | tuple):
        raise OperandError(f"{what} is a list of tensors", hint="a list of arrays: [[1, 2], [3]]")
    items = cast("Sequence[Any]", values)
    return {
        f"{what}.{position}": array_of(item, dtype, f"{what}[{position}]")
        for position, item in enumerate(items)
    }


def _per_input(
    template: Template, expansion: Expansion, values: Sequence[SSAValue]
) -> list[SSAValue | list[SSAValue]]:
    """The operands, one entry per input of the template."""
    groups: list[SSAValue | list[SSAValue]] = []
    for entry in template.inputs:
        group = [
            value
            for value, tensor in zip(values, expansion.inputs, strict=True)
            if tensor.name == entry.name
        ]
        groups.append(group[0] if entry.each is None and group else group)
    return groups


def array_of(value: Any, dtype: str, what: str) -> Array:
    """Nested lists of numbers as an array of a dtype that is named as in templates."""
    if dtype not in DTYPES:
        raise DtypeMismatchError(f"unknown dtype {dtype} of {what}", hint=nearest(dtype, DTYPES))
    element = type_named(dtype)
    assert element is not None
    try:
        cells = np.array(value, dtype=object).reshape(np.array(value).shape)
        for place, cell in np.ndenumerate(cells):
            _check_number(cell, element, f"{what}{list(place)}" if place else what)
    except (ValueError, TypeError):
        raise OperandError(
            f"{what} is no array of numbers", hint="nested lists of equal lengths: [[1, 2], [3, 4]]"
        ) from None
    return cells.astype(numpy_dtype(element))


def _check_number(value: object, element: Attribute, where: str) -> None:
    """Refuse a number that a type does not hold; floats round, and TypeError is for no number."""
    if not isinstance(value, bool | int | float):
        raise TypeError
    dtype = str(element)
    if isinstance(element, AnyFloat):
        if isfinite(value) and isinf(float_attr(value, element).value.data):
            largest = extreme("largest", dtype).value
            raise OperandError(
                f"{where} is {value}, which is out of the range of {dtype}",
                hint=f"{dtype} goes up to {largest:g}; infinity is written .inf",
            )
        return
    low, high = limits(dtype)
    if not isfinite(value) or value != int(value):
        raise OperandError(
            f"{where} is {value}, and {dtype} holds whole numbers",
            hint="write a whole number; the types of inputs are chosen so: dtypes: {x: f32}",
        )
    if not low <= value <= high:
        raise OperandError(
            f"{where} is {value}, which is out of the range of {dtype}",
            hint=f"{dtype} goes from {low} to {high}",
        )


def _tensor(spec: TensorSpec) -> TensorType:
    element: Attribute | None = type_named(spec.dtype)
    assert element is not None
    return TensorType.of(Range.of(spec.shape), element)

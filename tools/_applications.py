"""Programs of one application: what a metakernel's examples say, as a module that can run.

    application = example_application(template, template.examples[0], library)
    module = application.module(library)         # func.func @main, in loom
    run(module, application.inputs, on="numpy")

The operands are called like the template's inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.attributes import attribute_of
from tapestry.dialects import weft
from tapestry.dialects.loom import TensorType
from tapestry.frontend import verify_module
from tapestry.metakernels import Expansion, Library, Template, TensorSpec, expand
from tapestry.metakernels.dtypes import DTYPES
from tapestry.metakernels.errors import DtypeMismatchError, OperandError, nearest
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
            argument.name_hint = tensor.name
        parameters = {name: attribute_of(value) for name, value in self.parameters.items()}
        op = weft.ApplyOp(self.template.name, block.args, results, parameters)
        for result, tensor in zip(op.results, self.expansion.outputs, strict=True):
            result.name_hint = f"{self.template.name}_{tensor.name}"
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
    specs: list[TensorSpec] = []
    for name in known:
        if name not in example.inputs:
            raise OperandError(f"the input {name} is not given")
        dtype = example.dtypes.get(name, "f32")
        inputs[name] = array_of(example.inputs[name], dtype, name)
        specs.append(TensorSpec(inputs[name].shape, dtype))
    parameters = dict(example.parameters)
    expansion = expand(template, specs, parameters, library)
    return Application(template, expansion, parameters, inputs)


def array_of(value: Any, dtype: str, what: str) -> Array:
    """Nested lists of numbers as an array of a dtype that is named as in templates."""
    if dtype not in DTYPES:
        raise DtypeMismatchError(f"unknown dtype {dtype} of {what}", hint=nearest(dtype, DTYPES))
    element = type_named(dtype)
    assert element is not None
    try:
        return np.array(value).astype(numpy_dtype(element))
    except (ValueError, TypeError):
        raise OperandError(
            f"{what} is no array of numbers", hint="nested lists of equal lengths: [[1, 2], [3, 4]]"
        ) from None


def _tensor(spec: TensorSpec) -> TensorType:
    element: Attribute | None = type_named(spec.dtype)
    assert element is not None
    return TensorType.of(Range.of(spec.shape), element)

"""The program in a module: its entry function, and the names and types of what it takes and gives.

>>> from tapestry.frontend import parse_text
>>> module = parse_text('''
... func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
...   func.return %x : !loom.tensor<[0] : [4], f32>
... }''')
>>> [(argument.name, argument.type.box.shape) for argument in arguments(module)]
[('x', (4,))]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, NameLoc

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.diagnostics import InvalidProgramError, Location, TapestryError
from tapestry.dialects.loom import TensorType
from tapestry.locations import location_of, source_locations
from tapestry.passes.triton.host.functions import no_tensor
from tapestry.runtime.executor import Array

ENTRY = "main"
"""The function that runs."""


class InputError(TapestryError):
    """Inputs that do not fit the program."""

    kind = "input"


@dataclass(frozen=True)
class Argument:
    """One input of a program: its name, its tensor type and where it was written."""

    name: str
    type: TensorType
    location: Location | None


def main_function(module: ModuleOp) -> func.FuncOp:
    """The entry function of a program over tensors; an error says what is missing."""
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    for function in functions:
        if function.sym_name.data != ENTRY:
            continue
        if len(function.body.blocks) != 1:
            raise InvalidProgramError("@main must have one block", location=location_of(function))
        for kind in (*function.function_type.inputs, *function.function_type.outputs):
            if not isinstance(kind, TensorType):
                raise no_tensor(function, kind, "only !loom.tensor types can be run")
        return function
    have = ", ".join(f"@{function.sym_name.data}" for function in functions) or "no function"
    raise InvalidProgramError(f"there is no func.func @main to run; the module has {have}")


def arguments(module: ModuleOp) -> tuple[Argument, ...]:
    """The inputs of @main in order, named by SSA name, or by position without one."""
    found: list[Argument] = []
    for position, value in enumerate(main_function(module).args):
        assert isinstance(value.type, TensorType)
        places = source_locations(value.location)
        written = value.location.desc.data if isinstance(value.location, NameLoc) else None
        name = written or value.name_hint or str(position)
        if any(argument.name == name for argument in found):
            raise InvalidProgramError(
                f"two arguments of @main are named {name}", location=places[0] if places else None
            )
        found.append(Argument(name, value.type, places[0] if places else None))
    return tuple(found)


def outputs(module: ModuleOp) -> tuple[TensorType, ...]:
    """The tensor types that @main returns, in order."""
    kinds = main_function(module).function_type.outputs
    return tuple(kind for kind in kinds if isinstance(kind, TensorType))


def check_inputs(module: ModuleOp, inputs: Mapping[str, Array]) -> None:
    """Raise InputError unless `inputs` holds exactly the arguments, with their shape and dtype."""
    check_arrays(arguments(module), inputs)


def check_arrays(expected: Sequence[Argument], inputs: Mapping[str, Array]) -> None:
    """The same, of a program that takes these arguments."""
    extra = sorted(inputs.keys() - {argument.name for argument in expected})
    if extra:
        names = ", ".join(argument.name for argument in expected)
        raise InputError(
            f"there is no argument named {', '.join(extra)}",
            hint=f"@main takes {names or 'nothing'}",
        )
    for argument in expected:
        name, array = argument.name, inputs.get(argument.name)
        dtype, shape = numpy_dtype(argument.type.element_type), argument.type.box.shape
        if array is None:
            message = f"the input {name} is missing; it is {dtype} of shape {shape}"
            raise InputError(message, location=argument.location)
        if np.dtype(array.dtype) != dtype or array.shape != shape:
            have = f"{array.dtype} of shape {array.shape}"
            message = f"the input {name} is {have}, but must be {dtype} of shape {shape}"
            raise InputError(message, location=argument.location)

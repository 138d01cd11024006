r"""Operators that stay PyTorch's: `loom.external` kernels, named as the operators are.

    %y = loom.external @aten.cummax.default over <[] : []> ins(...) outs(...)
           parameters {arguments = "[{\"tensor\": 0}, 0]"}

The parameters are the operator's arguments as JSON: tensors by their position among the inputs,
dtypes by name; and, where some of its results are no outputs, the positions of those that are. A
result without cells is none: PyTorch may leave it undefined. A random operator has a seed as its
last input, and is a function of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from xdsl.ir import SSAValue

from tapestry.importers.building import kind_of
from tapestry.importers.torch.dtypes import as_array, as_tensor, name_of, torch_dtype
from tapestry.importers.torch.overloads import Overload, overload_named
from tapestry.importers.torch.registry import Context, Unsupported
from tapestry.runtime.executor import Array
from tapestry.runtime.externals import register_external


def add_external(
    context: Context, overload: Overload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[SSAValue | None, ...]:
    """Add an operator as an external kernel; raises Unsupported where it cannot be one."""
    if overload.writes:
        raise Unsupported("it writes into its arguments")
    if overload.depends_on_data:
        raise Unsupported("its result is a number that depends on data")
    inputs: list[SSAValue] = []
    written = json.dumps([_written(args, inputs), _written(kwargs, inputs)])
    parameters: dict[str, object] = {"arguments": written}
    if overload.random:
        inputs.append(context.seed())
    register(context.operator)
    held = {
        place: kind_of(kind.shape, kind.dtype)
        for place, kind in enumerate(context.results)
        if kind is not None and 0 not in kind.shape
    }
    if len(held) < len(context.results):
        parameters["results"] = list(held)
    made = context.build.external(
        context.operator, inputs, list(held.values()), parameters, context.location
    )
    found: list[SSAValue | None] = [
        None if kind is None or place in held else context.constant(0, kind.dtype, kind.shape)
        for place, kind in enumerate(context.results)
    ]
    for place, value in zip(held, made, strict=True):
        found[place] = value
    return tuple(found)


def register(operator: str) -> None:
    """Make PyTorch's operator the implementation of the external kernel of its name."""
    overload = overload_named(operator)

    def run(tensors: Sequence[torch.Tensor], parameters: Mapping[str, Any]) -> list[torch.Tensor]:
        args, kwargs = json.loads(parameters["arguments"])
        given = _read(args, tensors), _read(kwargs, tensors)
        with torch.no_grad():
            if overload.random:
                made = _seeded(int(tensors[-1]), lambda: overload.call(*given[0], **given[1]))
            else:
                made = overload.call(*given[0], **given[1])
        results = cast("Sequence[Any]", made if isinstance(made, list | tuple) else [made])
        return [results[place] for place in parameters.get("results", range(len(results)))]

    @register_external(operator, on="numpy")
    def _(arrays: Sequence[Array], parameters: Mapping[str, Any]) -> list[Array]:
        results = run([as_tensor(array) for array in arrays], parameters)
        return [as_array(result) for result in results]

    register_external(operator, on="torch")(run)


def _seeded(seed: int, call: Callable[[], object]) -> object:
    """What a function returns while PyTorch's generators start from a seed."""
    random: Any = torch.random
    with random.fork_rng():
        random.manual_seed(seed)
        return call()


def _written(value: object, inputs: list[SSAValue]) -> object:
    """An argument as JSON; tensors are added to `inputs`."""
    match value:
        case SSAValue():
            inputs.append(value)
            return {"tensor": len(inputs) - 1}
        case torch.dtype():
            return {"dtype": name_of(value)}
        case list() | tuple():
            return [_written(item, inputs) for item in cast("Sequence[object]", value)]
        case dict():
            items = cast("Mapping[str, object]", value).items()
            return {key: _written(item, inputs) for key, item in items}
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise Unsupported(f"its argument {value} cannot be written down")


def _read(written: Any, tensors: Sequence[torch.Tensor]) -> Any:
    match written:
        case {"tensor": int(position)}:
            return tensors[position]
        case {"dtype": str(name)}:
            return torch_dtype(name)
        case dict():
            items = cast("Mapping[str, object]", written).items()
            return {key: _read(item, tensors) for key, item in items}
        case list():
            return [_read(item, tensors) for item in cast("list[object]", written)]
        case _:
            return written

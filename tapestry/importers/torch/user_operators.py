"""A user's metakernels as operators of PyTorch.

    mine = tapestry.importers.torch.metakernels("mine.yaml", gradients={"swish": "swish_gradient"})

    class Swish(nn.Module):
        def forward(self, x):
            return mine.swish(x, beta=2.0)

In eager mode such an operator is computed by Tapestry on its own; in a model that is compiled with
the backend it is an application like any other, which fuses with what is around it.

A gradient is a metakernel too. Its inputs are named as inputs and outputs of the operator, or
`grad_` and an output's name (`grad` where there is one output); its outputs as the inputs that they
are the gradients of. It is given the parameters that have the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from inspect import Parameter as Argument
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import torch

from tapestry.diagnostics import UsageError
from tapestry.dialects.loom import TensorType
from tapestry.importers.arrays import array_of, like_given
from tapestry.importers.building import ProgramBuilder, Spec, result_types, used_templates
from tapestry.importers.expressions.functions import (
    documentation_of,
    extended_library,
    plain_parameter,
    signature_of,
)
from tapestry.importers.torch.dtypes import name_of, torch_dtype
from tapestry.importers.torch.registry import Context, Lowered, lowering
from tapestry.metakernels import Library, Template, TensorSpec
from tapestry.programs import Program

_NAMESPACE: Final = "tapestry_metakernels"
_TYPES: Final = {"int": "int", "float": "float", "bool": "bool", "int[]": "int[]"}
"""Kinds of parameters by their types in schemas; all others are strings."""


class Operators:
    """Operators by name: `mine.swish(x, beta=2.0)`."""

    def __init__(self, made: Mapping[str, Operator]) -> None:
        self._made = dict(made)

    def __getattr__(self, name: str) -> Operator:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._made:
            have = ", ".join(sorted(self._made))
            raise AttributeError(f"there is no metakernel {name!r} here; there is {have}")
        return self._made[name]

    def __dir__(self) -> Iterator[str]:
        return iter(sorted(self._made))


def metakernels(path: str | Path, gradients: Mapping[str, str] | None = None) -> Operators:
    """The metakernels of a YAML file, or of all files in a folder, as operators of PyTorch.

    `gradients` names the metakernel that is the gradient of another. Raises a TemplateError, with
    its place, for a template that is wrong, and UsageError for a gradient that does not fit.
    """
    library, names = extended_library(path)
    made = {name: Operator(library, name) for name in names}
    for name, gradient in (gradients or {}).items():
        for one in (name, gradient):
            if one not in made:
                raise UsageError(f"there is no metakernel {one} in {path}")
        _differentiate(made[name], made[gradient])
    return Operators(made)


class Operator:
    """A metakernel as an operator of PyTorch."""

    def __init__(self, library: Library, name: str) -> None:
        self.library = library
        self.template = library.get(name)
        self.__name__ = name
        self.__doc__ = documentation_of(self.template)
        self.__signature__ = signature_of(self.template)
        self._programs: dict[object, Program] = {}
        # Two files may have a metakernel of one name, and one file is read again when it changes.
        texts = [repr(library.get(used).document) for used in used_templates(library, name)]
        own = f"{name}_{sha256(repr(texts).encode()).hexdigest()[:12]}"
        self.qualified = f"{_NAMESPACE}.{own}.default"
        defined: Any = _DEFINED.get(own)
        if defined is None:
            custom_op: Any = torch.library.custom_op
            defined = custom_op(
                f"{_NAMESPACE}::{own}", self._compute, mutates_args=(), schema=_schema(self)
            )
            defined.register_fake(self._describe)
            lowering(self.qualified)(partial(_lowered, self))
            _DEFINED[own] = defined
        self.defined: Any = defined

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self.__signature__}: {error}") from None
        kinds = {parameter.name: parameter.kind for parameter in self.template.parameters}
        for name, value in bound.arguments.items():
            if name in kinds:
                bound.arguments[name] = _typed(kinds[name], value)
        return self.defined(*bound.args, **bound.kwargs)

    def split(self, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, object]]:
        """What is given for each input, and the parameters as the template takes them."""
        parameters = {
            one.name: plain_parameter(one.kind, given[one.name]) for one in self.template.parameters
        }
        return [given[entry.name] for entry in self.template.inputs], parameters

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _kinds(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[TensorType, ...]:
        inputs, parameters = self.split(self._bound(args, kwargs))
        return result_types(self.library, self.__name__, map(_spec, inputs), parameters)

    def _describe(self, *args: Any, **kwargs: Any) -> Any:
        """Tensors without data, of the shapes and dtypes of the results."""
        device = next((one.device for one in _tensors(args)), torch.device("cpu"))
        made = [
            torch.empty(kind.box.shape, dtype=torch_dtype(str(kind.element_type)), device=device)
            for kind in self._kinds(args, kwargs)
        ]
        return _returned(self.template, made)

    def _compute(self, *args: Any, **kwargs: Any) -> Any:
        """The results, by a program of this application alone."""
        inputs, parameters = self.split(self._bound(args, kwargs))
        tensors = [one for given in inputs for one in _tensors([given])]
        key = (
            tuple(map(_spec, inputs)),
            repr(parameters),
            tensors[0].is_cuda if tensors else False,
        )
        if key not in self._programs:
            self._programs[key] = self._program(inputs, parameters)
        result = self._programs[key].run({f"x{n}": one for n, one in enumerate(tensors)})
        arrays = [array_of(one) for one in tensors]
        own = [  # results of an operator are not on the memory of its inputs
            one.copy() if any(np.may_share_memory(one, given) for given in arrays) else one
            for one in result.outputs
        ]
        return _returned(self.template, like_given(own, tensors))

    def _program(self, inputs: Sequence[Any], parameters: Mapping[str, object]) -> Program:
        build = ProgramBuilder()
        given: list[Any] = []
        count = 0
        on = "numpy"
        for one in inputs:
            values: list[Any] = []
            for tensor in _tensors([one]):
                on = "triton" if tensor.is_cuda else on
                shape, dtype = tuple(tensor.shape), name_of(tensor.dtype)
                values.append(build.argument(f"x{count}", shape, dtype))
                count += 1
            given.append(values if isinstance(one, list | tuple) else values[0] if values else None)
        made = build.apply(self.__name__, *given, parameters=parameters, library=self.library)
        return Program(build.finish(made), on=on)


_DEFINED: dict[str, Any] = {}
"""The operators that PyTorch knows, by name: each is defined once in a process."""


def _lowered(operator: Operator, context: Context, *args: Any, **kwargs: Any) -> Lowered:
    given = operator.__signature__.bind(*args, **kwargs)
    given.apply_defaults()
    inputs, parameters = operator.split(given.arguments)
    return context.build.apply(
        operator.__name__,
        *inputs,
        parameters=parameters,
        location=context.location,
        library=operator.library,
    )


def _differentiate(operator: Operator, gradient: Operator) -> None:
    """Make `gradient` the gradient of `operator`."""
    inputs = [entry.name for entry in operator.template.inputs]
    outputs = [entry.name for entry in operator.template.outputs]
    grads = [f"grad_{name}" for name in outputs] if len(outputs) > 1 else ["grad"]
    known = {*inputs, *outputs, *grads}
    for entry in gradient.template.inputs:
        if entry.name not in known:
            raise UsageError(
                f"{gradient.__name__} takes {entry.name}, which is nothing of {operator.__name__}",
                location=gradient.template.location,
                hint=f"it may take {', '.join([*inputs, *outputs, *grads])}",
            )
    for entry in gradient.template.outputs:
        if entry.name not in inputs:
            raise UsageError(
                f"{gradient.__name__} gives {entry.name}, which is no input of {operator.__name__}",
                location=gradient.template.location,
                hint=f"its outputs are named {', '.join(inputs)}, as what they are gradients of",
            )
    names = list(operator.__signature__.parameters)
    shared = {one.name for one in gradient.template.parameters}

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        given = dict(zip(names, inputs, strict=False))
        results = cast("tuple[Any, ...]", output if isinstance(output, tuple) else (output,))
        held = {**given, **dict(zip(outputs, results, strict=False))}
        tensors = {name: one for name, one in held.items() if isinstance(one, torch.Tensor)}
        ctx.names = list(tensors)
        ctx.save_for_backward(*tensors.values())
        ctx.parameters = {name: one for name, one in given.items() if name in shared}

    def backward(ctx: Any, *given: Any) -> tuple[Any, ...]:
        held = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        held |= dict(zip(grads, given, strict=True))
        taken = [held.get(entry.name) for entry in gradient.template.inputs]
        made = gradient(*taken, **ctx.parameters)
        results = cast("tuple[Any, ...]", made if isinstance(made, tuple) else (made,))
        by_name = dict(zip((e.name for e in gradient.template.outputs), results, strict=True))
        return tuple(by_name.get(name) for name in names)

    operator.defined.register_autograd(backward, setup_context=keep)


def _schema(operator: Operator) -> str:
    """The operator's schema, in PyTorch's language."""
    kinds = {one.name: _TYPES.get(one.kind, "str") for one in operator.template.parameters}
    entries = {entry.name: entry for entry in operator.template.inputs}
    arguments: list[str] = []
    for name, argument in operator.__signature__.parameters.items():
        if argument.kind is Argument.KEYWORD_ONLY and "*" not in arguments:
            arguments.append("*")
        if name in entries:
            entry = entries[name]
            kind = (
                "Tensor[]" if entry.each is not None else "Tensor?" if entry.optional else "Tensor"
            )
        else:
            kind = kinds[name]
        default = "" if argument.default is Argument.empty else f"={_literal(argument.default)}"
        arguments.append(f"{kind} {name}{default}")
    results = [
        "Tensor[]" if entry.each is not None else "Tensor" for entry in operator.template.outputs
    ]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"({', '.join(arguments)}) -> {returned}"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, cast('Sequence[object]', value)))}]"
    return str(value)


def _typed(kind: str, value: Any) -> Any:
    """A parameter of a call as the schema takes it. (Dynamo traces this: it is kept simple.)"""
    if kind == "float":
        return float(value)
    if kind in _TYPES:
        return value
    return value if isinstance(value, str) else str(value)


def _returned(template: Template, made: Sequence[Any]) -> Any:
    """The results in the form of the schema: a tensor, a list of them, or a tuple."""
    if len(template.outputs) == 1:
        return list(made) if template.outputs[0].each is not None else made[0]
    return tuple(made)


def _tensors(given: Sequence[Any]) -> Iterator[torch.Tensor]:
    for one in given:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, list | tuple):
            yield from _tensors(cast("Sequence[Any]", one))


def _spec(given: Any) -> Spec:
    if isinstance(given, torch.Tensor):
        return TensorSpec(tuple(map(int, given.shape)), name_of(given.dtype))
    if given is None:
        return None
    return tuple(one for one in map(_spec, given) if isinstance(one, TensorSpec))

"""Composites: templates made of steps, each an application of another template.

    steps:
      peak:   {op: max, x: x, axis: $axis, keepdim: true}
      shifted: {op: sub, a: x, b: peak}

A step's keys are `op`, the inputs of that template (values: inputs of this one, or earlier steps)
and its parameters (expressions, evaluated in this template's names).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from tapestry.metakernels.bodies import Body
from tapestry.metakernels.constants import Known
from tapestry.metakernels.dtypes import evaluate_dtype
from tapestry.metakernels.errors import (
    LimitError,
    OperandError,
    ParameterError,
    UnknownNameError,
    WeftError,
    nearest,
)
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.expansion import Composite, Expansion, StepCall, Tensor, TensorSpec
from tapestry.metakernels.parameters import Parameter
from tapestry.metakernels.parsing import parse_dtype_value, parse_expression, parse_scalar
from tapestry.metakernels.templates import Step, Template
from tapestry.metakernels.text import Text
from tapestry.metakernels.values import Names

MAX_NESTING: Final = 16
"""How deep composites may be made of composites."""


class Resolver(Protocol):
    """What finds a template by its name."""

    def get(self, name: str) -> Template:
        """The template called `name`; UnknownNameError when there is none."""
        ...


_Expand = Callable[..., Expansion]


def expand_steps(
    template: Template,
    inputs: Sequence[Tensor],
    names: Names,
    library: Resolver,
    nesting: tuple[str, ...],
    expand: _Expand,
) -> tuple[Composite, list[TensorSpec]]:
    """The steps of `template` expanded in order, and the specs of its outputs."""
    if len(nesting) >= MAX_NESTING:
        raise LimitError(
            f"composites nest deeper than {MAX_NESTING}: {' -> '.join((*nesting, template.name))}",
            location=template.location,
        )
    values = {tensor.cell: tensor.spec for tensor in inputs}
    absent = {entry.name for entry in template.inputs if entry.optional} - values.keys()
    calls: list[StepCall] = []
    for step in template.steps:
        what = f"step {step.name} of {template.name}"
        try:
            path = (*nesting, template.name)
            call = _expand_step(step, values, absent, names, library, path, expand)
        except LimitError:
            raise
        except WeftError as error:
            raise error.within(what, step.location) from None
        calls.append(call)
        values[step.name] = call.expansion.outputs[0].spec
    known = [step.name for step in template.steps]
    results = tuple(
        output.name if output.name in known else known[-1] for output in template.outputs
    )
    return Composite(tuple(calls), results), [values[name] for name in results]


def _expand_step(
    step: Step,
    values: Mapping[str, TensorSpec],
    absent: Collection[str],
    names: Names,
    library: Resolver,
    nesting: tuple[str, ...],
    expand: _Expand,
) -> StepCall:
    target = library.get(step.op)
    if len(target.outputs) != 1:
        raise OperandError(f"{step.op} has {len(target.outputs)} outputs, and a step has one")
    parameters = {parameter.name: parameter for parameter in target.parameters}
    wanted = {entry.name: entry.optional for entry in target.inputs}
    for key, text in step.arguments.items():
        if key not in wanted and key not in parameters:
            raise UnknownNameError(
                f"{step.op} has no input or parameter {key}",
                location=text.location,
                hint=nearest(key, (*wanted, *parameters)),
            )
    operands: list[str | None] = []
    for name, optional in wanted.items():
        text = step.arguments.get(name)
        if optional and (text is None or text.text in absent):
            operands.append(None)
            continue
        if text is None:
            raise OperandError(f"input {name} of {step.op} is not given")
        if text.text not in values:
            raise UnknownNameError(
                f"{text} is no input and no earlier step",
                location=text.location,
                hint=nearest(text.text, values),
            )
        operands.append(text.text)
    given = {
        key: evaluate_argument(parameters[key], text, names)
        for key, text in step.arguments.items()
        if key in parameters
    }
    specs = [None if name is None else values[name] for name in operands]
    read = tuple(name for name in operands if name is not None)
    return StepCall(step.name, read, expand(target, specs, given, library, nesting=nesting))


def evaluate_argument(parameter: Parameter, text: Text, names: Names) -> object:
    """The value that `text` gives a parameter: an expression, a word for an enum, a dtype."""
    if text.text.startswith("$") and text.text[1:] in names:
        value = names[text.text[1:]]
        return bool(value) if parameter.kind == "bool" and value in (0, 1) else value
    match parameter.kind:
        case "int" | "int[]":
            return evaluate(parse_expression(text), Scope(names))
        case "bool":
            if text.text in ("true", "false"):
                return text.text == "true"
            return bool(evaluate(parse_expression(text), Scope(names)))
        case "float":
            value = Body(Scope(names), {}).term(parse_scalar(text))
            if isinstance(value, Known) and not isinstance(value.value, str):
                return float(value.value)
            raise ParameterError(
                f"{text} is no number", location=text.location, hint="write 0.5, $p or 1 / sqrt($n)"
            )
        case "enum" | "equation":
            return text.text
        case "dtype":
            return evaluate_dtype(parse_dtype_value(text), names)

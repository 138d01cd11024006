"""Composites: templates made of steps, each an application of another template.

    steps:
      peak:   {op: max, x: x, axis: $axis, keepdim: true}
      shifted: {op: sub, a: x, b: peak}

A step's keys are `op`, the inputs of that template (values: inputs of this one, or earlier steps)
and its parameters (expressions, evaluated in this template's names). `references` says how inputs,
lists and the outputs of steps are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from tapestry.metakernels.references import Values, check_names
from tapestry.metakernels.templates import Input, Output, Step, Template
from tapestry.metakernels.text import Text
from tapestry.metakernels.values import Names

MAX_NESTING: Final = 16
"""How deep composites may be made of composites."""


MAX_STEPS: Final = 4096
"""How many steps a composite may be made of, with those of the composites it is made of."""


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
) -> tuple[Composite, list[Tensor]]:
    """The steps of `template` expanded in order, and its outputs."""
    if len(nesting) >= MAX_NESTING:
        raise LimitError(
            f"composites nest deeper than {MAX_NESTING}: {' -> '.join((*nesting, template.name))}",
            location=template.location,
        )
    values = _given(template, inputs)
    calls: list[StepCall] = []
    total = 0
    for step in template.steps:
        what = f"step {step.name} of {template.name}"
        try:
            path = (*nesting, template.name)
            call = _expand_step(step, values, names, library, path, expand)
            total += _steps_in(call.expansion)
            if total > MAX_STEPS:
                raise LimitError(
                    f"{template.name} is made of more than {MAX_STEPS} steps",
                    location=step.location,
                    hint="write what repeats as a program",
                )
            calls.append(call)
            _add(values, call, library.get(step.op))
        except LimitError:
            raise
        except WeftError as error:
            raise error.within(what, step.location) from None
    results: list[str] = []
    outputs: list[Tensor] = []
    for output in template.outputs:
        for name, tensor in _output(template, output, values):
            results.append(name)
            outputs.append(tensor)
    return Composite(tuple(calls), tuple(results)), outputs


def check_steps(
    template: Template,
    library: Resolver,
    checked: set[str] | None = None,
    above: tuple[str, ...] = (),
) -> None:
    """Raise what is wrong with the steps of a composite, whatever it is applied to.

    That is a template that there is none of, or that is made of itself; an input or a parameter
    that it does not have; an input that is not given, or is read before it is made. Templates that
    are `checked` are not again, and those that are now are added.
    """
    checked = set[str]() if checked is None else checked
    way = (*above, template.name)
    if template.name in above:
        raise LimitError(
            f"{template.name} is made of itself: {' -> '.join(way[above.index(template.name) :])}",
            location=template.location,
        )
    if template.name in checked or len(way) > MAX_NESTING:  # which is said when it is expanded
        return
    known = [entry.name for entry in template.inputs]
    for step in template.steps:
        try:
            target = library.get(step.op)
            _check_arguments(step, target)
            for entry in target.inputs:
                text = step.arguments.get(entry.name)
                if text is not None:
                    check_names(text, known)
                elif not entry.optional:
                    raise _missing(step, entry)
        except WeftError as error:
            raise error.within(f"step {step.name} of {template.name}", step.location) from None
        check_steps(target, library, checked, way)
        known.append(step.name)
    checked.add(template.name)


def _given(template: Template, inputs: Sequence[Tensor]) -> Values:
    values = Values({tensor.cell: tensor.spec for tensor in inputs}, {})
    for entry in template.inputs:
        count = sum(tensor.name == entry.name for tensor in inputs)
        if entry.each is not None:
            values.counts[entry.name] = count
        elif count:
            values.counts[entry.name] = None
        else:
            values.absent.add(entry.name)
    return values


def _made(step: str, target: Template, tensor: Tensor) -> str:
    return tensor.cell.replace(tensor.name, _result(step, target, tensor.name), 1)


def _result(step: str, target: Template, output: str) -> str:
    return step if len(target.outputs) == 1 else f"{step}.{output}"


def _add(values: Values, call: StepCall, target: Template) -> None:
    """The values that a step makes."""
    outputs = call.expansion.outputs
    counts = {
        _result(call.name, target, output.name): None
        if output.each is None
        else sum(tensor.name == output.name for tensor in outputs)
        for output in target.outputs
    }
    specs = {name: tensor.spec for name, tensor in zip(call.made, outputs, strict=True)}
    values.add(call.name, specs, counts)


def _output(template: Template, output: Output, values: Values) -> list[tuple[str, Tensor]]:
    """The values of an output: of the step of its name, or of the last one."""
    steps = [step.name for step in template.steps]
    name = output.name if output.name in steps else steps[-1]
    place = template.document.at("outputs", output.name).location
    if name not in values.counts:
        raise OperandError(
            f"step {name} has several outputs, and {output.name} is one",
            location=place,
            hint=f"a step that takes one of them: {output.name}: {{op: clone, x: {name}...}}",
        )
    count = values.counts[name]
    if (count is None) != (output.each is None):
        raise OperandError(
            f"output {output.name} is {'one tensor' if output.each is None else 'a list'}, and "
            f"step {name} makes {'one tensor' if count is None else 'a list'}",
            location=place,
        )
    if count is None:
        return [(name, Tensor(output.name, values.specs[name]))]
    found = [f"{name}.{position}" for position in range(count)]
    return [(f, Tensor(output.name, values.specs[f], n)) for n, f in enumerate(found)]


def _expand_step(
    step: Step,
    values: Values,
    names: Names,
    library: Resolver,
    nesting: tuple[str, ...],
    expand: _Expand,
) -> StepCall:
    target = library.get(step.op)
    parameters = {parameter.name: parameter for parameter in target.parameters}
    _check_arguments(step, target)
    operands: list[str] = []
    specs: list[TensorSpec | list[TensorSpec] | None] = []
    for entry in target.inputs:
        found = _operand(step, entry, values, names)
        if isinstance(found, str):
            operands.append(found)
            specs.append(values.specs[found])
        elif found is None:
            specs.append(None)
        else:
            operands += found
            specs.append([values.specs[name] for name in found])
    given = {
        key: evaluate_argument(parameters[key], text, names)
        for key, text in step.arguments.items()
        if key in parameters
    }
    try:
        expansion = expand(target, specs, given, library, nesting=nesting)
    except LimitError:
        raise
    except WeftError as error:
        shapes = ", ".join(str(values.specs[name]) for name in operands)
        raise type(error)(
            f"@{step.op} does not apply to ({shapes}): {error.message} "
            f"(template at {error.location or target.location})",
            location=step.location,
            hint=error.hint,
        ) from None
    made = tuple(_made(step.name, target, tensor) for tensor in expansion.outputs)
    return StepCall(step.name, tuple(operands), expansion, made)


def _check_arguments(step: Step, target: Template) -> None:
    """Raise UnknownNameError for an argument that a template does not take."""
    known = [entry.name for entry in (*target.inputs, *target.parameters)]
    for key, text in step.arguments.items():
        if key not in known:
            raise UnknownNameError(
                f"{step.op} has no input or parameter {key}",
                location=text.location,
                hint=nearest(key, known),
            )


def _missing(step: Step, entry: Input) -> OperandError:
    return OperandError(f"input {entry.name} of {step.op} is not given")


def _steps_in(expansion: Expansion) -> int:
    """How many steps an expansion is, those of composites inside it counted one by one."""
    body = expansion.body
    if not isinstance(body, Composite):
        return 1
    return sum(_steps_in(call.expansion) for call in body.calls)


def _operand(step: Step, entry: Input, values: Values, names: Names) -> str | list[str] | None:
    """What a step gives for an input of its template."""
    text = step.arguments.get(entry.name)
    found = None if text is None else values.find(text, names)
    if isinstance(found, list) and entry.each is None:
        raise OperandError(
            f"{text} is a list, and input {entry.name} of {step.op} is one tensor",
            location=None if text is None else text.location,
            hint=f"take one: {text}[0]",
        )
    if isinstance(found, str) and entry.each is not None:
        raise OperandError(
            f"{text} is one tensor, and input {entry.name} of {step.op} is a list",
            location=None if text is None else text.location,
            hint=f"a list of one: [{text}]",
        )
    if found is None and not entry.optional:
        raise _missing(step, entry)
    return found


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

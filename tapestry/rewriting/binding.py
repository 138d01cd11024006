"""Matches rules against shapes, dtypes and parameters, and computes what they produce.

    for names in bindings(rule, situation):         # one per choice that the rule leaves
        production = produce(rule, names, situation.specs, expansions)
        production.specs["y"]                       # the shape and dtype of what replaces y

Nothing here knows IR: passes use it on programs, obligations on drawn sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Final, TypeAlias

from tapestry.metakernels import Expansion, Library, Template, TensorSpec, WeftError, expand
from tapestry.metakernels.composition import evaluate_argument
from tapestry.metakernels.dtypes import allowed, promote
from tapestry.metakernels.errors import OperandError, RequirementError
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.matching import Bindings, Matcher, underdetermined
from tapestry.metakernels.operands import Given
from tapestry.metakernels.parameters import Parameter, bind_parameters
from tapestry.metakernels.syntax import Call, Name
from tapestry.metakernels.values import Names, describe, integer, integers
from tapestry.metakernels.values import Value as Known
from tapestry.rewriting.checking import bound_by
from tapestry.rewriting.numbers import cell, evaluate_number
from tapestry.rewriting.rules import Application, Number, Rule, Value

MAX_CHOICES: Final = 64
"""Choices of one place that are looked at."""


class DoesNotApplyError(WeftError):
    """A rule that does not match here; no mistake."""

    kind = "does_not_apply"


class Expansions:
    """What applications compute; equal applications are expanded once."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: dict[object, Expansion] = {}

    def applied(
        self,
        application: Application,
        specs: Sequence[TensorSpec],
        parameters: Mapping[str, object],
    ) -> Expansion:
        """The expansion of an application of a rule, to operands of these types in order."""
        return self.of(application.template, application.per_input(specs), parameters)

    def of(
        self, template: Template, specs: Sequence[Given], parameters: Mapping[str, object]
    ) -> Expansion:
        """The expansion of `template`; a WeftError says why it does not apply."""
        given = tuple(sorted((name, repr(value)) for name, value in parameters.items()))
        key = (template.name, repr(specs), given)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = expand(template, specs, parameters, self._library)
        return found

    def named(self, name: str, parameters: Mapping[str, object]) -> Expansion:
        """The expansion of the template of that name, which has no inputs."""
        return self.of(self._library.get(name), (), parameters)


def ranks_of(application: Application, specs: Sequence[TensorSpec]) -> dict[str, int]:
    """The rank of each input that is given; that of a list is the rank of its first tensor."""
    pairs = zip(application.entries, specs, strict=True)
    return {entry.name: len(spec.shape) for entry, spec in reversed(list(pairs))}


def _always(_: str) -> bool:
    return True


@dataclass(frozen=True)
class Situation:
    """A place where the applications of a rule's match were found.

    `specs` are those of its tensors, `operands` those of each application's operands in order,
    `parameters` what each application gives, `numbers` the cells of the tensors that stand where
    the rule has a number, with their dtype.
    """

    specs: Mapping[str, TensorSpec]
    operands: Mapping[str, Sequence[TensorSpec]]
    parameters: Mapping[str, Mapping[str, object]]
    numbers: Sequence[tuple[Number, float, str]] = ()
    has_single_use: Callable[[str], bool] = _always


Combination: TypeAlias = tuple[str, ...]
"""The dtypes of the tensors of a match, one by one."""


def combination_of(rule: Rule, situation: Situation) -> Combination:
    """The dtypes of all operands and results, in the order of the rule's match."""
    return tuple(
        spec.dtype
        for application in rule.matched
        for spec in (
            *situation.operands[application.name],
            *(situation.specs[name] for name in application.results),
        )
    )


def bindings(
    rule: Rule, situation: Situation, chosen: Mapping[str, int] | None = None
) -> Iterator[Names]:
    """What the names of `rule` stand for, once for each choice that its conditions allow.

    `chosen` fixes choices by their names. Raises DoesNotApplyError, or another WeftError, when the
    rule does not match for any choice.
    """
    bound = Bindings()
    compared = list(_bind_parameters(rule, situation, bound))
    _bind_types(rule, situation, bound)
    refused: WeftError = DoesNotApplyError(f"rule {rule.name} has no choice here")
    found = False
    for choice in islice(product(*_candidates(rule, bound, chosen or {})), MAX_CHOICES):
        names: dict[str, Known] = {**bound.values}
        names.update(zip((name for name, _ in rule.choices), choice, strict=True))
        try:
            _conclude(rule, situation, names, compared)
        except WeftError as error:
            refused = error
            continue
        found = True
        yield names
    if not found:
        raise refused


def bind(rule: Rule, situation: Situation, chosen: Mapping[str, int] | None = None) -> Names:
    """The first of the bindings."""
    return next(bindings(rule, situation, chosen))


_Compared = tuple[Parameter, Application, Mapping[str, int], Known]


def _bind_parameters(rule: Rule, situation: Situation, bound: Bindings) -> Iterator[_Compared]:
    """Bind what matches a variable; the rest is compared later, when all names are known."""
    for application in rule.matched:
        template = application.template
        specs = situation.operands[application.name]
        ranks = ranks_of(application, specs)
        given = bind_parameters(template.parameters, situation.parameters[application.name], ranks)
        for parameter in template.parameters:
            text = application.arguments.get(parameter.name)
            value = given[parameter.name]
            names = None if text is None else bound_by(text.text)
            what = f"{parameter.name} of {application.name}"
            if isinstance(names, str):
                bound.bind(names, value, what)
            elif names is None:
                yield parameter, application, ranks, value
            elif isinstance(value, tuple) and len(value) == len(names):
                for name, item in zip(names, value, strict=True):
                    bound.bind(name, item, what)
            else:
                raise DoesNotApplyError(f"{what} is {describe(value)}")


def _bind_types(rule: Rule, situation: Situation, bound: Bindings) -> None:
    for typed in rule.types:
        dtype, binding = situation.specs[typed.name].dtype, typed.dtype.tree
        if dtype not in allowed(binding.constraint):
            raise DoesNotApplyError(f"{typed.name} has dtype {dtype}")
        if binding.name is not None:
            bound.bind(binding.name, dtype, typed.name)
    pending = [
        Matcher(typed.shape.tree, situation.specs[typed.name].shape, typed.name, bound)
        for typed in rule.types
    ]
    matchers = tuple(pending)
    while pending:
        waiting = [matcher for matcher in pending if not matcher.advance()]
        if len(waiting) == len(pending):
            raise underdetermined(waiting[0])
        pending = waiting
    for matcher in matchers:
        matcher.check_computed()


def _candidates(
    rule: Rule, bound: Bindings, chosen: Mapping[str, int]
) -> Iterator[tuple[int, ...]]:
    for name, source in rule.choices:
        values = integers(evaluate(source.tree, bound.scope), f"params.{name}")
        if name in chosen:
            values = tuple(value for value in values if value == chosen[name])
        yield values


def _conclude(
    rule: Rule, situation: Situation, names: dict[str, Known], compared: Sequence[_Compared]
) -> None:
    """Compute what `let` defines, and compare all that has to be equal or hold."""
    for name, source in rule.lets:
        names[name] = evaluate(source.tree, Scope(names))
    for parameter, application, ranks, value in compared:
        text = application.arguments.get(parameter.name)
        given = {} if text is None else {parameter.name: evaluate_argument(parameter, text, names)}
        wanted = bind_parameters((parameter,), given, ranks)[parameter.name]
        if value != wanted:
            raise DoesNotApplyError(
                f"{parameter.name} of {application.name} is {describe(value)}, "
                f"not {describe(wanted)}"
            )
    for pattern, value, dtype in situation.numbers:
        if cell(evaluate_number(pattern.source, names), dtype) != value:
            raise DoesNotApplyError(f"{value} is not {pattern.source.text}")
    _require_precise(rule, situation, names)
    for source in rule.conditions:
        match source.tree:
            case Call("single_use", (Name(name),)):
                holds = situation.has_single_use(name)
            case Call("same_type", (Name(one), Name(other))):
                holds = situation.specs[one] == situation.specs[other]
            case condition:
                holds = bool(integer(evaluate(condition, Scope(names)), "a condition"))
        if not holds:
            raise RequirementError(f"{source.text} does not hold")


def _require_precise(rule: Rule, situation: Situation, names: Names) -> None:
    """A number that a dtype rounds (0.1) is that number only beside tensors of that dtype."""
    for application in rule.matched:
        specs = situation.operands[application.name]
        pairs = list(zip(application.operands, specs, strict=True))
        beside = [spec.dtype for operand, spec in pairs if not isinstance(operand, Number)]
        for operand, spec in pairs:
            if isinstance(operand, Number) and beside and spec.dtype != _common_dtype(beside):
                value = evaluate_number(operand.source, names)
                if cell(value, spec.dtype) != value:
                    raise DoesNotApplyError(f"{spec.dtype} rounds {operand.source.text}")


@dataclass(frozen=True)
class Made:
    """A produced application: its parameters, what it computes, and its numbers by position."""

    application: Application
    arguments: Mapping[str, object]
    expansion: Expansion
    numbers: Mapping[int, tuple[float, str]]


@dataclass(frozen=True)
class Production:
    """What a rule produces; `specs` are those of every tensor, outputs as they are produced."""

    made: tuple[Made, ...]
    specs: Mapping[str, TensorSpec] = field(default_factory=dict[str, TensorSpec])


def produce(
    rule: Rule, names: Names, specs: Mapping[str, TensorSpec], expansions: Expansions
) -> Production:
    """What `rule` produces for `names`.

    Raises DoesNotApplyError where a dtype cannot hold a number, and another WeftError when what it
    produces does not fit together: then the rule is wrong.
    """
    replaced = {name for application in rule.produced for name in application.results}
    known = {name: spec for name, spec in specs.items() if name not in replaced}
    made: list[Made] = []
    for application in rule.produced:
        try:
            made.append(_make(application, names, known, expansions))
        except DoesNotApplyError:
            raise
        except WeftError as error:
            raise type(error)(
                f"rule {rule.name}: produce.{application.name}: {error.message}"
                f" (template at {error.location or application.template.location})",
                location=application.location,
                hint=error.hint,
            ) from None
        outputs = made[-1].expansion.outputs
        if len(outputs) != len(application.results):
            raise OperandError(
                f"rule {rule.name}: produce.{application.name} has {len(outputs)} results, and the "
                f"rule names {len(application.results)}",
                location=application.location,
            )
        for name, output in zip(application.results, outputs, strict=True):
            known[name] = output.spec
    for name, source in rule.aliases.items():
        known[name] = known[source] if source in known else specs[source]
    return Production(tuple(made), known)


def _make(
    application: Application,
    names: Names,
    specs: Mapping[str, TensorSpec],
    expansions: Expansions,
) -> Made:
    template = application.template
    parameters = {parameter.name: parameter for parameter in template.parameters}
    arguments = {
        key: evaluate_argument(parameters[key], text, names)
        for key, text in application.arguments.items()
    }
    operands: list[TensorSpec] = []
    numbers: dict[int, tuple[float, str]] = {}
    for position, operand in enumerate(application.operands):
        if isinstance(operand, Value):
            operands.append(specs[operand.name])
            continue
        dtype = _common_dtype([specs[name].dtype for name in application.values])
        value = cell(evaluate_number(operand.source, names), dtype)
        if value is None:
            raise DoesNotApplyError(f"{dtype} cannot hold {operand.source.text}")
        numbers[position] = value, dtype
        operands.append(TensorSpec((), dtype))
    return Made(
        application, arguments, expansions.applied(application, operands, arguments), numbers
    )


def _common_dtype(dtypes: Sequence[str]) -> str:
    common = dtypes[0]
    for dtype in dtypes[1:]:
        common = promote(common, dtype)
    return common

r"""The keys of a rule file and the kinds of their values, checked before anything is read.

>>> from tapestry.metakernels.documents import read_yaml
>>> try:
...     check_rule(read_yaml("match: {}\nproduces: {}\n", "rules.yaml"), "relu_twice")
... except UnknownNameError as error:
...     print(error)
rules.yaml:2:1: error: rule relu_twice: unknown key `produces`
  hint: did you mean produce?
"""

from __future__ import annotations

from typing import Annotated, Any, Final, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tapestry.metakernels.documents import Entries, Step
from tapestry.metakernels.errors import TemplateError, UnknownNameError, WeftError, nearest
from tapestry.metakernels.models import Expression, Word, refuse_nothing


def _shape_alone(value: object) -> object:
    """`X: "[$n]"` says the same as `X: {shape: "[$n]"}`."""
    return cast(object, value) if isinstance(value, dict) else {"shape": value}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ApplicationModel(BaseModel):
    """One entry of `match`: an application; its operands and parameters are further keys."""

    model_config = ConfigDict(extra="allow", frozen=True)

    op: Word


class TypeModel(_Model):
    """One entry of `types`: what a tensor's shape and dtype look like."""

    shape: Expression = "[...]"
    dtype: Expression = "any"


class ChoiceModel(_Model):
    """One entry of `params`: what a planner may choose among, the first when nobody chooses."""

    choose: Expression


class RuleModel(_Model):
    """A rule. An entry of `produce` is an application, or the name of a tensor that is there."""

    doc: Word = ""
    match: Annotated[dict[str, ApplicationModel], Field(min_length=1)]
    types: dict[str, Annotated[TypeModel, BeforeValidator(_shape_alone)]] = {}
    params: dict[str, ChoiceModel] = {}
    let: dict[str, Expression] = {}
    where: list[Expression] = []
    produce: Annotated[dict[str, Any], Field(min_length=1)]
    exact: Annotated[bool, Field(strict=True)] = True


_MODELS: Final[dict[str, type[BaseModel]]] = {"types": TypeModel, "params": ChoiceModel}


def check_rule(entries: Entries, name: str) -> RuleModel:
    """The typed rule; a located error for its first unknown key, else its first wrong value."""
    refuse_nothing(entries, f"rule {name}")
    try:
        return RuleModel.model_validate(entries.plain())
    except ValidationError as error:
        problems = [_problem(entries, name, problem) for problem in error.errors()]
    raise min(problems, key=lambda problem: isinstance(problem, TemplateError))


def _problem(entries: Entries, name: str, problem: Any) -> WeftError:
    path = tuple(
        step
        for step in cast("tuple[Step, ...]", problem["loc"])
        if not str(step).startswith("function-")
    )
    where = ".".join(map(str, path))
    kind, message = str(problem["type"]), str(problem["msg"])
    location = entries.at(*path).location
    if kind == "extra_forbidden":
        holder, key = entries.at(*path[:-1]), str(path[-1])
        leaf = holder.key(key) if isinstance(holder, Entries) else None
        known = (_MODELS[str(path[0])] if len(path) > 1 else RuleModel).model_fields
        within = f"{'.'.join(map(str, path[:-1]))}: " if len(path) > 1 else ""
        return UnknownNameError(
            f"rule {name}: {within}unknown key `{key}`",
            location=location if leaf is None else leaf.location,
            hint=nearest(key, known),
        )
    if kind == "missing":
        return TemplateError(f"rule {name}: {where} is missing", location=location)
    if kind == "too_short":
        return TemplateError(f"rule {name}: {where} is empty", location=location)
    message = message[0].lower() + message[1:]
    message = message.removeprefix("input ").replace("should", "must").replace("valid ", "")
    return TemplateError(f"rule {name}: {where} {message}", location=location)

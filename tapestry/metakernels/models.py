r"""The keys of a template file and the kinds of their values, checked before anything is read.

>>> from tapestry.metakernels.documents import read_yaml
>>> try:
...     check_template(read_yaml("inputs: {}\nwarp: x\n", "ops.yaml"), "relu")
... except UnknownNameError as error:
...     print(error)
ops.yaml:2:1: error: template relu: unknown key `warp`
  hint: did you mean wrap or unwrap?
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from tapestry.diagnostics import Location
from tapestry.metakernels.documents import Entries, Items, Leaf, Node, Step
from tapestry.metakernels.errors import (
    TemplateError,
    UnknownNameError,
    WeftError,
    nearest,
)


def _text(value: object) -> object:
    if isinstance(value, list):
        raise PydanticCustomError("text", 'must be text; quote the list: "[...]"')
    if value is None or isinstance(value, dict):
        raise PydanticCustomError("text", "must be text")
    return str(value)


Expression: TypeAlias = Annotated[
    str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number", "boolean"]})
]
"""An expression; YAML may have read it as a number."""

Word: TypeAlias = Annotated[str, Field(strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ParameterModel(_Model):
    """One entry of `params`."""

    type: Word
    default: Any = None
    axis_of: Word | None = None
    inserted: bool = Field(default=False, strict=True)
    values: list[Word] = []
    doc: Word = ""


class BoundsModel(_Model):
    """`bounds` of an input: what a point reads where the tensor has no cell."""

    clip: Expression


class InputModel(_Model):
    """One entry of `inputs`."""

    shape: Expression
    ipf: Expression = "[...]"
    dtype: Expression = "any"
    bounds: BoundsModel | None = None
    each: Expression | None = None
    when: Expression | None = None
    optional: bool = Field(default=False, strict=True)
    doc: Word = ""


class OutputModel(_Model):
    """One entry of `outputs`."""

    shape: Expression | None = None
    ipf: Expression = "[...]"
    dtype: Expression | None = None
    each: Expression | None = None
    count: Expression | None = None
    when: Expression | None = None
    doc: Word = ""


class FoldModel(_Model):
    """One entry of `fold` or `scan`: a dimension that is folded, or whose states are kept."""

    extent: Expression
    monoid: Word


class MonoidModel(_Model):
    """One entry of `monoids`: a state, its zero, and how two states merge."""

    zero: Expression | list[Expression]
    merge: Expression | list[Expression]
    commutative: StrictBool = False


class ExternalModel(_Model):
    """`external`: a kernel that is registered by name, and what it is called with."""

    kernel: Word
    parameters: dict[str, Expression] = {}


class StepModel(BaseModel):
    """One entry of `steps`: an application, its inputs and parameters as further keys."""

    model_config = ConfigDict(extra="allow", frozen=True)

    op: Word


class ExampleModel(_Model):
    """One entry of `examples`: what an application gives, with values as nested lists."""

    params: dict[str, Any] = {}
    inputs: dict[str, Any]
    dtypes: dict[str, Word] = {}
    outputs: dict[str, Any]


class TemplateModel(_Model):
    """A template."""

    doc: Word = ""
    formula: Word = ""
    source: Word = ""
    params: dict[str, ParameterModel] = {}
    inputs: dict[str, InputModel]
    let: dict[str, Expression] = {}
    require: list[Expression] = []
    family: Expression | list[Expression] = Field(default=[], alias="for")
    index: Expression | None = None
    fold: dict[str, FoldModel] = {}
    scan: dict[str, FoldModel] = {}
    domain: list[Expression] = []
    monoids: dict[str, MonoidModel] = {}
    external: ExternalModel | None = None
    wrap: Expression | list[Expression] | dict[str, Expression] | None = None
    unwrap: Expression | list[Expression] | dict[str, Expression] | None = None
    outputs: dict[str, OutputModel] = {"result": OutputModel()}
    steps: dict[str, StepModel] = {}
    view: Literal["reshape"] | None = None
    examples: list[ExampleModel] = []


_MODELS: Final[dict[str, type[BaseModel]]] = {
    "params": ParameterModel,
    "inputs": InputModel,
    "outputs": OutputModel,
    "fold": FoldModel,
    "scan": FoldModel,
    "monoids": MonoidModel,
    "examples": ExampleModel,
}


def check_template(entries: Entries, name: str) -> TemplateModel:
    """The typed template; a located error for its first unknown key, else its first wrong value."""
    refuse_nothing(entries, f"template {name}")
    try:
        return TemplateModel.model_validate(entries.plain())
    except ValidationError as error:
        problems = [_problem(entries, name, problem) for problem in error.errors()]
    raise min(problems, key=_urgency)


def _urgency(problem: WeftError) -> tuple[bool, Location]:
    """Unknown keys come first: a misspelt key is also a missing one."""
    place = problem.location
    return isinstance(problem, TemplateError), place or Location("", 0, 0)


def refuse_nothing(node: Node, subject: str) -> None:
    """YAML's null (a key without a value) says nothing about what is meant.

    `subject` is what the node is of, as in `template relu`.
    """
    match node:
        case Leaf(None):
            raise TemplateError(
                f"{subject}: this has no value",
                location=node.location,
                hint="leave the key out, or give it a value",
            )
        case Items(items):
            for item in items:
                refuse_nothing(item, subject)
        case Entries(entries):
            for _, value in entries:
                refuse_nothing(value, subject)
        case _:
            pass


def _problem(entries: Entries, name: str, problem: Any) -> WeftError:
    path = cast("tuple[Step, ...]", problem["loc"])
    kind, message = str(problem["type"]), str(problem["msg"])
    location = entries.at(*path).location
    if kind == "extra_forbidden":
        return _unknown_key(entries, name, path)
    where = ".".join(str(step) for step in path if not str(step).startswith("function-"))
    if kind == "missing":
        return TemplateError(f"template {name}: {where} is missing", location=location)
    if path[0] in ("wrap", "unwrap"):
        where = str(path[0])
        message = "must be one expression, a list of them (parts of the state) or one per output"
        location = entries.at(path[0]).location
    message = message[0].lower() + message[1:]
    message = message.removeprefix("input ").replace("should be", "must be").replace("valid ", "")
    return TemplateError(f"template {name}: {where} {message}", location=location)


def _unknown_key(entries: Entries, name: str, path: tuple[Step, ...]) -> WeftError:
    *parents, key = path
    holder = entries.at(*parents)
    leaf = holder.key(str(key)) if isinstance(holder, Entries) else None
    location = leaf.location if isinstance(leaf, Leaf) else holder.location
    where = f"template {name}: " + (f"{'.'.join(map(str, parents))}: " if parents else "")
    known = [field.alias or name for name, field in _model_at(parents).model_fields.items()]
    return UnknownNameError(
        f"{where}unknown key `{key}`", location=location, hint=nearest(str(key), known)
    )


def _model_at(path: list[Step]) -> type[BaseModel]:
    """What may stand in the mapping at `path`."""
    match path:
        case ["inputs", _, "bounds"]:
            return BoundsModel
        case ["external"]:
            return ExternalModel
        case [section, *_]:
            return _MODELS.get(str(section), TemplateModel)
        case _:
            return TemplateModel

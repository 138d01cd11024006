"""From a graph of core ATen operators to a weft program.

    program = program_of(graph_module)
    program.module        # func.func @main, a weft.apply or a few per operator
    program.arguments     # which placeholders it takes, by the name of the argument
    program.outputs       # what the graph returns: tensors of the program, numbers, None

What an operator becomes is in the table of `registry`. What has no lowering, or is refused by its
lowering, becomes a `loom.external` that PyTorch runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import fx
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue

from tapestry.diagnostics import TapestryError
from tapestry.importers.building import ProgramBuilder
from tapestry.importers.torch.dtypes import as_array, name_of
from tapestry.importers.torch.locations import location_of_node
from tapestry.importers.torch.registry import (
    Context,
    Lowered,
    ResultKind,
    Unsupported,
    find_lowering,
)
from tapestry.locations import source_locations

_PLACEMENT = ("device", "layout", "pin_memory", "memory_format", "non_blocking")
"""Where and how tensors lie: no part of what is computed."""


class ImportingError(TapestryError):
    """A graph that cannot be imported as asked."""

    kind = "import"


@dataclass(frozen=True)
class ProgramOutput:
    """One output of a graph: result `position` of the program, or a plain `value` without one."""

    position: int | None
    value: object = None


@dataclass(frozen=True)
class Program:
    """A graph as a program. `arguments` are the positions of the placeholders that it takes."""

    module: ModuleOp
    arguments: tuple[int, ...]
    outputs: tuple[ProgramOutput, ...]


def program_of(graph: fx.GraphModule) -> Program:
    """The program of a graph whose nodes know what they hold (`meta["val"]`)."""
    return _Importer(graph).run()


@dataclass
class _Importer:
    graph: fx.GraphModule
    build: ProgramBuilder = field(default_factory=ProgramBuilder)
    values: dict[fx.Node, Any] = field(default_factory=dict[fx.Node, Any])
    """What stands for each node: a value, a sequence of them, or a plain object."""

    def run(self) -> Program:
        taken: list[int] = []
        placeholders = 0
        outputs: tuple[ProgramOutput, ...] = ()
        returned: list[SSAValue] = []
        for node in self.graph.graph.nodes:
            match node.op:
                case "placeholder":
                    if self._placeholder(node):
                        taken.append(placeholders)
                    placeholders += 1
                case "get_attr":
                    self.values[node] = self._attribute(node)
                case "call_function":
                    self.values[node] = self._call(node)
                case "output":
                    outputs = self._outputs(node, returned)
                case _:
                    raise ImportingError(f"a graph of operators has no {node.op} ({node.name})")
        return Program(self.build.finish(returned), tuple(taken), outputs)

    def _placeholder(self, node: fx.Node) -> bool:
        held = node.meta.get("val")
        if not isinstance(held, torch.Tensor):
            self.values[node] = held
            return False
        kind = _kind(held)
        self.values[node] = self.build.argument(
            node.name, kind.shape, kind.dtype, location_of_node(node)
        )
        return True

    def _attribute(self, node: fx.Node) -> SSAValue:
        held: Any = self.graph
        for part in str(node.target).split("."):
            held = getattr(held, part)
        if not isinstance(held, torch.Tensor):
            raise ImportingError(f"{node.target} is a {type(held).__name__}, not a tensor")
        kind = _kind(held)
        return self.build.constant(as_array(held), kind.dtype, location=location_of_node(node))

    def _call(self, node: fx.Node) -> object:
        name = str(node.target)
        if name == "<built-in function getitem>":
            source, position = node.args
            return self.values[cast(fx.Node, source)][cast(int, position)]
        location = location_of_node(node)
        results = _result_kinds(node)
        context = Context(self.build, name, results, location)
        lower = find_lowering(name)
        if lower is None:
            raise _missing(name, "it has no lowering", location)
        args, kwargs = _arguments(node)
        try:
            lowered = lower(context, *self._plain(args), **self._plain(kwargs))
        except Unsupported as reason:
            raise _missing(name, str(reason), location) from None
        checked = tuple(_checked(context, lowered))
        return checked[0] if isinstance(node.meta.get("val"), torch.Tensor) else checked

    def _outputs(self, node: fx.Node, returned: list[SSAValue]) -> tuple[ProgramOutput, ...]:
        found: list[ProgramOutput] = []
        for output in cast("Sequence[object]", node.args[0]):
            value = self._plain(output)
            if not isinstance(value, SSAValue):
                found.append(ProgramOutput(None, value))
                continue
            found.append(ProgramOutput(len(returned)))
            returned.append(cast("SSAValue[Attribute]", value))
        return tuple(found)

    def _plain(self, value: Any) -> Any:
        """An argument of an operator as a lowering takes it."""
        match value:
            case fx.Node():
                return self.values[value]
            case torch.dtype():
                return name_of(value)
            case list() | tuple():
                return [self._plain(item) for item in cast("Sequence[object]", value)]
            case dict():
                items = cast("Mapping[str, object]", value).items()
                return {key: self._plain(item) for key, item in items}
            case _:
                return value


def _arguments(node: fx.Node) -> tuple[list[object], dict[str, object]]:
    """A node's arguments, by position where the operator takes them so, without placement."""
    args: list[object] = list(node.args)
    kwargs: dict[str, object] = dict(node.kwargs)
    schema: Any = vars(node.target)["_schema"]
    for argument in schema.arguments[len(args) :]:
        if argument.kwarg_only or argument.name not in kwargs:
            break
        args.append(kwargs.pop(argument.name))
    return args, {key: value for key, value in kwargs.items() if key not in _PLACEMENT}


def _kind(held: torch.Tensor) -> ResultKind:
    return ResultKind(tuple(int(size) for size in held.shape), name_of(held.dtype))


def _result_kinds(node: fx.Node) -> tuple[ResultKind | None, ...]:
    held = node.meta.get("val")
    parts = cast("Sequence[object]", held) if isinstance(held, list | tuple) else [held]
    return tuple(_kind(part) if isinstance(part, torch.Tensor) else None for part in parts)


def _checked(context: Context, lowered: Lowered) -> Iterable[SSAValue | None]:
    """What a lowering made, of the dtypes that PyTorch says."""
    made = [lowered] if isinstance(lowered, SSAValue) else list(lowered)
    if len(made) != len(context.results):
        raise _wrong(context, f"{len(made)} results, not {len(context.results)}")
    for value, kind in zip(made, context.results, strict=True):
        if value is None or kind is None:
            yield None
            continue
        if context.shape(value) != kind.shape:
            raise _wrong(context, f"shape {context.shape(value)}, not {kind.shape}")
        yield context.cast(value, kind.dtype)


def _wrong(context: Context, what: str) -> ImportingError:
    places = source_locations(context.location)
    message = f"the lowering of {context.operator} gives {what}: a mistake of the importer"
    return ImportingError(message, location=places[0] if places else None)


def _missing(name: str, reason: str, location: LocationAttr) -> ImportingError:
    places = source_locations(location)
    message = f"{name} cannot be imported: {reason}"
    return ImportingError(message, location=places[0] if places else None)

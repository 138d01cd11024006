"""From a graph of core ATen operators to a weft program.

    program = program_of(graph_module)
    program.module        # func.func @main, a weft.apply or a few per operator
    program.arguments     # which placeholders it takes
    program.outputs       # what the graph returns: tensors of the program, numbers, None
    program.coverage      # which operators Tapestry computes

What an operator becomes is in the table of `registry`. What has no lowering, or is refused by its
lowering, becomes a `loom.external` that PyTorch runs, or an error where `strict` asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, SSAValue

from tapestry.importers.building import ProgramBuilder
from tapestry.importers.torch.branches import with_branches_selected
from tapestry.importers.torch.complexes import (
    complex_results,
    is_about_complex,
    joined,
    parted,
)
from tapestry.importers.torch.dtypes import as_array, name_of
from tapestry.importers.torch.effects import Effects, is_token
from tapestry.importers.torch.errors import ImportingError, missing, place_of
from tapestry.importers.torch.externals import add_external
from tapestry.importers.torch.locations import location_of_node
from tapestry.importers.torch.memory import Given, Made, Output, Plain, View
from tapestry.importers.torch.overloads import Overload, overload_of, takes_functions
from tapestry.importers.torch.program import Program
from tapestry.importers.torch.registry import Context, ResultKind, Unsupported, find_lowering
from tapestry.importers.torch.replaying import (
    REPLAYS,
    packed,
    state_of,
    unpacked,
    with_states_apart,
)
from tapestry.importers.torch.results import checked, without_cells
from tapestry.importers.torch.sharing import find_views, memory_of, order_of
from tapestry.importers.torch.sizes import OpenSizeError, Sizes
from tapestry.importers.torch.uses import Coverage, Use, record
from tapestry.metakernels import WeftError

_PLACEMENT = ("device", "layout", "pin_memory", "memory_format", "non_blocking")
"""Where and how tensors lie: no part of what is computed."""


@dataclass(frozen=True)
class Weight:
    """A placeholder that is a model's: what it is called there, and its cells if they are known."""

    name: str
    tensor: torch.Tensor | None


def program_of(
    graph: fx.GraphModule,
    sizes: Sizes | None = None,
    *,
    weights: Mapping[str, Weight] | None = None,
    strict: bool = False,
    alone: bool = False,
    views: bool = False,
    seen: int | None = None,
) -> Program:
    """The program of a graph whose nodes know what they hold (`meta["val"]`).

    `sizes` are what the open ones stand for, `weights` the placeholders (by name) that are a
    model's. With `strict`, an operator without a lowering is an ImportingError. A module that is to
    stand `alone` returns all that the graph returns, and leaves out assertions and prints. Results
    that share memory with arguments in the graph share it when it runs; with `views`, so do those
    that share it with each other. The first `seen` of them, or all, lie as PyTorch's do.
    """
    graph = with_states_apart(with_branches_selected(graph))
    return _Importer(graph, sizes or Sizes(), weights or {}, strict, alone, views, seen).run()


@dataclass
class _Importer:
    graph: fx.GraphModule
    sizes: Sizes
    weights: Mapping[str, Weight]
    strict: bool
    alone: bool
    views: bool
    seen: int | None
    build: ProgramBuilder = field(default_factory=ProgramBuilder)
    values: dict[fx.Node, Any] = field(default_factory=dict[fx.Node, Any])
    """What stands for each node: a value, a sequence of them, or a plain object."""
    placeholders: list[fx.Node] = field(default_factory=list[fx.Node])
    seeds: list[SSAValue] = field(default_factory=list[SSAValue])
    seeded: dict[fx.Node, list[SSAValue]] = field(default_factory=dict[fx.Node, list[SSAValue]])
    """The seeds of the operators whose state is kept."""
    coverage: Coverage = field(default_factory=Coverage)

    def run(self) -> Program:
        nodes: list[fx.Node] = list(self.graph.graph.nodes)
        self.placeholders += [node for node in nodes if node.op == "placeholder"]
        numbered = list(enumerate(self.placeholders))
        numbered.sort(key=lambda pair: pair[1].name in self.weights)  # a model's come last
        taken = [number for number, node in numbered if self._placeholder(node)]
        effects = Effects(self.graph.graph)
        for node in nodes:
            match node.op:
                case _ if node in effects.nodes:
                    self.values[node] = (None,)
                case "placeholder" | "output":
                    pass
                case "get_attr":
                    self.values[node] = self._attribute(node)
                case "call_function":
                    overload = overload_of(node.target)
                    self.values[node] = (
                        self._function(node) if overload is None else self._operator(node, overload)
                    )
                case _:
                    raise ImportingError(f"a graph of operators has no {node.op} ({node.name})")
        found = _returned(nodes[-1])
        if self.alone:
            effects = Effects(fx.Graph())
        outputs, returned = self._outputs([*found, *effects.taken])
        module = self.build.finish(returned)
        after = effects.after(len(found))
        return Program(module, tuple(taken), len(self.seeds), outputs, self.coverage, after)

    def _placeholder(self, node: fx.Node) -> bool:
        """Whether a placeholder is a tensor, which becomes an argument."""
        held = None if is_token(node) else node.meta.get("val")
        location = location_of_node(node)
        if not isinstance(held, torch.Tensor):
            number = isinstance(held, int | torch.SymInt)
            self.values[node] = self.sizes.number(held) if number else held
            return False
        weight = self.weights.get(node.name)
        name = node.name if weight is None else weight.name
        try:
            kind = self._kind(held)
        except Unsupported as reason:
            raise ImportingError(
                f"the input {name} cannot be one of a program: {reason}",
                location=place_of(location),
            ) from None
        if weight is not None and weight.tensor is not None:
            if weight.tensor.is_meta:
                raise ImportingError(
                    f"the weight {name} is on the device meta: it has no cells",
                    hint='load it, or take weights="arguments"',
                )
            held = self.build.constant(as_array(weight.tensor.cpu()), kind.dtype)
        else:
            held = self.build.argument(name, kind.shape, kind.dtype, location)
        self.values[node] = parted(self._context(location), held)
        return weight is None or weight.tensor is None

    def _attribute(self, node: fx.Node) -> object:
        held: Any = self.graph
        for part in str(node.target).split("."):
            held = getattr(held, part)
        if not isinstance(held, torch.Tensor):
            return held  # a graph, which an operator takes that is refused
        with unset_fake_temporarily():  # its cells are wanted, not its shape
            cells = as_array(held.cpu())
        location = location_of_node(node)
        made = self.build.constant(cells, name_of(held.dtype), location=location)
        return parted(self._context(location), made)

    def _context(self, location: LocationAttr) -> Context:
        """What adds to the program without being an operator of the graph."""
        return Context(self.build, "", (), location, self.seeds)

    def _function(self, node: fx.Node) -> object:
        """A function of Python's: what picks a result, and arithmetic on sizes."""
        if node.target is state_of:
            return self._state(node)
        name = str(getattr(node.target, "__name__", node.target))
        if not callable(node.target) or takes_functions(node.target):
            raise ImportingError(
                f"{name} takes functions, not tensors alone: it cannot be imported",
                location=place_of(location_of_node(node)),
                hint="torch._dynamo.config.suppress_errors = True leaves such graphs to PyTorch",
            )
        return node.target(*self._plain(node.args), **self._plain(node.kwargs))

    def _state(self, node: fx.Node) -> object:
        """The state of a generator, as seeds."""
        (operator,) = node.args
        context = self._context(location_of_node(node))
        return packed(context, self.seeded[cast("fx.Node", operator)])

    def _operator(self, node: fx.Node, overload: Overload) -> object:
        location = location_of_node(node)
        name = overload.name
        seeds, replayed = self.seeds, None
        if REPLAYS in node.meta:
            seeds, replayed = (
                [],
                partial(unpacked, self._context(location), self._plain(node.meta[REPLAYS])),
            )
        before = len(seeds)
        held = node.meta.get("val")
        if isinstance(held, int | torch.SymInt):
            return self.sizes.number(held)  # the size of a tensor
        args: list[object] = []
        kwargs: dict[str, object] = {}
        context = Context(self.build, name, (), location, seeds)
        try:
            kinds = self._kinds(held)
        except Unsupported as why:
            raise missing(context, str(why)) from None
        except OpenSizeError as error:
            raise error.of(name, place_of(location)) from None
        try:
            args, kwargs = self._arguments(node, overload)
            context = Context(
                self.build, name, kinds, location, seeds, lambda: self._lies(node), replayed
            )
            made = self._computed(context, overload, node) or self._lowered(
                context, _named(args), _named(kwargs)
            )
            use = Use(name, place_of(location))
        except (Unsupported, WeftError) as refusal:
            reason = refusal.message if isinstance(refusal, WeftError) else str(refusal)
            if self.strict:
                raise missing(context, reason) from None
            use = Use(name, place_of(location), reason)
            try:
                whole = joined(context, args), joined(context, kwargs)
                made = add_external(context, overload, *whole)
                made = tuple(parted(context, value) for value in made)
            except Unsupported as why:
                raise missing(context, str(why)) from None
        except OpenSizeError as error:
            raise error.of(name, place_of(location)) from None
        self.coverage.uses.append(use)
        record(use)
        self.seeded[node] = seeds[before:]
        return made[0] if isinstance(held, torch.Tensor) else made

    def _computed(
        self, context: Context, overload: Overload, node: fx.Node
    ) -> tuple[SSAValue, ...] | None:
        """Constants in the place of an operator without a lowering that takes no tensors."""
        own = find_lowering(context.operator) is None and not overload.random
        if not own or node.all_input_nodes or len(context.results) != 1:
            return None
        with unset_fake_temporarily():
            made = cast("torch.Tensor", overload.call(*node.args, **node.kwargs))
            cells = as_array(made.cpu())
        return (context.constant(cells, context.result.dtype),)

    def _lowered(
        self, context: Context, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """What an operator becomes; Unsupported, or a WeftError, where it cannot."""
        none = without_cells(context)
        if none:
            return tuple(parted(context, value) for value in none)
        lower = find_lowering(context.operator)
        if is_about_complex(context, args, kwargs):
            return complex_results(context, args, kwargs)
        if lower is None:
            raise Unsupported("it has no lowering")
        return checked(context, lower(context, *args, **kwargs))

    def _outputs(self, outputs: Sequence[object]) -> tuple[tuple[Output, ...], list[SSAValue]]:
        found: list[Output] = []
        returned: list[SSAValue] = []
        shared = {memory_of(given.meta.get("val")) for given in self.placeholders}
        seen = len(outputs) if self.seen is None else self.seen
        views = self._views(outputs)
        bases = {view.base for view in views.values() if not view.given}
        for place, output in enumerate(outputs):
            if place in views:
                found.append(views[place])
                continue
            value = joined(self._context(UNKNOWN_LOC), self._plain(output))
            if not self.alone and isinstance(output, fx.Node) and output in self.placeholders:
                found.append(Given(self.placeholders.index(output)))
            elif not isinstance(value, SSAValue):
                found.append(Plain(value))
            else:
                held = cast("fx.Node", output).meta["val"]
                view = memory_of(held) in shared
                contiguous = held.is_contiguous()
                lies = place in bases or not (contiguous or place >= seen)
                order = (order_of(held, self.sizes) or ()) if lies else ()
                found.append(Made(len(returned), contiguous, view, held.device, order))
                returned.append(cast("SSAValue[Attribute]", value))
        return tuple(found), returned

    def _views(self, outputs: Sequence[object]) -> Mapping[int, View]:
        if self.alone:
            return {}
        return find_views(outputs, self.placeholders, self.sizes, of_open_sizes=not self.views)

    def _arguments(
        self, node: fx.Node, overload: Overload
    ) -> tuple[list[object], dict[str, object]]:
        """A node's arguments, by position where the operator takes them so, without placement."""
        args: list[object] = list(node.args)
        kwargs: dict[str, object] = dict(node.kwargs)
        for argument in overload.positional[len(args) :]:
            if argument not in kwargs:
                break
            args.append(kwargs.pop(argument))
        kept = {key: value for key, value in kwargs.items() if key not in _PLACEMENT}
        return self._plain(args), self._plain(kept)

    def _plain(self, value: Any) -> Any:
        """An argument with values and numbers for the nodes and symbols in it."""
        match value:
            case fx.Node():
                return self.values[value]
            case torch.SymInt():
                return self.sizes.number(value)
            case list() | tuple():
                return [self._plain(item) for item in cast("Sequence[object]", value)]
            case dict():
                items = cast("Mapping[str, object]", value).items()
                return {key: self._plain(item) for key, item in items}
            case _:
                return value

    def _lies(self, node: fx.Node) -> tuple[tuple[int, ...], int]:
        """The strides of a node's first operand, and where it begins in its memory."""
        held: torch.Tensor = node.all_input_nodes[0].meta["val"]
        strides = tuple(map(self.sizes.number, held.stride()))
        return strides, self.sizes.number(held.storage_offset())

    def _kind(self, held: torch.Tensor) -> ResultKind:
        if held.layout != torch.strided:
            raise Unsupported(f"a tensor is {held.layout}, and not dense")
        return ResultKind(tuple(map(self.sizes.number, held.shape)), name_of(held.dtype))

    def _kinds(self, held: object) -> tuple[ResultKind | None, ...]:
        parts = cast("Sequence[object]", held) if isinstance(held, list | tuple) else [held]
        return tuple(self._kind(part) if isinstance(part, torch.Tensor) else None for part in parts)


def _returned(output: fx.Node) -> Sequence[object]:
    """What a graph returns: one value, or several, each a tensor, a number or None."""
    given: object = output.args[0]
    values = cast("Sequence[object]", given) if isinstance(given, list | tuple) else (given,)
    for kind in map(type, values):
        if issubclass(kind, (list, tuple, dict)):
            raise ImportingError(
                f"a graph that returns values in a {kind.__name__} cannot be imported",
                location=place_of(location_of_node(output)),
                hint="return the values themselves, as one tuple",
            )
    return values


def _named(value: Any) -> Any:
    """An argument with dtypes by name, as lowerings take it."""
    match value:
        case torch.dtype():
            return name_of(value)
        case list():
            return [_named(item) for item in cast("list[object]", value)]
        case dict():
            return {k: _named(item) for k, item in cast("Mapping[str, object]", value).items()}
        case _:
            return value

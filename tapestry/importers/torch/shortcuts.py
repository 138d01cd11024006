"""Graphs of Dynamo's that were compiled before, in this process or another.

    shortcut = find_shortcut(graph, inputs, options)     # None for a graph that has to be traced
    call = shortcut.read()                               # None where it was not compiled before
    follower = Follower(shortcut)                        # keeps it at its first call

AOT autograd makes a graph of core ATen of Dynamo's, and a function around what that is compiled
to: for gradients, for results that share memory with inputs, for inputs that are written to. Where
none of that is in a graph, the function hands on its arguments and results as they are. Then the
program is the function, and neither is made again. Whether it is so is seen at the first call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from logging import INFO
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import fx

from tapestry.caching import environment, find_current
from tapestry.dialects import loom
from tapestry.encoding import EncodingError, decode, encode_exactly
from tapestry.frontend import make_context
from tapestry.importers.torch.descriptions import described
from tapestry.importers.torch.memory import Given, Made, Output, Plain
from tapestry.importers.torch.options import Options
from tapestry.importers.torch.program import Program
from tapestry.importers.torch.running import Runner, runner
from tapestry.importers.torch.uses import Coverage, is_recording
from tapestry.logs import channel
from tapestry.passes._collection import collection_paused
from tapestry.store import Store, key_of

if TYPE_CHECKING:
    from tapestry.importers.torch.compiling import CompiledGraph

Compiled: TypeAlias = Callable[..., Any]

KIND = "graphs"
"""The folder of graphs."""


def find_shortcut(
    graph: fx.GraphModule, inputs: Sequence[Any], options: Options
) -> Shortcut | None:
    """Where a graph is kept, or is to be; None where it has to be traced."""
    seen = [channel(name).isEnabledFor(INFO) for name in ("passes", "coverage")]
    if options.dump is not None or any(seen) or is_recording():
        return None
    store = find_current(KIND)
    description = None if store is None else described(graph, inputs)
    if store is None or description is None:
        return None
    digest = sha256(json.dumps(description).encode()).hexdigest()
    chosen = [options.on, options.pipeline, options.numerics, options.strict]
    key = key_of({"graph": digest, "options": chosen, "environment": dict(environment())})
    return Shortcut(store, key, options)


@dataclass(frozen=True)
class Shortcut:
    """An entry of the cache, there or not: what a graph is compiled to."""

    store: Store
    key: str
    options: Options

    def read(self) -> Compiled | None:
        """The compiled graph, as Dynamo calls it; None where it is not kept."""
        entry = self.store.read(self.key)
        if entry is None:
            return None
        try:
            with collection_paused():
                device, program = _read(entry)
                run = self._runner(device, program)
        except (EncodingError, LookupError, TypeError, ValueError) as error:
            self.store.say(self.key, f"is no graph: {type(error).__name__}: {error}")
            return None
        return lambda *given: run(given)

    def write(self, device: torch.device, program: Program) -> None:
        """Keep a compiled graph."""
        try:
            entry = _written(device, program)
        except EncodingError as error:
            self.store.say(self.key, f"is not kept: {error}")
        else:
            if find_current(KIND) is not None:
                self.store.write(self.key, entry)

    def _runner(self, device: torch.device, program: Program) -> Runner:
        options = self.options
        return runner(
            program,
            device,
            options.executor(device.type),
            options.numerics,
            graphs=options.graphs,
            fallback=options.fallback,
        )


class Follower:
    """Watches the first call of a graph, and keeps the graph if its program is all that runs."""

    def __init__(self, shortcut: Shortcut) -> None:
        self._shortcut = shortcut
        self._parts: list[tuple[CompiledGraph, str]] = []
        self._call: tuple[Sequence[Any], Sequence[object]] | None = None
        self._done = False

    def part(self, compiled: CompiledGraph, part: str) -> Compiled:
        """A part of the graph, which AOT autograd calls."""
        self._parts.append((compiled, part))

        def call(given: Sequence[Any]) -> tuple[object, ...]:
            if self._done:
                return compiled(given)
            taken = tuple(given)
            made = compiled(given)
            self._call = taken, made
            return made

        return call

    def whole(self, compiled: Compiled) -> Compiled:
        """The graph, which Dynamo calls."""

        def call(*given: Any) -> Any:
            made = compiled(*given)
            if not self._done:
                self._done = True
                self._keep(given, made)
                self._call = None
            return made

        return call

    def _keep(self, given: Sequence[Any], made: Sequence[object]) -> None:
        store, key = self._shortcut.store, self._shortcut.key
        if [part for _, part in self._parts] != ["inference"] or self._call is None:
            store.say(key, "is not kept: it has gradients")
        elif not (_same(given, self._call[0]) and _same(made, self._call[1])):
            store.say(key, "is not kept: results share memory with inputs, or inputs change")
        else:
            ready = self._parts[0][0].only
            if ready is None:
                store.say(key, "is not kept: its sizes are open")
            else:
                self._shortcut.write(ready.device, ready.program)


def _same(ones: Sequence[object], others: Sequence[object]) -> bool:
    """Whether these are the same objects, none of which has a gradient."""
    return len(ones) == len(others) and all(
        one is other and not (isinstance(one, torch.Tensor) and one.grad_fn is not None)
        for one, other in zip(ones, others, strict=True)
    )


def _written(device: torch.device, program: Program) -> dict[str, Any]:
    """A program as plain JSON; EncodingError for one that is more than that."""
    ctx = make_context()
    if program.aftermath is not None or any(
        isinstance(op, loom.ExternalOp) for op in program.module.walk()
    ):
        raise EncodingError("PyTorch runs a part of it")
    return {
        "device": str(device),
        "module": encode_exactly(program.module, {}, ctx),
        "arguments": list(program.arguments),
        "seeds": program.seeds,
        "outputs": [_output(output) for output in program.outputs],
    }


def _output(output: Output) -> list[Any]:
    match output:
        case Given():
            return ["given", output.position]
        case Made():
            return ["made", output.result, output.contiguous, output.view, str(output.device)]
        case Plain() if output.value is None or type(output.value) in (bool, int, float, str):
            return ["plain", output.value]
        case _:
            raise EncodingError(f"it returns {output}")


def _read(entry: Mapping[str, Any]) -> tuple[torch.device, Program]:
    """What `_written` wrote."""
    outputs: list[Output] = []
    for kind, *rest in entry["outputs"]:
        match kind:
            case "given":
                outputs.append(Given(*rest))
            case "made":
                result, contiguous, view, place = rest
                outputs.append(Made(result, contiguous, view, torch.device(place)))
            case _:
                outputs.append(Plain(*rest))
    module = decode(entry["module"], {}, make_context())
    program = Program(module, tuple(entry["arguments"]), entry["seeds"], tuple(outputs), Coverage())
    return torch.device(entry["device"]), program

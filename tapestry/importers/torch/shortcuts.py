"""Graphs of Dynamo's that were compiled before, in this process or another.

    shortcut = find_shortcut(graph, inputs, options)     # None for a graph that has to be traced
    call = shortcut.read()                               # None where it was not compiled before
    follower = Follower(shortcut)                        # keeps it at its first call

AOT autograd makes graphs of core ATen of Dynamo's, and a function around what these are compiled
to: for results that share memory with inputs, for inputs that are written to. Where none of that is
in a graph, the function hands on its arguments and results as they are. Then the program is the
function, or the two programs are that compute the results and the gradients (`gradients`), and
neither is made again. Whether it is so is seen at the first call.
"""

# ruff: noqa: SLF001 (PyTorch says some of it under private names alone)

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from logging import INFO
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import fx

from tapestry.environment import environment, find_current
from tapestry.importers.torch.calling import Runner
from tapestry.importers.torch.descriptions import described
from tapestry.importers.torch.entries import NotWrittenError, read, written
from tapestry.importers.torch.gradients import Division, differentiable
from tapestry.importers.torch.memory import Given, Made, Output, View
from tapestry.importers.torch.options import Options
from tapestry.importers.torch.uses import is_recording
from tapestry.logs import channel
from tapestry.passes._collection import collection_paused
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.threads import thread_count
from tapestry.store import Store, key_of

if TYPE_CHECKING:
    from tapestry.importers.torch.compiling import CompiledGraph, Ready

Compiled: TypeAlias = Callable[..., Any]

KIND = "graphs"
"""The folder of graphs."""


def find_shortcut(
    graph: fx.GraphModule, inputs: Sequence[Any], options: Options
) -> Shortcut | None:
    """Where a graph is kept, or is to be; None where it has to be traced."""
    store = _find_store(options)
    description = None if store is None else described(graph, inputs)
    if store is None or description is None:
        return None
    digest = sha256(json.dumps(description).encode()).hexdigest()
    chosen = [options.on, options.pipeline, options.numerics, options.strict]
    key = key_of({"graph": digest, "options": chosen, "made by": maker()})
    return Shortcut(store, key, options)


def find_named(key: str, options: Options, made_by: str) -> Shortcut | None:
    """The shortcut of a key, as `maker` said when it was made; None where it is not to be read."""
    store = _find_store(options)
    return Shortcut(store, key, options) if store is not None and made_by == maker() else None


def maker() -> str:
    """What identifies that which makes entries: versions and sources, and the machine's cores."""
    machine = [thread_count(), torch.get_num_threads(), native.is_available()]
    return key_of({"environment": dict(environment()), "machine": machine})


def _find_store(options: Options) -> Store | None:
    """Where graphs are kept; None where somebody wants to see how they are compiled."""
    seen = [channel(name).isEnabledFor(INFO) for name in ("passes", "coverage")]
    if options.dump is not None or any(seen) or is_recording():
        return None
    return find_current(KIND)


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
                return self._compiled(entry)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            self.store.say(self.key, f"is no graph: {type(error).__name__}: {error}")
            return None

    def write(self, parts: Sequence[Ready], division: Division) -> bool:
        """Keep a compiled graph: a program, or with gradients the forward and the backward one.

        Whether it is one that is kept.
        """
        try:
            entry = {
                "parts": [written(part.device, part.program, part.prepared) for part in parts],
                "results": division.results,
                "gradients": division.gradients,
            }
        except NotWrittenError as error:
            self.store.say(self.key, f"is not kept: {error}")
            return False
        if find_current(KIND) is None:
            return False
        self.store.write(self.key, entry)
        return True

    def _compiled(self, entry: dict[str, Any]) -> Compiled:
        parts = [read(part, self.options) for part in entry["parts"]]
        division = Division(int(entry["results"]), tuple(map(int, entry["gradients"])))
        return _joined(parts, division)


@dataclass(frozen=True)
class _Part:
    """A graph of core ATen, compiled, and how many inputs it has."""

    compiled: CompiledGraph
    inputs: int


@dataclass(frozen=True)
class _Seen:
    """What a call showed of a graph: how many inputs, and how many tensors for its gradients."""

    division: Division
    inputs: int
    kept: int


class Follower:
    """Watches the first call of a graph, and keeps the graph if its programs are all that runs.

    One with gradients is kept when PyTorch compiles these too: once a gradient is asked for. `kept`
    is called then. From then on, calls are as those of later processes: without AOT autograd's
    function around the programs.
    """

    def __init__(self, shortcut: Shortcut, kept: Callable[[], None]) -> None:
        self._shortcut = shortcut
        self._kept = kept
        self._parts: dict[str, _Part] = {}
        self._call: tuple[Sequence[Any], Sequence[Any]] | None = None
        self._seen: _Seen | None = None
        self._done = False
        self._joined: Compiled | None = None

    def part(self, compiled: CompiledGraph, kind: str, graph: fx.GraphModule) -> Compiled:
        """A part of the graph, which AOT autograd calls: `forward`, `backward` or `inference`."""
        count = sum(node.op == "placeholder" for node in graph.graph.nodes)
        self._parts[kind] = _Part(compiled, count)
        if kind == "backward":
            self._keep()
            return compiled.function
        run = compiled.function

        def call(given: Sequence[Any]) -> tuple[object, ...]:
            if self._done:
                return run(given)
            taken = tuple(given)
            made = run(given)
            self._call = taken, made
            return made

        return call

    def whole(self, compiled: Compiled) -> Compiled:
        """The graph, which Dynamo calls."""

        def call(*given: Any) -> Any:
            if self._joined is not None:
                return self._joined(*given)
            if self._done:
                return compiled(*given)
            versions = _versions(given)
            made = compiled(*given)
            self._done = True
            call, self._call = self._call, None
            self._seen = self._look(given, made, call, changed=versions != _versions(given))
            self._keep()
            return made

        return call

    def _look(
        self,
        given: Sequence[Any],
        made: Sequence[Any],
        call: tuple[Sequence[Any], Sequence[Any]] | None,
        *,
        changed: bool,
    ) -> _Seen | None:
        """What a call of the graph, and one of its program, showed; None where more ran."""
        if call is None or changed or not _same(given, call[0]):
            return self._say("inputs change, or are not those of its programs")
        returned = call[1]
        gradients = tuple(n for n, one in enumerate(made) if _has_history(one))
        seen = _Seen(Division(len(made), gradients), len(given), len(returned) - len(made))
        if "inference" in self._parts:
            if not gradients and _same(made, returned):
                return seen
        elif not all(isinstance(one, torch.Tensor) for one in returned[len(made) :]):
            return self._say("its gradients are of more than tensors")
        elif gradients and _alike(made, returned[: len(made)]):
            return seen
        return self._say("results share memory with inputs or with each other")

    def _keep(self) -> None:
        """Keep the graph, once a call was seen and all of its parts are there."""
        seen, parts = self._seen, list(self._parts.values())
        if seen is None or len(parts) < (2 if seen.division.gradients else 1):
            return
        self._seen = None
        ready = [one for part in parts if (one := part.compiled.only) is not None]
        if len(ready) < len(parts):
            self._say("its sizes are open")
            return
        programs = [one.program for one in ready]
        if len(parts) == 2:
            outputs = programs[0].outputs[: seen.division.results]
            if any(map(_is_alias, outputs)):
                self._say("results share memory with inputs")
                return
            tangents = len(seen.division.gradients)
            own = parts[1].inputs, len(programs[1].outputs)
            if own != (seen.kept + tangents, seen.inputs):
                self._say("its gradients take more than results, or are of more than inputs")
                return
        if self._shortcut.write(ready, seen.division):
            self._joined = _joined([one.function for one in ready], seen.division)
            self._kept()

    def _say(self, reason: str) -> None:
        self._shortcut.store.say(self._shortcut.key, f"is not kept: {reason}")


def _joined(parts: Sequence[Runner], division: Division) -> Compiled:
    """The programs of a graph as the function that Dynamo calls."""
    if division.gradients:
        forward, backward = parts
        return differentiable(forward, backward, division)
    (run,) = parts
    return lambda *given: run(given)


def _is_alias(output: Output) -> bool:
    """Whether an output of a graph shares memory with an input, or with another output."""
    return isinstance(output, Given | View) or (isinstance(output, Made) and output.view)


def _versions(given: Sequence[Any]) -> list[int]:
    """How often each tensor has been written to; a tensor of inference mode does not count it."""
    tensors = (one for one in given if isinstance(one, torch.Tensor) and not one.is_inference())
    return [one._version for one in tensors]


def _same(ones: Sequence[object], others: Sequence[object]) -> bool:
    """Whether these are the same objects."""
    pairs = zip(ones, others, strict=False)
    return len(ones) == len(others) and all(one is other for one, other in pairs)


def _alike(ones: Sequence[object], others: Sequence[object]) -> bool:
    """Whether these are the same objects, or tensors that are the same cells in memory."""
    pairs = zip(ones, others, strict=False)
    return len(ones) == len(others) and all(
        one is other or _place(one) == _place(other) is not None for one, other in pairs
    )


def _place(one: object) -> tuple[object, ...] | None:
    """Where the cells of a tensor are, None of what is no tensor with cells."""
    if not isinstance(one, torch.Tensor) or one.numel() == 0:
        return None
    return one.data_ptr(), one.dtype, one.device, one.shape, one.stride()


def _has_history(one: object) -> bool:
    return isinstance(one, torch.Tensor) and one.grad_fn is not None

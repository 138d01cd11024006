"""A graph of core ATen as a function that runs on Tapestry.

    call = CompiledGraph(graph_module, Options())
    call([torch.ones(2, 3)])        # a tuple, as the graph returns

The graph is imported and lowered once for each choice of its open sizes, when it is first called
with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import fx

from tapestry.caching import lowered
from tapestry.dumping import Dump
from tapestry.importers.torch.calling import OnArrays, Runner
from tapestry.importers.torch.dtypes import as_array
from tapestry.importers.torch.graphs import program_of
from tapestry.importers.torch.options import Options
from tapestry.importers.torch.running import device_of, runner
from tapestry.importers.torch.sizes import OpenSizes, Sizes
from tapestry.logs import channel
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.script import Whole
from tapestry.runtime.program import arguments

_coverage, _recompiles = channel("coverage"), channel("recompiles")

_MANY = 8
"""Choices of sizes after which a warning says what they cost, as many as PyTorch recompiles for."""

_SHOWN = 4
"""Choices of sizes that are named beside a new one."""


@dataclass(frozen=True)
class _Memory:
    """What `program_of` is told of results in memory."""

    views: bool
    seen: int | None


class CompiledGraph:
    """Called with a list of what the graph's placeholders hold."""

    def __init__(
        self,
        graph: fx.GraphModule,
        options: Options,
        name: str = "graph",
        *,
        views: bool = False,
        seen: int | None = None,
    ) -> None:
        """`views` and `seen` are as of `program_of`."""
        self._graph = graph
        self._memory = _Memory(views, seen)
        self._options = options
        self._name = name
        self._open = OpenSizes(graph)
        self._ready: dict[tuple[int, ...], Ready] = {}
        if not self._open:
            self._ready[()] = Ready(graph, Sizes(), options, name, self._memory)

    @property
    def only(self) -> Ready | None:
        """The graph for all calls; None where its sizes are open."""
        return None if self._open else self._ready[()]

    @property
    def function(self) -> Runner:
        """What to call: without a look at sizes where none are open."""
        return self if self._open else self._ready[()].function

    def __call__(self, given: Sequence[Any]) -> tuple[object, ...]:
        """What the graph returns."""
        numbers = self._open.numbers(given)
        ready = self._ready.get(numbers)
        if ready is None:
            sizes = self._open.sizes(numbers)
            self._say(str(sizes))
            name = f"{self._name}_{len(self._ready)}"
            ready = Ready(self._graph, sizes, self._options, name, self._memory)
            self._ready[numbers] = ready
        return ready(given)

    def _say(self, sizes: str) -> None:
        """Say that the graph is compiled again, if it is."""
        count = len(self._ready)
        if count > 0:
            last = [str(self._open.sizes(numbers)) for numbers in list(self._ready)[-_SHOWN:]]
            have = "; ".join(["..."] * (count > _SHOWN) + last)
            _recompiles.info("%s is compiled again, for %s (so far: %s)", self._name, sizes, have)
        if count == _MANY:
            _recompiles.warning(
                "%s was compiled for %d choices of its sizes, and now for %s: programs have fixed "
                "sizes, and each new one costs a compilation; pad inputs to a few sizes",
                self._name,
                count,
                sizes,
            )


class Ready:
    """A graph of fixed sizes, imported and lowered."""

    def __init__(
        self, graph: fx.GraphModule, sizes: Sizes, options: Options, name: str, memory: _Memory
    ) -> None:
        strict = options.strict
        program = program_of(graph, sizes, strict=strict, views=memory.views, seen=memory.seen)
        for line in str(program.coverage).splitlines():
            _coverage.info("%s: %s", name, line)
        device = device_of(graph)
        on = options.executor(device.type)
        pipeline = options.pipeline or ("weft-apply" if on == "reference" else "default")
        self._dump = None if options.dump is None else Dump(Path(options.dump) / name)
        module = lowered(program.module, pipeline, dump=self._dump, verify_each=False)
        program = replace(program, module=module)
        if self._dump is not None:
            self._dump.finish(program.module, on=on, pipeline=pipeline)
        self.device, self.program = device, program
        self._run = runner(
            program,
            device,
            on,
            options.numerics,
            graphs=options.graphs,
            fallback=options.fallback,
        )

    @property
    def prepared(self) -> Whole | None:
        """What runs, where that is a prepared program."""
        run = self._run.run if isinstance(self._run, OnArrays) else None
        return run.run if isinstance(run, PreparedProgram) else None

    @property
    def function(self) -> Runner:
        """What to call: the program itself where nothing comes before or after."""
        alone = self._dump is None and self.program.aftermath is None
        return self._run if alone else self

    def __call__(self, given: Sequence[Any]) -> tuple[object, ...]:
        if self._dump is not None:
            named = zip(self.program.arguments, arguments(self.program.module), strict=False)
            held = {argument.name: as_array(given[position].cpu()) for position, argument in named}
            self._dump.inputs(held)
        made = self._run(given)
        after = self.program.aftermath
        return made if after is None else after.of(made)

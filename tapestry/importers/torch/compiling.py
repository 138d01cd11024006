"""A graph of core ATen as a function that runs on Tapestry.

    call = CompiledGraph(graph_module, Options())
    call([torch.ones(2, 3)])        # a tuple, as the graph returns

The graph is imported and lowered once for each choice of its open sizes, when it is first called
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import fx
from xdsl.dialects.builtin import ModuleOp

from tapestry.dumping import Dump
from tapestry.frontend import run_pipeline
from tapestry.importers.torch.dtypes import as_array
from tapestry.importers.torch.graphs import program_of
from tapestry.importers.torch.memory import returned
from tapestry.importers.torch.options import Options
from tapestry.importers.torch.sizes import OpenSizes, Sizes
from tapestry.logs import channel
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.program import arguments

_coverage, _recompiles = channel("coverage"), channel("recompiles")


class CompiledGraph:
    """Called with a list of what the graph's placeholders hold."""

    def __init__(self, graph: fx.GraphModule, options: Options, name: str = "graph") -> None:
        self._graph = graph
        self._options = options
        self._name = name
        self._open = OpenSizes(graph)
        self._ready: dict[Sizes, _Ready] = {}
        if not self._open:
            self._ready[Sizes()] = _Ready(graph, Sizes(), options, name)

    def __call__(self, given: Sequence[Any]) -> tuple[object, ...]:
        """What the graph returns."""
        sizes = self._open.of(given)
        ready = self._ready.get(sizes)
        if ready is None:
            if self._ready:
                have = "; ".join(map(str, self._ready))
                _recompiles.info(
                    "%s is compiled again, for %s (so far: %s)", self._name, sizes, have
                )
            name = f"{self._name}_{len(self._ready)}"
            ready = self._ready[sizes] = _Ready(self._graph, sizes, self._options, name)
        return ready(given)


class _Ready:
    """A graph of fixed sizes, imported and lowered."""

    def __init__(self, graph: fx.GraphModule, sizes: Sizes, options: Options, name: str) -> None:
        program = program_of(graph, sizes, strict=options.strict)
        for line in str(program.coverage).splitlines():
            _coverage.info("%s: %s", name, line)
        on = options.on or "numpy"
        pipeline = options.pipeline or ("weft-apply" if on == "reference" else "default")
        self._dump = None if options.dump is None else Dump(Path(options.dump) / name)
        run_pipeline(program.module, pipeline, dump=self._dump, verify_each=False)
        if self._dump is not None:
            self._dump.finish(program.module, on=on, pipeline=pipeline)
        self._program = program
        self._run = prepare(program.module, on, options.numerics)

    def __call__(self, given: Sequence[Any]) -> tuple[object, ...]:
        program = self._program
        inputs = [as_array(given[position]) for position in program.arguments]
        if program.seeds:
            # A draw from PyTorch's generator, so that its seed makes runs repeatable.
            drawn = torch.randint(-(1 << 63), (1 << 63) - 1, (program.seeds,))
            inputs += [as_array(seed) for seed in drawn.unbind()]
        if self._dump is not None:
            names = (argument.name for argument in arguments(program.module))
            self._dump.inputs(dict(zip(names, inputs, strict=True)))
        return returned(program.outputs, given, inputs, self._run(inputs))


def prepare(
    module: ModuleOp, on: str, numerics: str
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A lowered program as a function of arrays in the order of its arguments."""
    if on == "numpy":
        return PreparedProgram(module)
    executor = find_executor(on)
    if on == "triton":
        from tapestry.runtime.triton_executor import TritonExecutor

        executor = TritonExecutor(numerics=numerics)
    names = [argument.name for argument in arguments(module)]
    return lambda inputs: (
        executor.run(module, dict(zip(names, inputs, strict=True)), NoWatch()).outputs
    )

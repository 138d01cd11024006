"""The backend of `torch.compile`.

    torch.compile(model, backend="tapestry")
    torch.compile(model, backend="tapestry", options={"on": "triton", "numerics": "fast"})

AOT autograd traces the forward and the backward graph in core ATen; each becomes a program, which
the pipeline rewrites once and an executor runs at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import fx
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd

from tapestry.frontend import run_pipeline
from tapestry.importers.torch.dtypes import as_array, as_tensor
from tapestry.importers.torch.graphs import Program, program_of
from tapestry.importers.torch.options import Options
from tapestry.runtime.program import arguments
from tapestry.runtime.running import run


def backend(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: dict[str, object] | None = None,
    **_: object,
) -> Callable[..., Any]:
    """Compile a graph of Dynamo's, forward and backward."""
    chosen = Options.of(options or {})

    def compile_graph(aten: fx.GraphModule, _: Sequence[Any]) -> Compiled:
        return Compiled.of(aten, chosen)

    compiler = aot_autograd(fw_compiler=compile_graph, decompositions=core_aten_decompositions())
    return compiler(graph, inputs)


@dataclass(frozen=True)
class Compiled:
    """A graph that runs on Tapestry: called with a list of what its placeholders hold."""

    program: Program
    names: tuple[str, ...]
    options: Options

    _boxed_call: ClassVar[bool] = True  # says to AOT autograd that arguments come in a list

    @staticmethod
    def of(graph: fx.GraphModule, options: Options) -> Compiled:
        """Import a graph of core ATen and run the pipeline."""
        program = program_of(graph)
        run_pipeline(program.module, options.pipeline)
        names = tuple(argument.name for argument in arguments(program.module))
        return Compiled(program, names, options)

    def __call__(self, given: Sequence[Any]) -> tuple[object, ...]:
        """What the graph returns."""
        taken = (as_array(given[position]) for position in self.program.arguments)
        inputs = dict(zip(self.names, taken, strict=True))
        made = run(self.program.module, inputs, on=self.options.on).outputs
        return tuple(
            output.value if output.position is None else as_tensor(made[output.position])
            for output in self.program.outputs
        )

"""The triton executor: lower, print, import and run, on a GPU or on the CPU.

With PyTorch and a GPU, kernels are compiled and run there. Otherwise Triton's interpreter runs the
same kernels on NumPy arrays, without PyTorch. Either way what runs is the module that
`tapestry-opt -p loom-to-triton -t triton` prints; on the CPU with larger tiles, because the
interpreter pays per operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.caching import kept
from tapestry.codegen.aot import prepare_compiling
from tapestry.codegen.aot_ahead import compiling_ahead
from tapestry.codegen.launches import Follow
from tapestry.codegen.module_files import load_kernels, write_module
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.refusals import Asked, Refusals
from tapestry.logs import channel
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.choosing import never
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.runtime.constants import as_arguments
from tapestry.runtime.executor import Array, Result, Watch
from tapestry.runtime.program import arguments, main_function, outputs
from tapestry.runtime.triton.arrays import as_pairs, from_pairs
from tapestry.runtime.triton.assertions import block_errors
from tapestry.runtime.triton.compiled import compilers
from tapestry.runtime.triton.devices import Device, PrintedProgram, find_device
from tapestry.runtime.triton.following import (
    Following,
    Observer,
    launched,
    observed,
    observed_externals,
    records_of,
)
from tapestry.runtime.triton.ladder import Ladder


@dataclass(frozen=True)
class TritonExecutor:
    """Runs programs as Triton kernels.

    `device` says where; None is the GPU when there is one, else the CPU. `tile` is the most cells
    of a tile; None is what suits the device. `numerics` is that of `loom-to-triton`. `fallback`
    allows the numpy executor for a program that the GPU does not run; with `graphs`, a program that
    is called again is replayed as a CUDA graph.
    """

    device: Device | None = None
    tile: int | None = None
    numerics: str = "mixed"
    fallback: bool = True
    graphs: bool = False

    @property
    def name(self) -> str:
        """The executor's name."""
        return "triton"

    def printed(
        self,
        module: ModuleOp,
        device: Device,
        rungs: Mapping[str, Rung] | None = None,
        refused: Refusals | None = None,
    ) -> PrintedProgram:
        """@main of a module in the loom dialect, lowered and printed; the module stays as it is.

        `rungs` and `refused` are as in `LoomToTriton.lower`.
        """
        lowered, constants = self.lowered(module, device, rungs, refused)
        made = print_module(lowered)
        path = write_module(made.source)
        for kernel in made.kernels:
            channel("kernels").info("%s is in %s", kernel.name, path)
        return PrintedProgram(lowered, path, made.kernels, constants, refused)

    def lowered(
        self,
        module: ModuleOp,
        device: Device,
        rungs: Mapping[str, Rung] | None = None,
        refused: Refusals | None = None,
    ) -> tuple[ModuleOp, list[Array]]:
        """@main lowered to Triton, and the constants that it takes after its arguments.

        Where something else is known to be refused than when it was kept, it is made anew; where
        it is made, the processes that compile its kernels are started first.
        """
        lowered = module.clone()
        constants = as_arguments(main_function(lowered))
        tile = self.tile or device.tile
        lowering = LoomToTriton(tile=tile, numerics=self.numerics, device=device.model)
        asked = None if refused is None else Asked(refused)

        def make(program: ModuleOp) -> None:
            with ExitStack() as stack:
                made = None
                if device.capability is not None:
                    prepare_compiling(len(main_function(program).body.block.ops), compilers())
                    ahead = compiling_ahead([device.capability], compilers())
                    made = stack.enter_context(ahead)
                lowering.lower(Context(), program, refused=asked or never, rungs=rungs, made=made)

        if rungs:
            make(lowered)
        else:
            spec = lowering.spec(include_default=True)
            lowered = kept(lowered, [spec], make, asked=asked)
        return lowered, constants

    def run(self, module: ModuleOp, inputs: Mapping[str, Array], watch: Watch) -> Result:
        """Run @main of a module in the loom dialect."""
        device = self.device or find_device()
        if device.capability is not None:
            return self._compiled(module, inputs, watch, device)
        names = [argument.name for argument in arguments(module)]
        printed = self.printed(module, device)
        launches = launched(printed.lowered)
        with device.session(), block_errors():
            kernels = load_kernels(printed.path)
            observer = Observer(launches, device, watch)
            launch = observed(kernels, [one.name for one in printed.kernels], observer)
            taken = (
                as_pairs(array) for array in (*(inputs[name] for name in names), *printed.constants)
            )
            given = [device.put(array) for array in taken]
            known = launch.__kwdefaults__ or {}
            own = {k: v for k, v in device.functions().items() if k in known}
            called = observed_externals(module, device.target, observer)
            own |= {"externals": called} if called else {}
            made = launch(*given, **own)
            kinds = [numpy_dtype(kind.element_type) for kind in outputs(module)]
            results = [made] if len(kinds) == 1 else list(made)
            arrays = tuple(
                from_pairs(device.get(result), dtype)
                for result, dtype in zip(results, kinds, strict=True)
            )
        return Result(arrays, records_of(launches))

    def _compiled(
        self, module: ModuleOp, inputs: Mapping[str, Array], watch: Watch, device: Device
    ) -> Result:
        """Run @main where kernels are compiled; each step is waited for, to see what it takes."""
        followed: list[Following] = []

        def following(program: PrintedProgram) -> Follow:
            followed.append(Following(program, device, watch))
            return followed[-1]

        run = Ladder(module, self, device)
        arrays = run.on_arrays([inputs[one.name] for one in arguments(module)], following)
        if run.numpy_ran is not None:
            return Result(tuple(arrays), tuple(run.numpy_ran))
        return Result(tuple(arrays), followed[-1].records())

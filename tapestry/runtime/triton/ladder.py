"""A program on a device that may refuse parts of it: each kernel with as much care as it needs.

    run = Ladder(module, executor, device)
    (y,) = run([x, w])

A kernel that does not compile, does not fit the GPU, or whose launch is refused is made again on
the next rung of `tapestry.passes.triton.schedules.rungs`, and only it. Where no rung is left, or
memory is short, the program runs on the numpy executor if the executor allows it. What happened is
said once, on the channel `fallbacks`, which is on by default: which operation, why, and what can be
done.

A result is right or there is none: a launch that failed in a way that may have left wrong cells, or
after which a GPU is of no use, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.codegen.aot_jobs import CompileError
from tapestry.codegen.climbing import HINT, Climbing, say
from tapestry.codegen.driver import DriverError, LoadError, MemoryShortError
from tapestry.codegen.launches import Calls, Follow, Launches
from tapestry.codegen.refusals import find_refusals
from tapestry.codegen.replay import Replayed
from tapestry.diagnostics import InvalidProgramError, Location, TapestryError
from tapestry.dialects import loom
from tapestry.locations import location_of
from tapestry.passes.triton.loom_to_triton import NO_DEVICE
from tapestry.runtime.executor import Array, NoWatch, Record, find_executor
from tapestry.runtime.externals import (
    Implementation,
    Parameters,
    call_external,
    find_external,
)
from tapestry.runtime.program import arguments, main_function, outputs
from tapestry.runtime.triton.arrays import as_pairs, from_pairs
from tapestry.runtime.triton.assertions import block_errors
from tapestry.runtime.triton.compiled import GpuError, RefusedError, gpu_errors
from tapestry.runtime.triton.devices import Device, PrintedProgram, Ready

if TYPE_CHECKING:
    from tapestry.runtime.triton.executor import TritonExecutor

REFUSED = {1, 200, 209, 218, 222, 701}
"""CUDA's codes of launches that did not begin: a value or a cubin that does not fit, resources."""

_FREE = "free memory on the GPU, or split the program (loom-shard)"


class Ladder:
    """@main of a module in loom on a device: called with its tensors, constants included."""

    def __init__(self, module: ModuleOp, executor: TritonExecutor, device: Device) -> None:
        self._module = module
        self._executor = executor
        self._device = device
        self._calls: Calls = {}
        self._climbing = Climbing(module, device.model)
        self._untold = False
        self._lock = RLock()
        self.program: PrintedProgram
        self._constants: list[Any] = []
        self._run: Ready | None = None
        self._given_up: CompileError | GpuError | None = None
        self.numpy_ran: Sequence[Record] | None = None
        """What the numpy executor ran last, if it ever ran."""
        try:
            self._calls = _calls(module, device)
        except InvalidProgramError as error:
            if device.target == "numpy":
                raise
            self._give_up(GpuError(error.message, hint=error.hint))
        else:
            self._prepare()

    def __call__(
        self, tensors: Sequence[Any], following: Callable[[PrintedProgram], Follow] | None = None
    ) -> list[Any]:
        """The results, on the device; `following` makes what follows the steps of a program."""
        while True:
            run = self._run
            if run is None:
                if self._given_up is not None and not self._executor.fallback:
                    raise self._given_up
                self._check_capturing("why was said when it was prepared", None)
                return self._on_numpy(tensors)
            follow = None if following is None else following(self.program)
            try:
                made = run([*tensors, *self._constants], follow=follow)
            except MemoryShortError as error:
                self._check_capturing(str(error), _FREE)
                self._say_numpy(str(error), _FREE)
                return self._on_numpy(tensors)
            except DriverError as error:
                with self._lock:
                    if self._run is run:  # else another thread has prepared it again
                        self._refused(error)
            else:
                if self._untold:
                    self._untold = False
                    self._climbing.tell()
                return made

    def on_arrays(
        self, inputs: Sequence[Array], following: Callable[[PrintedProgram], Follow] | None = None
    ) -> list[Array]:
        """The results as arrays, from an array per argument."""
        device = self._device
        kinds = [numpy_dtype(kind.element_type) for kind in outputs(self._module)]
        try:
            with device.session(), block_errors(), gpu_errors():
                made = self([device.put(as_pairs(array)) for array in inputs], following)
                pairs = zip(made, kinds, strict=True)
                return [from_pairs(device.get(result), kind) for result, kind in pairs]
        except MemoryShortError as error:
            self._say_numpy(str(error), _FREE)
            return self._arrays(inputs)

    def _prepare(self) -> None:
        """Make the program ready, on the rungs that it needs, with schedules that compile well."""
        model = self._device.model
        refusals = None if model == NO_DEVICE else find_refusals(model)
        rungs = self._climbing.rungs
        while True:
            self.program = self._executor.printed(self._module, self._device, rungs, refusals)
            try:
                with self._device.session(), gpu_errors():
                    run = self._device.prepared(self.program, self._calls)
                    if self._executor.graphs and isinstance(run, Launches):
                        run = Replayed(run, _no_graph)
                    cells = map(as_pairs, self.program.constants)
                    self._constants = [self._device.put(array) for array in cells]
            except RefusedError:
                continue
            except CompileError as error:
                program = self.program
                if refusals is not None and refusals.learn_miscompiled(
                    program.lowered, program.kernels, error
                ):
                    continue
                if not self._climb(error.kernels):
                    why, hint = self._why(error.kernels, error), error.hint or HINT
                    self._give_up(CompileError(why, error.kernels, hint=hint))
                    return
            except GpuError as error:
                refused = dict.fromkeys(error.kernels, error.message)
                if not self._climb(refused):
                    hint = error.hint or (HINT if refused else None)
                    self._give_up(GpuError(self._why(refused, error), hint=hint))
                    return
            except LoadError as error:
                hint = _FREE if isinstance(error, MemoryShortError) else None
                self._give_up(GpuError(str(error), hint=hint))
                return
            else:
                self._run = run
                return

    def _refused(self, error: DriverError) -> None:
        """Prepare again without what was refused; GpuError where that is not safe."""
        if error.code not in REFUSED or error.kernel is None:
            raise GpuError(
                str(error),
                hint="the GPU's state is lost with such an error: start the process again"
                if error.is_lasting
                else "run it on numpy where this stays so",
            ) from error
        refused = {error.kernel: str(error)}
        if not self._climb(refused):
            self._give_up(GpuError(self._why(refused, error), hint=HINT))
        else:
            self._prepare()

    def _climb(self, refused: Mapping[str, str]) -> bool:
        """Take the operations of some kernels a rung further; whether there was one."""
        program = self.program
        moved = self._climbing.climb(program.lowered, program.kernels, refused)
        self._untold |= moved
        return moved

    def _why(self, refused: Mapping[str, str], error: Exception) -> str:
        """What is wrong where no rung is left."""
        if refused:
            program = self.program
            return self._climbing.spent(program.lowered, program.kernels, refused)
        return error.message if isinstance(error, TapestryError) else str(error)

    def _give_up(self, error: CompileError | GpuError) -> None:
        """Leave the program to the numpy executor, if that is allowed."""
        self._run = None
        self._given_up = error
        if not self._executor.fallback:
            raise error
        self._say_numpy(error.message, error.hint)

    def _say_numpy(self, why: str, hint: str | None) -> None:
        what = f"the program does not run on the GPU: {why}"
        if not self._executor.fallback:
            raise GpuError(what, hint=hint)
        say(what, "it runs on numpy, slowly", hint)

    def _check_capturing(self, why: str, hint: str | None) -> None:
        """GpuError where numpy would compute what is to be in a CUDA graph, which holds none."""
        if self._device.is_capturing():
            what = f"the program does not run on the GPU: {why}"
            raise GpuError(f"{what}; a CUDA graph holds nothing that numpy computes", hint=hint)

    def _on_numpy(self, tensors: Sequence[Any]) -> list[Any]:
        """The results by the numpy executor, taken from the device and brought to it."""
        device = self._device
        kinds = [numpy_dtype(one.type.element_type) for one in arguments(self._module)]
        pairs = zip(tensors, kinds, strict=True)
        given = [from_pairs(device.get(tensor), kind) for tensor, kind in pairs]
        return [device.put(as_pairs(array)) for array in self._arrays(given)]

    def _arrays(self, given: Sequence[Array]) -> list[Array]:
        """The results by the numpy executor."""
        named = dict(zip([one.name for one in arguments(self._module)], given, strict=True))
        result = find_executor("numpy").run(self._module, named, NoWatch())
        self.numpy_ran = result.records
        return list(result.outputs)


def _no_graph(why: str) -> None:
    say(
        f"the program is not replayed as a CUDA graph: {why}",
        "its kernels are launched one by one",
        "leave out `graphs`",
    )


def _calls(module: ModuleOp, device: Device) -> Calls:
    """What external kernels of @main are on a device; InvalidProgramError for what is not there."""
    calls: dict[str, Callable[[Sequence[Any], Sequence[Any], Parameters], None]] = {}
    for op in main_function(module).body.block.ops:
        if isinstance(op, loom.ExternalOp):
            name, location = op.callee.data, location_of(op)
            found = find_external(name, device.target, location)
            calls[name] = partial(_call, name, found, location)
    return calls


def _call(
    name: str,
    found: Implementation,
    location: Location | None,
    ins: Sequence[Any],
    outs: Sequence[Any],
    parameters: Parameters,
) -> None:
    call_external(name, found, ins, outs, parameters, location)

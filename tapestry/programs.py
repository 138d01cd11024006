"""A program that can be run: a module, how it is to be rewritten, and where it runs.

    >>> import numpy as np
    >>> import tapestry
    >>> x = tapestry.input("x", (2, 3), "float32")
    >>> program = tapestry.compile(x.sum(axis=1) / 3)
    >>> program(x=np.ones((2, 3), np.float32))
    array([1., 1.], dtype=float32)
    >>> program
    <program (x: float32[2, 3]) -> float32[2], on numpy>

`tapestry.save` writes the module as text and large constants beside it; `tapestry.load` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec, ParameterListType
from xdsl.utils.exceptions import ParseError

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.caching import lowered
from tapestry.diagnostics import UsageError
from tapestry.dialects.loom import TensorType
from tapestry.dumping import Dump
from tapestry.frontend import load_module, syntax_error
from tapestry.importers.arrays import array_of, like_given
from tapestry.movement_log import log_plan
from tapestry.passes.loom.outline import inlined
from tapestry.pipelines import pass_specs
from tapestry.runtime.executor import Array, NoWatch, Result, Watch, find_executor
from tapestry.runtime.fitting import fit_to, own_outputs
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.program import Argument, InputError, arguments, outputs
from tapestry.saving import save_module

if TYPE_CHECKING:
    from tapestry.runtime.prepared.kernels import PreparedKernels

PLAIN = "weft-apply"
"""The pipeline of the reference executor: nothing but what it needs."""


class Program:
    """A module in weft or loom, and how it runs.

    Called with arrays, by the names of the inputs or in their order, it returns arrays of the same
    kind: one for a program of one output, else a tuple. Lowering happens once, when it is needed.
    """

    def __init__(
        self,
        module: ModuleOp,
        *,
        on: str = "numpy",
        pipeline: str | None = None,
        single: bool | None = None,
        dump: str | Path | None = None,
        tune: float | None = None,
    ) -> None:
        """`pipeline` is `default` unless given (weft-apply alone for the reference executor).

        `tune` are seconds to measure schedules of kernels for, on a GPU; 0 uses what was measured
        before. `dump` is a folder to write each step to (`tapestry.dumping`).
        """
        self.module = module
        self.on = find_executor(on).name
        self.pipeline = (
            (PLAIN if on == "reference" else "default") if pipeline is None else pipeline
        )
        pass_specs(self.pipeline)
        self.single = len(outputs(module)) == 1 if single is None else single
        self.dump = None if dump is None else Dump(dump)
        self.tune = tune

    @cached_property
    def lowered(self) -> ModuleOp:
        """The module that runs: the program after its pipeline."""
        module = lowered(self.module.clone(), self.pipeline, dump=self.dump)
        if self.tune is not None:
            from tapestry.tuning.programs import tune_program

            tune_program(module, self.tune)
        log_plan(module)
        if self.dump is not None:
            self.dump.finish(module, on=self.on, pipeline=self.pipeline)
        return module

    def __call__(self, *arrays: object, **named: object) -> Any:
        if self._is_prepared and not (arrays and named):
            if not named and (made := self._prepared.run.of_alike(arrays)) is not None:
                return self.arranged(made)
            exact = self._exact(self._in_order(named) if named else arrays)
            if exact is not None:
                return self.arranged(self._prepared.own(exact))
        given = self._given(arrays, named)
        return self.returned(self.result(given), list(given.values()))

    def run(self, inputs: Mapping[str, object], watch: Watch | None = None) -> Result:
        """Outputs as NumPy arrays on memory of their own, and what ran."""
        fitted = fit_to(self._arguments, self._arrays(inputs))
        if self.dump is not None:
            self.dump.inputs(fitted)
        made = find_executor(self.on).run(self.lowered, fitted, watch or NoWatch())
        return Result(own_outputs(made.outputs, fitted.values()), made.records)

    def result(self, inputs: Mapping[str, object]) -> Result:
        """Outputs as those of `run`, without records, of a program that is prepared once."""
        if self.on == "triton" and self.dump is None:
            fitted = fit_to(self._arguments, self._arrays(inputs))
            given = [fitted[name] for name in self._kinds]
            return Result(own_outputs(self._kernels(given), given), ())
        if not self._is_prepared:
            return self.run(inputs)
        exact = self._exact(self._in_order(inputs))
        if exact is None:
            fitted = fit_to(self._arguments, self._arrays(inputs), contiguous=False)
            exact = [fitted[name] for name in self._kinds]
        return Result(self._prepared.own(exact), ())

    @cached_property
    def _prepared(self) -> PreparedProgram:
        return PreparedProgram(inlined(self.lowered))

    @cached_property
    def _kernels(self) -> PreparedKernels:
        from tapestry.runtime.prepared.kernels import PreparedKernels  # which takes a while

        return PreparedKernels(self.lowered)

    @property
    def _is_prepared(self) -> bool:
        """Whether calls are those of a program that is prepared once, on NumPy."""
        return self.on == "numpy" and self.dump is None

    def _in_order(self, inputs: Mapping[str, object]) -> Sequence[object] | None:
        """The inputs in the order of the arguments; None unless they are just those."""
        if inputs.keys() != self._kinds.keys():
            return None
        return [inputs[name] for name in self._kinds]

    def _exact(self, values: Sequence[object] | None) -> Sequence[Array] | None:
        """The arrays of a call, in order, if they are as the program takes them: most are.

        To look at no more is most of what a call on few cells takes beside its functions.
        """
        if values is None or len(values) != len(self._signature):
            return None
        for value, (dtype, shape) in zip(values, self._signature, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                return None
        return cast("Sequence[Array]", values)

    def _arrays(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        return {name: self._converted(name, value) for name, value in inputs.items()}

    def returned(self, result: Result, given: Sequence[object]) -> Any:
        """The outputs, of the kind of the arrays that were given."""
        return self.arranged(like_given(result.outputs, given))

    def arranged(self, arrays: Sequence[Any]) -> Any:
        """The outputs as a call gives them."""
        return arrays[0] if self.single else tuple(arrays)

    def explain(self) -> str:
        """Why the lowered program is in as many pieces as it is."""
        from tapestry.explaining import explain  # which takes what most passes are made of

        return "\n".join(explain(self.lowered))

    def kernels(self, device: str | None = None) -> str:
        """The Triton kernels of the program, as a Python module.

        They have the schedules that are chosen for a device (`h200`, `sm_90`, a file): for the GPU
        that is here where none is named, and for Hopper where there is none.
        """
        from tapestry.codegen.kernels import USUAL_DEVICE, kernel_source  # seldom needed
        from tapestry.passes.triton.loom_to_triton import NO_DEVICE
        from tapestry.runtime.triton.devices import find_device

        if device is None:
            here = find_device(quiet=True).model
            device = USUAL_DEVICE if here == NO_DEVICE else here
        return kernel_source(self.lowered, device)

    def sharded(self, **options: int | str | Sequence[int]) -> Program:
        """The same program with its operations split, as `loom-shard` takes its options.

        Raises UsageError for a value that is no option; lowering, for one that the pass refuses.
        """
        values = {name: _option(name, one) for name, one in options.items()}
        split = copy(self)
        for made in ("lowered", "_prepared", "_kernels"):
            split.__dict__.pop(made, None)
        split.pipeline = f"{self.pipeline},{ArgSpec('loom-shard', values)}"
        return split

    def __repr__(self) -> str:
        given = ", ".join(f"{a.name}: {_shown(a.type)}" for a in arguments(self.module))
        returned = ", ".join(map(_shown, outputs(self.module)))
        return f"<program ({given}) -> {returned}, on {self.on}>"

    @cached_property
    def _kinds(self) -> dict[str, np.dtype[Any]]:
        return {a.name: numpy_dtype(a.type.element_type) for a in self._arguments}

    @cached_property
    def _signature(self) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
        """The dtypes and shapes of the inputs."""
        return [(self._kinds[a.name], a.type.box.shape) for a in self._arguments]

    @cached_property
    def _arguments(self) -> tuple[Argument, ...]:
        return arguments(self.module)

    def _given(self, arrays: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
        """Arrays by name, those given in order first."""
        if len(arrays) > len(self._kinds):
            raise InputError(
                f"{len(arrays)} array{'s are' if len(arrays) > 1 else ' is'} given",
                hint=f"the program takes {', '.join(self._kinds) or 'none'}",
            )
        given: dict[str, object] = dict(zip(self._kinds, arrays, strict=False))
        for name, value in named.items():
            if name in given:
                raise InputError(f"{name} is given twice, in order and by name")
            given[name] = value
        return given

    def _converted(self, name: str, value: object) -> Array:
        """Numbers of Python have no dtype of their own: they take the input's."""
        try:
            array, dtype = array_of(value), self._kinds.get(name)
        except ValueError as error:
            raise InputError(f"the input {name}: {error}") from None
        if dtype is not None and isinstance(value, bool | int | float):
            return array.astype(dtype)
        return array


def save(program: ModuleOp | Program, path: str | Path) -> None:
    """Write a program to `path` (`model.mlir`), and its larger constants to `model.npz` beside it.

    Both appear whole or not at all. Raises UsageError where they cannot be written.
    """
    save_module(program.module if isinstance(program, Program) else program, Path(path))


def load(path: str | Path, *, on: str = "numpy", pipeline: str | None = None) -> Program:
    """The program in a file, verified; an error says what is wrong with it, and where."""
    try:
        module = load_module(path)
    except ParseError as error:
        raise syntax_error(error) from error
    return Program(module, on=on, pipeline=pipeline)


def _option(name: str, value: object) -> ParameterListType:
    """An option as passes take it; UsageError for what is neither text nor whole numbers."""
    given = cast("Sequence[object]", value if isinstance(value, list | tuple) else [value])
    plain = [int(cast(int, one)) if isinstance(one, np.integer) else one for one in given]
    for one in plain:
        if not isinstance(one, int | str) or isinstance(one, bool):
            raise UsageError(
                f"{name} cannot be {value!r}", hint="whole numbers, a list of them, or text"
            )
    return cast(ParameterListType, tuple(plain))


def _shown(kind: TensorType) -> str:
    shape = ", ".join(map(str, kind.box.shape))
    return f"{numpy_dtype(kind.element_type)}[{shape}]"

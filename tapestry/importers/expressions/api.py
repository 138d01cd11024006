"""`tapestry.input`, `run`, `compile`, `shard`, `explain`, `save`: expressions as programs.

    >>> import numpy as np
    >>> x = input("x", (2, 2), "float32")
    >>> y = x @ x + 1
    >>> run(y, x=np.eye(2, dtype=np.float32))
    array([[2., 1.],
           [1., 2.]], dtype=float32)
    >>> run({"y": y, "least": y.min()}, x=np.eye(2, dtype=np.float32))["least"]
    array(1., dtype=float32)

Each takes expressions (one, or a list, tuple or dictionary of them), a module or a `Program`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast, overload

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry import explaining, programs
from tapestry.diagnostics import UsageError
from tapestry.importers.building import dtype_name, kind_of
from tapestry.importers.expressions.functions import as_expression, dtype_of
from tapestry.importers.expressions.lowering import module_of
from tapestry.importers.expressions.nodes import Expression, Input, caller
from tapestry.programs import Program
from tapestry.runtime import running
from tapestry.runtime.executor import Array, Result, Watch

Expressions: TypeAlias = "Expression | Sequence[Expression] | Mapping[str, Expression]"
Programs: TypeAlias = "Expressions | Program | ModuleOp"


def input(  # noqa: A001 - it is read as tapestry.input
    name: str, shape: Sequence[int] | int, dtype: object = "float32"
) -> Expression:
    """A tensor that is given when the program runs, under `name`.

    `dtype` is NumPy's or its name, PyTorch's, or as in programs (`bf16`). Raises UsageError for a
    name, shape or dtype that no tensor has.
    """
    place = caller()
    given = cast(object, (shape,) if isinstance(shape, int) else shape)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise UsageError(
            f"{name} cannot have the shape {shape!r}", location=place, hint="a tuple of sizes"
        )
    sizes = tuple(cast("Sequence[object]", given))
    if not isinstance(cast(object, name), str) or not name.isidentifier():
        raise UsageError(
            f"an input cannot be named {name!r}",
            location=place,
            hint="letters, digits and underscores; it is given as an argument",
        )
    if not all(map(_is_size, sizes)):
        raise UsageError(f"{name} cannot have the shape {sizes}", location=place)
    try:
        element = dtype_name(dtype_of(dtype))
    except (TypeError, ValueError):
        raise UsageError(f"there are no tensors of {dtype!r}", location=place) from None
    kind = kind_of([int(cast(int, size)) for size in sizes], element)
    return Expression(Input(name, kind, place))


def _is_size(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return int(cast(int, value)) >= 0


def constant(cells: object) -> Expression:
    """An array, a number or nested lists of numbers, as an expression."""
    return as_expression(cells)


@overload
def run(
    program: ModuleOp,
    inputs: Mapping[str, Array],
    /,
    *,
    on: str = "numpy",
    watch: Watch | None = None,
) -> Result: ...


@overload
def run(
    program: Expressions | Program,
    inputs: Mapping[str, object] | None = None,
    /,
    *,
    on: str = "numpy",
    pipeline: str | None = None,
    watch: Watch | None = None,
    **arrays: object,
) -> Any: ...


def run(
    program: Programs,
    inputs: Mapping[str, Any] | None = None,
    /,
    *,
    on: str = "numpy",
    pipeline: str | None = None,
    watch: Watch | None = None,
    **arrays: object,
) -> Any:
    """Compute expressions, or run a program.

    Inputs are given by name, or as a mapping (which a name such as `on` needs). What comes back has
    the structure of what was asked for: an array, a list, a tuple or a dictionary of arrays, of
    NumPy, or of PyTorch where a tensor was given. For a module, which must be in loom, the result
    also says what ran.
    """
    if inputs is not None and not isinstance(cast(object, inputs), Mapping):
        raise UsageError(
            f"inputs are given by name, not as a {type(cast(object, inputs)).__name__}",
            location=caller(),
            hint="tapestry.run(y, x=images), or tapestry.run(y, {'x': images})",
        )
    given: dict[str, Any] = {**(inputs or {}), **arrays}
    if isinstance(program, ModuleOp):
        if pipeline is not None:
            raise UsageError("a module runs as it is", hint="tapestry.run_pipeline rewrites it")
        return running.run(program, given, on=on, watch=watch)
    for option, value in {"on": on, "pipeline": pipeline}.items():
        if not isinstance(cast(object, value), str | None):
            raise UsageError(
                f"{option} is {type(value).__name__}, and must be text",
                location=caller(),
                hint=f"an input that is named {option} is given in a mapping: "
                f"tapestry.run(program, {{{option!r}: array}})",
            )
    compiled = compile(program, on=on, pipeline=pipeline)
    result = compiled.result(given) if watch is None else compiled.run(given, watch)
    return compiled.returned(result, list(given.values()))


class StructuredProgram(Program):
    """A program whose results are put back into the structure of its expressions."""

    def __init__(
        self, module: ModuleOp, expressions: Expressions, on: str, pipeline: str | None
    ) -> None:
        super().__init__(module, on=on, pipeline=pipeline, single=False)
        self.structure = expressions

    def arranged(self, arrays: Sequence[Any]) -> Any:
        results = tuple(arrays)
        match self.structure:
            case Expression():
                return results[0]
            case Mapping():
                return dict(zip(self.structure, results, strict=True))
            case list():
                return list(results)
            case _:
                return results


def compile(  # noqa: A001 - it is read as tapestry.compile
    program: Programs,
    *,
    on: str = "numpy",
    pipeline: str | None = None,
    tune: float | None = None,
) -> Program:
    """A program that is rewritten once and then called with arrays, by name or in order.

    `on` is an executor (`numpy`, `triton`, `reference`), `pipeline` the passes to run, `default`
    unless given. `tune` are seconds to measure schedules of kernels for, if there is a GPU: what is
    found is kept, and `tune=0` uses what is known.
    """
    if isinstance(program, Program | ModuleOp):
        module = program.module if isinstance(program, Program) else program
        compiled = Program(module, on=on, pipeline=pipeline, tune=tune)
    else:
        flat = _flat(program)
        compiled = StructuredProgram(module_of(flat), program, on, pipeline)
        compiled.tune = tune
    _ = compiled.lowered
    return compiled


def shard(
    program: Programs,
    shards: int | None = None,
    *,
    on: str = "numpy",
    **options: int | str | Sequence[int],
) -> Program:
    """A program whose operations are split: `shards=4`, `grid=[2, 1]`, `bytes=1 << 20`, ...

    `shards` are how many parts each operation gets at most. The options are those of the pass
    `loom-shard`; UsageError for others, and other values.
    """
    if shards is not None:
        options["shards"] = shards
    split = compile(program, on=on).sharded(**options)
    _ = split.lowered
    return split


def explain(program: Programs, pipeline: str | None = None) -> str:
    """Why a program is in as many pieces as it is: what was joined, derived, split, and what moves.

    A module is explained as it is, unless a pipeline is given.
    """
    if isinstance(program, ModuleOp) and pipeline is None:
        return "\n".join(explaining.explain(program))
    return compile(program, pipeline=pipeline).explain()


def save(program: Programs, path: str | Path) -> None:
    """Write a program to `path` (`model.mlir`), larger constants to an .npz file beside it."""
    if isinstance(program, Program | ModuleOp):
        programs.save(program, path)
    else:
        programs.save(module_of(_flat(program)), path)


def _flat(expressions: Expressions) -> list[Expression]:
    """The expressions of a structure, in order."""
    flat = list(_each(expressions))
    for one in cast("list[object]", flat):
        if not isinstance(one, Expression):
            raise UsageError(
                f"{type(one).__name__} is no expression",
                location=caller(),
                hint="an expression, a list, tuple or dictionary of them, a module or a program",
            )
    return flat


def _each(expressions: Expressions) -> Iterator[Expression]:
    match expressions:
        case Expression():
            yield expressions
        case Mapping():
            yield from expressions.values()
        case list() | tuple():
            yield from expressions
        case _:
            yield cast(Expression, expressions)

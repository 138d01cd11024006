"""Whether a pass keeps the functions of a module: each is compared before and after.

    watch = PassWatch(Options())
    watch.start(module)
    some_pass.apply(ctx, module)
    print(watch.after("some-pass", module))         # or DifferenceError

Functions are compared by name. What is no function over tensors is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr

from tapestry.diagnostics import TapestryError
from tapestry.dialects.loom import TensorType
from tapestry.passes.loom.outline import inlined
from tapestry.proving.equality import compare_programs
from tapestry.proving.pair import Options
from tapestry.proving.report import describe
from tapestry.runtime.program import ENTRY


class DifferenceError(TapestryError):
    """A pass that changed what a program computes."""

    kind = "difference"


class PassWatch:
    """Follows a module through a pipeline."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._before: ModuleOp | None = None

    def start(self, module: ModuleOp) -> None:
        """Remember the module as it is."""
        self._before = module.clone()

    def after(self, name: str, module: ModuleOp) -> list[str]:
        """What the pass `name` did to each function, a line each; DifferenceError where it differs.

        The module is remembered as it is now.
        """
        assert self._before is not None
        before, self._before = self._before, module.clone()
        lines: list[str] = []
        old = dict(programs(before))
        new = dict(programs(module))
        for symbol, program in old.items():
            if symbol not in new:
                lines.append(f"{name}: @{symbol}: not compared: it is no longer in weft or loom")
                continue
            verdict = compare_programs(program, new[symbol], self._options)
            report = describe(verdict)
            if verdict.answer == "differs":
                raise DifferenceError(f"{name} changes @{symbol}: " + "\n".join(report))
            lines.append(f"{name}: @{symbol}: {report[0]}")
            lines += report[1:]
        return lines


def programs(module: ModuleOp) -> Iterator[tuple[str, ModuleOp]]:
    """Each function over tensors of a module, by name, as a program of its own without calls."""
    module = inlined(module)
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp) and _is_comparable(function):
            yield function.sym_name.data, _program(module, function.sym_name)


def _is_comparable(function: func.FuncOp) -> bool:
    kinds = (*function.function_type.inputs, *function.function_type.outputs)
    in_dialects = all(op.name.startswith(("loom.", "weft.", "func.")) for op in function.body.ops)
    return (
        len(function.body.blocks) == 1
        and in_dialects
        and all(isinstance(kind, TensorType) for kind in kinds)
    )


def _program(module: ModuleOp, name: StringAttr) -> ModuleOp:
    """The module with only the function `name`, as its entry."""
    program = module.clone()
    for op in list(program.body.block.ops):
        if isinstance(op, func.FuncOp):
            if op.sym_name == name:
                op.sym_name = StringAttr(ENTRY)
            else:
                op.detach()
                op.erase()
    return program

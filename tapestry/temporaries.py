"""What a program holds while it runs: tensors that are neither taken nor returned, in one arena.

    >>> from tapestry.frontend import parse_module, run_pipeline
    >>> module = parse_module('''
    ... !x = !loom.tensor<[0, 0] : [64, 16], f32>
    ... func.func @main(%x: !x) -> !x {
    ...   %a = weft.apply @exp(%x) : (!x) -> !x
    ...   %b = weft.apply @exp(%a) : (!x) -> !x
    ...   %c = weft.apply @exp(%b) : (!x) -> !x
    ...   %d = weft.apply @exp(%c) : (!x) -> !x
    ...   func.return %d : !x
    ... }''')
    >>> run_pipeline(module, "weft-apply")
    >>> temporaries(module)
    Temporaries(count=3, bytes=12288, arena=8192)

These are the tensors between operations; what a lowering adds (states of folds that are split, a
copy for a view that is left) comes on top, and `tapestry compile` says the exact number.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tapestry.arena import Step, lives, place
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType


@dataclass(frozen=True)
class Temporaries:
    """How many there are, their bytes, and the bytes that they take where they share memory."""

    count: int
    bytes: int
    arena: int


def temporaries(module: ModuleOp) -> Temporaries:
    """The tensors between the operations of @main."""
    sizes: dict[SSAValue, int] = {}
    steps: list[Step[SSAValue]] = []
    returned: set[SSAValue] = set()
    for function in module.body.block.ops:
        if not isinstance(function, func.FuncOp) or function.sym_name.data != "main":
            continue
        for op in function.body.block.ops:
            read = [_source(value) for value in op.operands]
            if isinstance(op, func.ReturnOp):
                returned.update(read)
            elif not isinstance(op, loom.ReshapeOp | loom.ConstantOp):
                steps.append((read, list(op.results)))
                sizes |= {
                    one: kind.byte_size
                    for one in op.results
                    if isinstance(kind := one.type, TensorType)
                }
    sizes = {value: size for value, size in sizes.items() if value not in returned}
    arena = place(sizes, lives(steps, returned))
    return Temporaries(len(sizes), sum(sizes.values()), arena.size)


def _source(value: SSAValue) -> SSAValue:
    """The tensor that a value is another shape of."""
    while isinstance(value.owner, loom.ReshapeOp):
        value = value.owner.source
    return value

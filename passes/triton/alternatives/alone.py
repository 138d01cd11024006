"""An operation as a program of its own, to see what it would become.

program = alone(op)         # its operands are inputs, its results are returned
canonical(program)          # the text without names: equal for the layers of a model
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping

from xdsl.dialects import func
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp, NameLoc, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.passes.triton.schedules.task import SCHEDULE

Scheduled = loom.OperationOp | loom.FusedOp

_UNNAMED = ("derivation", SCHEDULE)


def alone(*ops: Scheduled) -> ModuleOp:
    """A program that computes operations of their inputs, and nothing else.

    Of several, in order, it returns what others read of what they write.
    """
    made = {result for op in ops for result in op.results}
    taken = list(dict.fromkeys(v for op in ops for v in op.operands if v not in made))
    block = Block(arg_types=[value.type for value in taken])
    values: dict[SSAValue, SSAValue] = dict(zip(taken, block.args, strict=True))
    for number, (value, argument) in enumerate(zip(taken, block.args, strict=True)):
        # Names need not differ where they come from, and inputs have to. What is noted of values
        # goes by the names that they have there.
        name = StringAttr(f"{value.name_hint or 'x'}_in{number}")
        argument.location = NameLoc(name, UNKNOWN_LOC)
        argument.name_hint = value.name_hint
    copies = [op.clone(value_mapper=values) for op in ops]
    inside = {inner for op in ops for inner in op.walk()}
    outside = [
        values[result]
        for op in ops
        for result in op.results
        if len(ops) == 1 or any(use.operation not in inside for use in result.uses)
    ]
    block.add_ops([*copies, func.ReturnOp(*outside)])
    kinds = ([value.type for value in taken], [value.type for value in outside])
    main = func.FuncOp("main", kinds, Region(block))
    module = ops[0].get_toplevel_object()
    assert isinstance(module, ModuleOp)
    text = "\n".join(map(str, copies))
    return ModuleOp([*(one.clone() for one in _definitions(module, text)), main])


def gains(
    program: ModuleOp, asked: Callable[[ModuleOp], bool], known: MutableMapping[str, bool]
) -> bool:
    """Whether another way to compute a program gains, which is asked once of equal ones.

    It does not where something has no kernel, which is said where that is lowered.
    """
    text = canonical(program)
    if text not in known:
        try:
            known[text] = asked(program)
        except TapestryError:
            known[text] = False
    return known[text]


def _definitions(module: ModuleOp, text: str) -> list[Operation]:
    """The monoids and kernels of a module that a text names, and that those name."""
    known = {
        op.sym_name.data: op
        for op in module.body.block.ops
        if isinstance(op, loom.MonoidOp | loom.KernelOp)
    }
    found: dict[str, Operation] = {}
    texts = [text]
    while texts:
        for name in re.findall(r"@([\w$.-]+)", texts.pop()):
            if name in known and name not in found:
                found[name] = known[name]
                texts.append(str(known[name]))
    return [op for name, op in known.items() if name in found]


def canonical(program: ModuleOp) -> str:
    """The text of a program without names, derivations and schedules: equal for equal ones."""
    bare = program.clone()
    names: list[str] = []
    for op in bare.walk():
        blocks = [block for region in op.regions for block in region.blocks]
        for value in (*op.results, *(a for block in blocks for a in block.args)):
            value.name_hint = None
        for name in _UNNAMED:
            op.attributes.pop(name, None)
            op.properties.pop(name, None)
        if isinstance(op, loom.OperationOp | loom.FusedOp):
            names.append(op.label.data)
            op.properties["label"] = StringAttr("operation")
        elif isinstance(op, loom.MonoidOp | loom.KernelOp):
            names.append(op.sym_name.data)
    text = str(bare)
    for number, name in enumerate(names):
        text = re.sub(rf"@{re.escape(name)}(?![\w$.-])", f"@name{number}", text)
    return text

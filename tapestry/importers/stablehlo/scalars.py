"""Bodies of loom from regions of StableHLO.

    reducer(%a: tensor<f32>, %b: tensor<f32>) { %m = stablehlo.maximum %a, %b  stablehlo.return %m }

is a program over tensors without dimensions. It is translated like any other, its metakernels are
applied, and the bodies of what comes out, one after another, are one body over scalars. So an
operation means the same in a region as outside.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region, SSAValue

from tapestry.algebra.dtypes import body_type
from tapestry.dialects import loom
from tapestry.frontend import run_pipeline
from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.stablehlo.bindings import MlirBlock
from tapestry.importers.stablehlo.program import Environment, Program
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.runtime.arrays.access import cells as cells_of_view
from tapestry.runtime.executor import Array


class HasDimensionsError(Exception):
    """An operation over more than one cell, where only scalars can be."""


def scalar_body(
    program: Program, block: MlirBlock, specs: Sequence[Spec], outside: Environment
) -> Region:
    """A region over tensors without dimensions as a body over scalars of the same types.

    What the region takes from around it must be known.
    """
    nested = program.nested()
    arguments = scalar_arguments(nested, specs)
    known = {key: value for key, value in outside.items() if value.known is not None}
    return finished_body(nested, specs, nested.run_block(block, arguments, known))


def scalar_arguments(nested: Program, specs: Sequence[Spec]) -> list[Value]:
    """Arguments without dimensions of a program."""
    return [
        nested.value(nested.build.argument(f"a{place}", (), spec.dtype))
        for place, spec in enumerate(specs)
    ]


def finished_body(nested: Program, specs: Sequence[Spec], outputs: Sequence[Value]) -> Region:
    """The body that computes outputs of a program over tensors without dimensions."""
    module = nested.build.finish([nested.tensor(value) for value in outputs])
    run_pipeline(module, "weft-apply")
    return _joined(module, specs)


def _joined(module: ModuleOp, specs: Sequence[Spec]) -> Region:
    """The bodies of a module over tensors without dimensions, one after another."""
    (function,) = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    body = Body([cell_type(spec.dtype) for spec in specs])
    scalars: dict[SSAValue, SSAValue] = dict(zip(function.args, body.arguments, strict=True))
    tables: dict[SSAValue, Array] = {}  # known cells of which some are picked

    def known(value: SSAValue, cells: Array) -> None:
        tables[value] = cells
        each = [cell.tobytes() for cell in cells.reshape(-1)]  # zeros have signs, NaN is not NaN
        if len(set(each)) == 1:
            kind = body_type(loom.tensor_type(value).element_type)
            scalars[value] = body.number(cells.reshape(-1)[0], kind)

    for op in function.body.block.ops:
        match op:
            case loom.OperationOp() if not op.index.rank and all(one in scalars for one in op.ins):
                made = body.inline(op.wrap, [scalars[value] for value in op.ins])
                scalars.update(zip(op.outs, made, strict=True))
            case loom.ConstantOp():
                cells = op.cells
                assert cells is not None
                known(op.result, cells)
            case loom.ViewOp() if op.source in tables:
                read, made = (loom.tensor_type(one).box for one in (op.source, op.result))
                view = cells_of_view(tables[op.source], read, op.projection.data, made)
                known(op.result, np.broadcast_to(view, made.shape))
            case loom.ReshapeOp() if op.source in tables:
                shape = loom.tensor_type(op.result).box.shape
                known(op.result, tables[op.source].reshape(shape))
            case loom.ViewOp() | loom.ReshapeOp() if op.source in scalars:
                scalars[op.result] = scalars[op.source]
            case func.ReturnOp():
                if not all(value in scalars for value in op.operands):
                    raise HasDimensionsError(op.name)
                return body.region(*(scalars[value] for value in op.operands))
            case _:
                raise HasDimensionsError(op.name)
    raise AssertionError("a function returns")

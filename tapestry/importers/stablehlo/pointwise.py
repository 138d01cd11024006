"""Operations cell by cell whose scalar operations are written here.

%1 = stablehlo.bitcast_convert %0 : (tensor<4xui32>) -> tensor<4xf32>

    loom.operation @bitcast_convert ... wrap (%a: i32) { %b = arith.bitcast %a : i32 to f32 ... }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.operations import map_operation
from tapestry.importers.stablehlo.program import Program
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.zspace import Projection

Build = Callable[[Body, Sequence[SSAValue]], SSAValue]
"""What a cell is of the operands' cells."""


def pointwise(
    program: Program, label: str, operands: Sequence[Value], result: Spec, build: Build
) -> Value:
    """One operation over the result's shape; operands have it too, or no dimensions."""
    body = Body([cell_type(value.spec.dtype) for value in operands])
    region = body.region(build(body, body.arguments))
    rank = result.rank
    each, one = Projection.identity(rank), Projection.of([], inputs=rank)
    reads = [(program.tensor(value), each if value.spec.rank else one) for value in operands]
    return program.insert(map_operation(label, program.kind(result), reads, region))[0]

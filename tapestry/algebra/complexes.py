"""Where a program holds complex numbers, for what only real ones can be done with.

%z = loom.constant (1.0, -2.0) : !loom.tensor<[0] : [4], complex<f32>>     // here
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import is_complex
from tapestry.dialects import loom
from tapestry.dialects.loom import BlockType, TensorType


def find_complex(module: ModuleOp) -> tuple[Operation, Attribute] | None:
    """The first operation that makes or takes complex numbers, and their type.

    Monoids are left out: what folds by one holds numbers of its types as well.
    """
    for top in module.body.block.ops:
        if isinstance(top, func.FuncOp | loom.KernelOp):
            for op in top.walk():
                for kind in _elements(op):
                    if is_complex(kind):
                        return op, kind
    return None


def _elements(op: Operation) -> Iterable[Attribute]:
    """The types of the cells that an operation makes, and that its bodies take."""
    made = [result.type for result in op.results]
    taken = [arg.type for region in op.regions for block in region.blocks for arg in block.args]
    for kind in (*made, *taken):
        yield kind.element_type if isinstance(kind, TensorType | BlockType) else kind

"""Applies a metakernel of the library to arrays, the way a program does: weft-apply, then a run.

    (total,) = run("sum", [np.ones((2, 3), "f4")], {"axis": 1})

What weft-apply makes is verified every time. Tensors may start anywhere.
"""

from collections.abc import Callable, Mapping, Sequence

import ml_dtypes
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.attributes import attribute_of
from tapestry.dialects import loom, weft
from tapestry.dialects.loom import TensorType
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import verify_module
from tapestry.metakernels import TensorSpec, expand, load_library
from tapestry.metakernels.dtypes import DTYPES
from tapestry.passes.weft._bodies import element_type
from tapestry.passes.weft.apply import apply_metakernels
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.zspace import Partition, Range

LIBRARY = load_library()
NUMPY = {dtype: numpy_dtype(element_type(dtype)) for dtype in DTYPES}
NAMES = {array: dtype for dtype, array in NUMPY.items()}
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))

Cut = Callable[[int], int]
"""How many parts a dimension of that many cells is cut into."""


def tensor(spec: TensorSpec, start: int = 0) -> TensorType:
    """The type of a tensor whose every dimension starts at `start`."""
    box = Range.of(spec.shape).translate((start,) * len(spec.shape))
    return TensorType.of(box, element_type(spec.dtype))


def applied(
    name: str,
    arrays: Sequence[Array],
    parameters: Mapping[str, object],
    starts: tuple[int, int] = (0, 0),
) -> ModuleOp:
    """A verified program of one application, whose operands and results start at `starts`."""
    specs = [TensorSpec(array.shape, NAMES[array.dtype]) for array in arrays]
    expansion = expand(LIBRARY.get(name), specs, parameters, LIBRARY)
    operands = [tensor(spec, starts[0]) for spec in specs]
    results = [tensor(output.spec, starts[1]) for output in expansion.outputs]
    main = func.FuncOp("main", (operands, results))
    attributes = {key: attribute_of(value) for key, value in parameters.items()}
    op = weft.ApplyOp(name, main.body.block.args, results, attributes)
    main.body.block.add_ops([op, func.ReturnOp(*op.results)])
    module = ModuleOp([main])
    verify_module(module)
    apply_metakernels(module, LIBRARY)
    verify_module(module)
    return module


def run(
    name: str,
    arrays: Sequence[Array],
    parameters: Mapping[str, object],
    executor: str = "reference",
    starts: tuple[int, int] = (0, 0),
    cut: Cut | None = None,
) -> Sequence[Array]:
    """The outputs of one application; `cut` splits the index space of every operation of it."""
    module = applied(name, arrays, parameters, starts)
    if cut is not None:
        for op in module.walk():
            if isinstance(op, loom.OperationOp):
                counts = [cut(size) if size else 1 for size in op.index.shape]
                op.shards = PartitionAttr(Partition.balanced(op.index, counts))
        verify_module(module)
    inputs = {str(position): array for position, array in enumerate(arrays)}
    return find_executor(executor).run(module, inputs, NoWatch()).outputs

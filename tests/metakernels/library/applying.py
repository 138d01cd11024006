"""Applies a metakernel of the library to arrays, the way a program does: weft-apply, then a run.

    (total,) = run("sum", [np.ones((2, 3), "f4")], {"axis": 1})

What weft-apply makes is verified every time. Tensors may start anywhere. A list among the arrays is
a list of tensors, None an input that is left out.
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
from tapestry.passes.weft.apply import apply_metakernels
from tapestry.passes.weft.recipes.bodies import element_type
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.zspace import Partition, Range
from tests import on_gpu

LIBRARY = load_library()
NUMPY = {dtype: numpy_dtype(element_type(dtype)) for dtype in DTYPES}
NAMES = {array: dtype for dtype, array in NUMPY.items()}
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))

Given = Array | list[Array] | None

Cut = Callable[[int], int]
"""How many parts a dimension of that many cells is cut into."""


def tensor(spec: TensorSpec, start: int = 0) -> TensorType:
    """The type of a tensor whose every dimension starts at `start`."""
    box = Range.of(spec.shape).translate((start,) * len(spec.shape))
    return TensorType.of(box, element_type(spec.dtype))


def _spec(array: Array) -> TensorSpec:
    return TensorSpec(array.shape, NAMES[array.dtype])


def _flat(arrays: Sequence[Given]) -> list[Array]:
    return [array for given in arrays for array in _several(given)]


def _several(given: Given) -> list[Array]:
    return [] if given is None else given if isinstance(given, list) else [given]


def applied(
    name: str,
    arrays: Sequence[Given],
    parameters: Mapping[str, object],
    starts: tuple[int, int] = (0, 0),
) -> ModuleOp:
    """A verified program of one application, whose operands and results start at `starts`."""
    specs = [
        [_spec(a) for a in _several(given)]
        if given is None or isinstance(given, list)
        else _spec(given)
        for given in arrays
    ]
    expansion = expand(LIBRARY.get(name), specs, parameters, LIBRARY)
    operands = [tensor(_spec(array), starts[0]) for array in _flat(arrays)]
    results = [tensor(output.spec, starts[1]) for output in expansion.outputs]
    main = func.FuncOp("main", (operands, results))
    attributes = {key: attribute_of(value) for key, value in parameters.items()}
    values = iter(main.body.block.args)
    per_input = [
        next(values) if isinstance(spec, TensorSpec) else [next(values) for _ in spec]
        for spec in specs
    ]
    op = weft.ApplyOp(name, per_input, results, attributes)
    main.body.block.add_ops([op, func.ReturnOp(*op.results)])
    module = ModuleOp([main])
    verify_module(module)
    apply_metakernels(module, LIBRARY)
    verify_module(module)
    return module


def run(
    name: str,
    arrays: Sequence[Given],
    parameters: Mapping[str, object],
    executor: str = "reference",
    starts: tuple[int, int] = (0, 0),
    cut: Cut | None = None,
) -> Sequence[Array]:
    """The outputs of one application; `cut` splits every operation of it that may be split so."""
    module = applied(name, arrays, parameters, starts)
    if cut is not None:
        for op in module.walk():
            if isinstance(op, loom.OperationOp):
                counts = [cut(size) if size else 1 for size in op.index.shape]
                partition = Partition.balanced(op.index, counts)
                if not op.sharding_problems(partition):
                    op.shards = PartitionAttr(partition)
        verify_module(module)
    inputs = {str(position): array for position, array in enumerate(_flat(arrays))}
    chosen = find_executor(on_gpu.executor(executor))
    return chosen.run(module, inputs, NoWatch()).outputs

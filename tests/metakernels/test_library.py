"""The examples of every library template hold on the executors, and the documentation is there."""

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i1,
    i64,
)

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.dialects import weft
from tapestry.dialects.loom import TensorType
from tapestry.metakernels import TensorSpec, expand, load_library
from tapestry.metakernels.dtypes import DTYPES
from tapestry.passes.weft.apply import WeftApply
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.zspace import Range

LIBRARY = load_library()
EXAMPLES = [
    (name, position)
    for name in LIBRARY.names
    for position in range(len(LIBRARY.get(name).examples))
]


def attribute(value):
    """A parameter's value as the attribute that IR would hold."""
    match value:
        case bool():
            return BoolAttr(value, i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str() if value in DTYPES:
            return type_named(value)
        case str():
            return StringAttr(value)
        case _:
            return ArrayAttr([attribute(item) for item in value])


def tensor(spec, start=0):
    box = Range.of(spec.shape).translate((start,) * len(spec.shape))
    return TensorType.of(box, type_named(spec.dtype))


def run(name, arrays, parameters, executor="reference", starts=(0, 0)):
    """The outputs of one application, whose operands and results start at `starts`."""
    names = {numpy_dtype(type_named(dtype)): dtype for dtype in DTYPES}
    specs = [TensorSpec(array.shape, names[array.dtype]) for array in arrays]
    expansion = expand(LIBRARY.get(name), specs, parameters, LIBRARY)
    operands = [tensor(spec, starts[0]) for spec in specs]
    results = [tensor(output.spec, starts[1]) for output in expansion.outputs]
    main = func.FuncOp("main", (operands, results))
    attributes = {key: attribute(value) for key, value in parameters.items()}
    op = weft.ApplyOp(name, main.body.block.args, results, attributes)
    main.body.block.add_ops([op, func.ReturnOp(*op.results)])
    module = ModuleOp([main])
    module.verify()
    WeftApply().apply(None, module)
    module.verify()
    inputs = {str(position): array for position, array in enumerate(arrays)}
    return find_executor(executor).run(module, inputs, NoWatch()).outputs


@pytest.mark.parametrize("executor", ["reference", "numpy"])
@pytest.mark.parametrize(("name", "position"), EXAMPLES)
def test_examples(name, position, executor):
    template = LIBRARY.get(name)
    example = template.examples[position]
    arrays = [
        np.array(example.inputs[entry.name]).astype(
            numpy_dtype(type_named(example.dtypes.get(entry.name, "f32")))
        )
        for entry in template.inputs
    ]
    results = run(name, arrays, dict(example.parameters), executor, starts=(-1, 2))
    for output, result in zip(template.outputs, results, strict=True):
        wanted = np.array(example.outputs[output.name])
        assert result.shape == wanted.shape
        if np.issubdtype(result.dtype, np.integer):
            np.testing.assert_array_equal(result, wanted)
        else:
            np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", LIBRARY.names)
def test_every_template_is_documented(name):
    template = LIBRARY.get(name)
    assert template.doc.endswith(".")
    assert template.formula
    assert template.examples


RANDOM = np.random.default_rng(7)
HALF = RANDOM.standard_normal((33, 65)).astype(np.float16)


def test_half_precision_sums_round_once():
    (total,) = run("sum", [HALF], {"axis": 1})
    exact = HALF.astype(np.float64).sum(axis=1)
    np.testing.assert_array_equal(total, exact.astype(np.float32).astype(np.float16))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_products_round_once(dtype):
    left, right = (RANDOM.integers(-9, 9, (20, 20)).astype(dtype) for _ in "ab")
    (product,) = run("matmul", [left, right], {})
    exact = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_array_equal(product, exact.astype(dtype))


def test_integers_wrap_around_in_their_own_type():
    ones = np.full((3,), 2**30, np.int32)
    np.testing.assert_array_equal(run("sum", [ones], {"axis": 0})[0], ones.sum(dtype=np.int32))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
def test_binary_operators_are_numpys(name):
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                "maximum": np.maximum, "minimum": np.minimum}[name]  # fmt: skip
    a = RANDOM.standard_normal((3, 1, 5)).astype(np.float32)
    b = RANDOM.standard_normal((4, 1)).astype(np.float32)
    np.testing.assert_array_equal(run(name, [a, b], {})[0], function(a, b))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_folds_are_numpys(name, axis):
    x = RANDOM.standard_normal((3, 4, 5))
    (result,) = run(name, [x], {"axis": axis})
    np.testing.assert_allclose(result, getattr(np, name)(x, axis=axis), rtol=1e-14)


def test_softmax_sums_to_one_in_half_precision():
    (weights,) = run("softmax", [HALF], {"axis": 0})
    wide = HALF.astype(np.float64)
    exact = np.exp(wide - wide.max(0)) / np.exp(wide - wide.max(0)).sum(0)
    assert weights.dtype == np.float16
    np.testing.assert_allclose(weights.astype(np.float64), exact, rtol=2**-10, atol=1e-7)

"""The examples of every library template hold on the executors, and the documentation is there."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tapestry.metakernels.libraries import LIBRARY as FOLDER
from tapestry.metakernels.libraries import read_folder
from tests.metakernels.library.applying import LIBRARY, NUMPY, run

EXAMPLES = [
    (name, position)
    for name in LIBRARY.names
    for position in range(len(LIBRARY.get(name).examples))
]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("executor", ["reference", "numpy"])
@pytest.mark.parametrize(("name", "position"), EXAMPLES)
def test_examples(name: str, position: int, executor: str) -> None:
    template = LIBRARY.get(name)
    example = template.examples[position]
    arrays: list[Any] = []
    for entry in template.inputs:
        dtype = NUMPY[example.dtypes.get(entry.name, "f32")]
        values: Any = example.inputs.get(entry.name)
        if entry.each is not None:
            arrays.append([np.array(value).astype(dtype) for value in values])
        else:
            arrays.append(None if values is None else np.array(values).astype(dtype))
    results = run(name, arrays, dict(example.parameters), executor, starts=(-1, 2))
    outputs = [
        value
        for output in template.outputs
        for value in (
            [example.outputs[output.name]] if output.each is None else example.outputs[output.name]
        )
    ]
    for output, result in zip(outputs, results, strict=True):
        wanted = np.array(output)
        assert result.shape == wanted.shape
        if np.issubdtype(result.dtype, np.integer):
            np.testing.assert_array_equal(result, wanted)
        else:
            np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", LIBRARY.names)
def test_every_template_is_documented(name: str) -> None:
    template = LIBRARY.get(name)
    assert template.doc.endswith(".")
    assert template.formula
    assert template.source
    assert len(template.examples) >= 2


RANDOM = np.random.default_rng(7)
HALF = RANDOM.standard_normal((33, 65)).astype(np.float16)


def test_half_precision_sums_round_once() -> None:
    (total,) = run("sum", [HALF], {"axis": 1})
    exact = HALF.astype(np.float64).sum(axis=1)
    np.testing.assert_array_equal(total, exact.astype(np.float32).astype(np.float16))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_products_round_once(dtype: Any) -> None:
    left, right = (RANDOM.integers(-9, 9, (20, 20)).astype(dtype) for _ in "ab")
    (product,) = run("matmul", [left, right], {})
    exact = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_array_equal(product, exact.astype(dtype))


def test_integers_wrap_around_in_their_own_type() -> None:
    ones = np.full((3,), 2**30, np.int32)
    np.testing.assert_array_equal(run("sum", [ones], {"axis": 0})[0], ones.sum(dtype=np.int32))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
def test_binary_operators_are_numpys(name: str) -> None:
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                "maximum": np.maximum, "minimum": np.minimum}[name]  # fmt: skip
    a = RANDOM.standard_normal((3, 1, 5)).astype(np.float32)
    b = RANDOM.standard_normal((4, 1)).astype(np.float32)
    np.testing.assert_array_equal(run(name, [a, b], {})[0], function(a, b))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_folds_are_numpys(name: str, axis: int) -> None:
    x = RANDOM.standard_normal((3, 4, 5))
    (result,) = run(name, [x], {"axis": axis})
    np.testing.assert_allclose(result, getattr(np, name)(x, axis=axis), rtol=1e-14)


def test_softmax_sums_to_one_in_half_precision() -> None:
    (weights,) = run("softmax", [HALF], {"axis": 0})
    wide = HALF.astype(np.float64)
    exact = np.exp(wide - wide.max(0)) / np.exp(wide - wide.max(0)).sum(0)
    assert weights.dtype == np.float16
    np.testing.assert_allclose(weights.astype(np.float64), exact, rtol=2**-10, atol=1e-7)


def test_the_library_is_read_one_template_at_a_time_and_whole() -> None:
    documents = read_folder(FOLDER)
    assert LIBRARY.names == tuple(sorted(documents))
    for name, document in documents.items():
        template = LIBRARY.get(name)
        assert template.location == document.location
        assert template.document.plain() == document.plain()

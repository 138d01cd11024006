"""Bodies in IR compute what NumPy computes, for every function and every conversion."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects.loom import TensorType
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.metakernels.dtypes import DTYPES, FLOATS, INTEGERS, is_unsigned
from tapestry.passes.weft.recipes.bodies import element_type
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.zspace import Range

RANDOM = np.random.default_rng(11)


def evaluate(text: Any, inputs: Any, dtype: Any) -> Any:
    """The body `text` over arrays of one shape."""
    shape = next(iter(inputs.values())).shape
    names = {numpy_dtype(element_type(name)): name for name in DTYPES}
    types = {
        n: TensorType.of(Range.of(shape), element_type(names[a.dtype])) for n, a in inputs.items()
    }
    result = TensorType.of(Range.of(shape), element_type(dtype))
    entries = ", ".join(f'{{{name} = {{shape = "[$d...]"}}}}' for name in inputs)
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in types.items())
    operands = ", ".join(f"%{name}" for name in inputs)
    kinds = ", ".join(map(str, types.values()))
    module = parse_text(f"""
      weft.metakernel @f {{
        inputs = [{entries}], index = "[$d...]", wrap = "{text}",
        outputs = [{{r = {{dtype = "{dtype}"}}}}]
      }}
      func.func @main({arguments}) -> {result} {{
        %r = weft.apply @f({operands}) : ({kinds}) -> {result}
        func.return %r : {result}
      }}""")
    verify_module(module)
    run_pipeline(module, "weft-apply")
    return find_executor("reference").run(module, inputs, NoWatch()).outputs[0]


X = np.array([0.25, 1.5, 3.0, 0.75])
ERF = np.vectorize(math.erf)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sqrt(x)", np.sqrt(X)),
        ("rsqrt(x)", 1 / np.sqrt(X)),
        ("exp(x)", np.exp(X)),
        ("log(x)", np.log(X)),
        ("log1p(x)", np.log1p(X)),
        ("expm1(x)", np.expm1(X)),
        ("sin(x) + cos(x) + tan(x)", np.sin(X) + np.cos(X) + np.tan(X)),
        ("tanh(x)", np.tanh(X)),
        ("erf(x)", ERF(X)),
        ("sigmoid(-x)", 1 / (1 + np.exp(X))),
        ("floor(-x) + 10 * ceil(-x) + 100 * round(x)",
         np.floor(-X) + 10 * np.ceil(-X) + 100 * np.rint(X)),
        ("x ^ 5", X**5),
        ("x ^ x", X**X),
        ("2 ^ x", 2**X),
        ("sign(x - 1) * abs(x - 1)", X - 1),
        ("-x / 3 - (x - 2) * x", -X / 3 - (X - 2) * X),
        ("min(x, 1, 0.5)", np.minimum(X, 0.5)),
        ("where(x >= 1.5, x, -1)", np.where(X >= 1.5, X, -1)),
        ("where(x < 1 or not (x != 3), 1, cast(x, f64))", np.where((X < 1) | (X == 3), 1, X)),
        ("cast(x > 1, f64) + cast(x == 3, f64) + cast(x <= 1.5, f64)",
         1.0 * (X > 1) + (X == 3) + (X <= 1.5)),
        ("x * cast(@d[0], f64)", X * np.arange(4)),
    ],
)  # fmt: skip
def test_floats(text: Any, wanted: Any) -> None:
    np.testing.assert_allclose(evaluate(text, {"x": X}, "f64"), wanted, rtol=1e-14)


numbers = st.lists(st.integers(-100, 100), min_size=3, max_size=3)
nonzero = st.lists(st.integers(-100, 100).filter(bool), min_size=3, max_size=3)


@given(numbers, nonzero)
def test_integer_division_is_floored(a: Any, b: Any) -> None:
    inputs = {"a": np.array(a, np.int64), "b": np.array(b, np.int64)}
    np.testing.assert_array_equal(evaluate("a // b", inputs, "i64"), inputs["a"] // inputs["b"])
    np.testing.assert_array_equal(evaluate("a % b", inputs, "i64"), inputs["a"] % inputs["b"])


@given(numbers, numbers)
def test_integers(a: Any, b: Any) -> None:
    x, y = np.array(a, np.int64), np.array(b, np.int64)
    inputs = {"x": x, "y": y}
    text = "max(x, y) - min(x, 3) + abs(y) + sign(x) + x ^ 3 + -y"
    wanted = np.maximum(x, y) - np.minimum(x, 3) + np.abs(y) + np.sign(x) + x**3 - y
    np.testing.assert_array_equal(evaluate(text, inputs, "i64"), wanted)
    text = "x < y and x <= y or x > y and x >= y and x != y"
    np.testing.assert_array_equal(evaluate(text, inputs, "i1"), x != y)


def test_truth_values_are_ordered_false_first() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    np.testing.assert_array_equal(evaluate("a < b", {"a": a, "b": b}, "i1"), ~a & b)
    np.testing.assert_array_equal(evaluate("a >= b", {"a": a, "b": b}, "i1"), a | ~b)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source: Any, target: Any) -> None:
    # What a negative float is as an unsigned integer is not defined.
    low = 3 if source in FLOATS and is_unsigned(target) else -3
    numbers = np.array([0, 1] if source == "i1" else [low, 0, 1, 100])
    x = numbers.astype(numpy_dtype(element_type(source)))
    if source in FLOATS and target in (*FLOATS, *INTEGERS):
        x = x + x.dtype.type(0.75)
    wanted = x.astype(numpy_dtype(element_type(target)))
    np.testing.assert_array_equal(evaluate(f"cast(x, {target})", {"x": x}, target), wanted)


def test_equal_subexpressions_are_computed_once() -> None:
    module = parse_text("""
      weft.metakernel @f {
        inputs = [{x = {shape = "[$d...]"}}], index = "[$d...]", wrap = "exp(x) * exp(x) + 2 * 2"
      }
      func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
        %r = weft.apply @f(%x) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
        func.return %r : !loom.tensor<[0] : [4], f32>
      }""")
    run_pipeline(module, "weft-apply")
    names = [op.name for op in module.walk()]
    assert names.count("math.exp") == names.count("arith.constant") == 1

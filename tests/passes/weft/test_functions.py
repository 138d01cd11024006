"""Every function of scalar bodies computes what NumPy's does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

from tapestry.frontend import parse_text
from tapestry.passes.weft.apply import WeftApply
from tapestry.runtime.executor import Array, NoWatch, find_executor

FLOATS = np.array([0.0, -0.0, 0.3, -0.75, 1.0, 2.5, -7.5, np.inf, -np.inf, np.nan], np.float32)
WHOLE = np.array([0, 1, -1, 5, -7, 127, -128, 64], np.int8)


def computed(body: str, dtype: str, result: str, *arrays: Any) -> Any:
    """What `wrap: body` gives for inputs `x`, `y` of one dtype."""
    names = "xy"[: len(arrays)]
    tensor = f"!loom.tensor<[0] : [{len(arrays[0])}], {dtype}>"
    out = f"!loom.tensor<[0] : [{len(arrays[0])}], {result}>"
    text = f"""
      weft.metakernel @f {{
        inputs = [{", ".join(f'{{{n} = {{shape = "[$n]"}}}}' for n in names)}],
        index = "[$n]", wrap = "{body}", outputs = [{{r = {{dtype = "{result}"}}}}]
      }}
      func.func @main({", ".join(f"%{n}: {tensor}" for n in names)}) -> {out} {{
        %r = weft.apply @f({", ".join(f"%{n}" for n in names)})
               : ({", ".join(tensor for _ in names)}) -> {out}
        func.return %r : {out}
      }}"""
    module = parse_text(text)
    WeftApply().apply(Context(), module)
    module.verify()
    inputs = dict(zip(names, arrays, strict=True))
    return find_executor("reference").run(module, inputs, NoWatch()).outputs[0]


@pytest.mark.parametrize(
    "name",
    ["sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
     "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
     "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "sign", "abs"],
)  # fmt: skip
def test_functions_of_one_float(name: str) -> None:
    result = "i1" if name.startswith("is") else "f32"
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(FLOATS)
    body = f"{name.replace('arc', 'a')}(x)"
    np.testing.assert_allclose(computed(body, "f32", result, FLOATS), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["arctan2", "copysign"])
def test_functions_of_two_floats(name: str) -> None:
    a, b = (grid.ravel() for grid in np.meshgrid(FLOATS, FLOATS))
    wanted = getattr(np, name)(a, b)
    got = computed(f"{name.replace('arc', 'a')}(x, y)", "f32", "f32", a, b)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def bit_count(x: Array) -> Array:
    return np.array([(int(value) & 255).bit_count() for value in x])


def unsigned_shift(x: Array, y: Array) -> Array:
    return (x.view(np.uint8) >> (y & 7).view(np.uint8)).view(np.int8)


OF_INTEGERS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("bit_and(x, y)", np.bitwise_and),
    ("bit_or(x, y)", np.bitwise_or),
    ("bit_xor(x, y)", np.bitwise_xor),
    ("bit_not(x)", lambda x, _: ~x),
    ("bit_count(x)", lambda x, _: bit_count(x)),
    ("shift_left(x, bit_and(y, 7))", lambda x, y: x << (y & 7)),
    ("shift_right(x, bit_and(y, 7))", lambda x, y: x >> (y & 7)),
    ("shift_right_unsigned(x, bit_and(y, 7))", unsigned_shift),
    ("shift_left(x, 9)", lambda x, _: np.zeros_like(x)),
    ("div_trunc(x, max(y, 1))", lambda x, y: np.trunc(x / np.maximum(y, 1)).astype(np.int8)),
    ("mod_trunc(x, max(y, 1))", lambda x, y: np.fmod(x, np.maximum(y, 1))),
    ("x // max(y, 1)", lambda x, y: x // np.maximum(y, 1)),
    ("x % max(y, 1)", lambda x, y: x % np.maximum(y, 1)),
]


@pytest.mark.parametrize(("body", "function"), OF_INTEGERS)
def test_functions_of_integers(body: str, function: Any) -> None:
    a, b = (grid.ravel() for grid in np.meshgrid(WHOLE, WHOLE))
    given = (a, b) if "y" in body else (a,)
    np.testing.assert_array_equal(computed(body, "i8", "i8", *given), function(a, b))

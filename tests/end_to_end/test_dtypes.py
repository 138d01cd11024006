"""Every element type and empty tensors: sharded executors agree with the reference."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.runtime.executor import Array

Shape = tuple[int, ...]

_TOLERANCE = {"f16": 1e-2, "bf16": 6e-2, "f32": 1e-5, "f64": 1e-12}
_NUMBERS = (*_TOLERANCE, "i8", "i32", "i64")


def _type(shape: Shape, dtype: str) -> str:
    """A tensor that starts at 1 in every dimension."""
    return f"!loom.tensor<{[1] * len(shape)} : {[1 + n for n in shape]}, {dtype}>"


def _program(kernel: str, parameters: str, operands: list[str], result: str) -> str:
    arguments = ", ".join(f"%a{n}: {kind}" for n, kind in enumerate(operands))
    values = ", ".join(f"%a{n}" for n in range(len(operands)))
    return f"""func.func @main({arguments}) -> {result} {{
      %y = weft.apply @{kernel}({values}) {parameters} : ({", ".join(operands)}) -> {result}
      func.return %y : {result}
    }}"""


def _array(shape: Shape, dtype: str) -> Array:
    kind = type_named(dtype)
    assert kind is not None
    generator = np.random.default_rng(0)
    integers = dtype.startswith("i")
    drawn = generator.integers(-3, 4, shape) if integers else generator.standard_normal(shape)
    return drawn.astype(numpy_dtype(kind))


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("shape", [(2, 5), (1, 1), (3, 0), (0, 4)])
@pytest.mark.parametrize("dtype", _NUMBERS)
def test_types_and_sizes(dtype: str, shape: Shape, on: str) -> None:
    rows, columns = shape
    matrix, along = _type(shape, dtype), "{axis = 1 : i64}"
    cases = [
        _program("relu", "", [matrix], matrix),
        _program("add", "", [matrix, matrix], matrix),
        _program("sum", along, [matrix], _type((rows,), dtype)),
        _program("matmul", "", [matrix, _type((columns, 3), dtype)], _type((rows, 3), dtype)),
        _program("transpose", "{perm = [1, 0]}", [matrix], _type((columns, rows), dtype)),
        _program("reshape", "{shape = [-1]}", [matrix], _type((rows * columns,), dtype)),
    ]
    if columns:
        cases.append(_program("max", along, [matrix], _type((rows,), dtype)))
        cases.append(_program("argmax", along, [matrix], _type((rows,), "i64")))
        if dtype in _TOLERANCE:
            cases.append(_program("softmax", along, [matrix], matrix))
    for text in cases:
        module = tapestry.parse_module(text)
        tapestry.run_pipeline(module, "weft-apply,loom-simplify,loom-fuse")
        inputs = {a.name: _array(a.type.box.shape, dtype) for a in tapestry.arguments(module)}
        (want,) = tapestry.run(module, inputs, on="reference").outputs
        tapestry.run_pipeline(module, "loom-shard{shards=3}")
        (got,) = tapestry.run(module, inputs, on=on).outputs
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        if dtype in _TOLERANCE and want.dtype != np.int64:
            wide = np.float64
            tolerance = _TOLERANCE[dtype]
            np.testing.assert_allclose(
                got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance
            )
        else:
            assert np.array_equal(got, want)


@pytest.mark.parametrize("on", ["reference", "numpy"])
def test_one_value_for_no_cells(on: str) -> None:
    module = tapestry.parse_module("""
        !x = !loom.tensor<[0] : [1], f32>
        !y = !loom.tensor<[0] : [0], f32>
        func.func @main(%x: !x) -> !y {
          %y = loom.operation @repeat over <[0] : [0]> [map]
                 ins(%x : (d0) -> (0)) outs((d0) -> (d0))
                 wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
          func.return %y : !y
        }""")
    (got,) = tapestry.run(module, {"x": np.ones(1, np.float32)}, on=on).outputs
    assert got.shape == (0,)

"""Integers without a sign, of every width, on every executor, against NumPy's."""

# pyright: basic

import operator

import numpy as np
import pytest

import tapestry
from tapestry.importers.building import ProgramBuilder, dtype_name

PAIRS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "lt": np.less,
    "ge": np.greater_equal,
    "bitwise_xor": np.bitwise_xor,
    "trunc_divide": operator.floordiv,
    "fmod": np.mod,
}
FOLDS = ("sum", "prod", "max", "min", "argmax", "argmin")
CASTS = ("float32", "int64", "int8", "uint8", "uint64", "bool")


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_unsigned_integers(dtype: str, on: str) -> None:
    most = np.iinfo(dtype).max
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, most, (2, 3, 8), dtype=dtype, endpoint=True)
    x[0, 0], y[0, 1], y = most, most, np.maximum(y, 1)
    by = rng.integers(0, np.iinfo(dtype).bits, (3, 8)).astype(dtype)
    build = ProgramBuilder()
    inputs = {"x": x, "y": y, "by": by}
    a, b, c = (build.argument(name, (3, 8), dtype_name(dtype)) for name in inputs)
    with np.errstate(over="ignore"):
        outs = [build.apply(name, a, b)[0] for name in PAIRS]
        want = [function(x, y) for function in PAIRS.values()]
        outs += [*build.apply("shift_left", a, c), *build.apply("shift_right", a, c)]
        want += [x << by, x >> by]
        outs += [build.apply(name, a, parameters={"axis": 1})[0] for name in (*FOLDS, "cumsum")]
        types = {"sum": {"dtype": dtype}, "prod": {"dtype": dtype}}
        want += [getattr(x, name)(1, **types.get(name, {})) for name in FOLDS]
        want.append(x.cumsum(1, dtype=dtype))
        outs += [build.apply("cast", a, parameters={"dtype": dtype_name(t)})[0] for t in CASTS]
        want += [x.astype(kind) for kind in CASTS]
    module = build.finish(outs)
    passes = "weft-apply" if on == "reference" else "weft-apply,loom-simplify,loom-fuse"
    tapestry.run_pipeline(module, passes)
    for got, wanted in zip(tapestry.run(module, inputs, on=on).outputs, want, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)

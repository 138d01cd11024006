"""Building programs call by call."""

import numpy as np
import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

import tapestry
from tapestry.importers.building import ProgramBuilder, dtype_name, kind_of
from tapestry.metakernels import WeftError


def test_lists_and_left_out_inputs() -> None:
    build = ProgramBuilder()
    x, y = build.argument("x", (2, 3), "f32"), build.argument("y.1", (2, 4), "f32")
    (both,) = build.apply("concat", [x, y], parameters={"axis": 1})
    (normal,) = build.apply("layer_norm", both, None, None, parameters={"eps": 1e-5})
    module = build.finish([normal])
    tapestry.verify_module(module)
    tapestry.run_pipeline(module, "weft-apply,loom-simplify")
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(2, 3)), "y.1": rng.normal(size=(2, 4))}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    (out,) = tapestry.run(module, inputs).outputs
    joined = np.concatenate([*inputs.values()], 1)
    centred = joined - joined.mean(-1, keepdims=True)
    expected = centred / np.sqrt(joined.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "uint8"])
def test_constants_keep_their_cells(dtype: str) -> None:
    cells = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    build = ProgramBuilder()
    outs = [build.constant(cells), build.constant(cells[0, 1], shape=(3,))]
    outs.append(build.constant(np.ones((0, 2), dtype)))
    got = tapestry.run(build.finish(outs), {}).outputs
    for have, want in zip(got, (cells, np.ones(3, dtype), np.ones((0, 2), dtype)), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


def test_negative_zero_is_not_zero() -> None:
    build = ProgramBuilder()
    (out,) = tapestry.run(build.finish([build.constant(np.array([0.0, -0.0]))]), {}).outputs
    assert list(np.signbit(out)) == [False, True]


def test_an_external_takes_whole_tensors() -> None:
    build = ProgramBuilder()
    x = build.argument("x", (3, 4), "f32")
    (out,) = build.external("sort", [x], [kind_of((3, 4), "f32")], {"descending": True})
    module = build.finish([out])
    tapestry.verify_module(module)
    cells = np.random.default_rng(1).normal(size=(3, 4)).astype("f4")
    (got,) = tapestry.run(module, {"x": cells}).outputs
    np.testing.assert_array_equal(got, -np.sort(-cells, -1))


def test_what_does_not_fit_is_said_at_its_place() -> None:
    build = ProgramBuilder()
    x = build.argument("x", (2, 3), "f32")
    place = FileLineColLoc(StringAttr("model.py"), IntAttr(12), IntAttr(5))
    with pytest.raises(WeftError, match=r"model.py:12:5.*@matmul does not apply to") as caught:
        build.apply("matmul", x, x, location=place)
    assert caught.value.location is not None
    with pytest.raises(WeftError, match=r"model.py:12:5.*no metakernel @matmull"):
        build.apply("matmull", x, x, location=place)


def test_dtypes_by_name() -> None:
    assert dtype_name(np.float32) == "f32"
    with pytest.raises(ValueError, match="no tensors of"):
        dtype_name("U3")

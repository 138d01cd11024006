"""The Python API: operators, indices, metakernels as functions, and what is said of mistakes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.diagnostics import UsageError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 3)).astype(np.float32)
N = RNG.integers(-9, 9, size=(4, 3))

_ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
_INTEGER = [operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor]
_COMPARED = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def _same(expression: Any, want: Any, **inputs: np.ndarray) -> None:
    got = tapestry.run(expression, **inputs)
    want = np.asarray(want)
    assert got.shape == expression.shape == want.shape
    assert got.dtype == expression.dtype
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("op", _ARITHMETIC + _COMPARED, ids=lambda op: op.__name__)
def test_operators_of_floats(op: Callable[..., Any]) -> None:
    x = tapestry.input("x", (4, 3), "float32")
    row = X[0] + 1
    for mine, theirs in ((op(x, 2), op(X, 2)), (op(2.5, x), op(2.5, X)), (op(x, row), op(X, row))):
        _same(mine, theirs, x=X)
    _same(op(row, x), op(row, X), x=X)


@pytest.mark.parametrize("op", _INTEGER + _COMPARED, ids=lambda op: op.__name__)
def test_operators_of_integers(op: Callable[..., Any]) -> None:
    n = tapestry.input("n", (4, 3), "int64")
    _same(op(n, 3), op(N, 3), n=N)
    _same(op(7, n * n + 1), op(7, N * N + 1), n=N)


def test_other_operators() -> None:
    x, n = tapestry.input("x", (4, 3)), tapestry.input("n", (4, 3), "int64")
    both = {"x": X, "n": N}
    _same(-x, -X, x=X)
    _same(abs(x), abs(X), x=X)
    _same(+x, X, x=X)
    _same(~n, ~N, n=N)
    _same((x > 0) & ~(n > 0), (X > 0) & ~(N > 0), **both)
    _same(x**2, X**2, x=X)
    _same(2**x, 2**X, x=X)
    _same(abs(x) ** x, abs(X) ** X, x=X)
    _same(n << 2, N << 2, n=N)
    _same(x.T @ x, X.T @ X, x=X)
    _same(X.T @ x, X.T @ X, x=X)
    _same(x + n, (X + N).astype("f4"), **both)
    _same(n + 0.5, (N + 0.5).astype("f4"), n=N)
    _same((x > 0) + 1, (X > 0) + 1, x=X)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        np.int64(2),
        slice(1, None),
        slice(None, None, -1),
        slice(3, 0, -2),
        slice(9, 2),
        (slice(None), 1),
        (..., 0),
        (None, ..., None),
        (0, 2),
        [2, 0, -1],
        (slice(1, 3), [0, 0, 2]),
        (None, 1, slice(None, None, 2)),
    ],
    ids=str,
)
def test_indices(key: Any) -> None:
    x = tapestry.input("x", (4, 3))
    _same(x[key], X[key], x=X)


@given(st.data())
@settings(max_examples=30)
def test_slices_are_those_of_numpy(data: st.DataObject) -> None:
    place = st.none() | st.integers(-7, 7)
    step = st.none() | st.integers(-3, 3).filter(bool)
    key = tuple(slice(*data.draw(st.tuples(place, place, step))) for _ in range(2))
    _same(tapestry.input("x", (4, 3))[key], X[key], x=X)


def test_a_number_takes_the_dtype_of_the_float_beside_it() -> None:
    x, mask = tapestry.input("x", (4,), "float16"), tapestry.input("mask", (4,), "bool")
    assert tapestry.where(mask, x, float("-inf")).dtype == np.float16
    assert tapestry.where(mask, 1, 0).dtype == np.int64
    assert (tapestry.input("b", (4,), "bf16") * 0.5).dtype.name == "bfloat16"


def test_an_expression_is_iterated_like_an_array() -> None:
    x = tapestry.input("x", (4, 3))
    assert (len(x), x.ndim, x.size) == (4, 2, 12)
    _same(sum(x), X.sum(0), x=X)


def test_metakernels_are_functions_and_methods() -> None:
    x = tapestry.input("x", (4, 3))
    _same(tapestry.sum(x, 1), X.sum(1), x=X)
    _same(x.sum(axis=1, keepdim=True), X.sum(1, keepdims=True), x=X)
    _same(tapestry.concat([x, x], axis=1), np.concatenate([X, X], 1), x=X)
    _same(tapestry.where(x > 0, x, 0), np.where(X > 0, X, 0), x=X)
    _same(x.cast(dtype="int64"), X.astype("i8"), x=X)
    _same(x.cast(dtype=np.float64), X.astype("f8"), x=X)
    largest, place = x.max_with_index(axis=0)
    _same(largest, X.max(0), x=X)
    _same(place, X.argmax(0), x=X)
    _same(tapestry.layer_norm(x, None, eps=0.5), _layer_norm(X), x=X)
    assert "Exponentials along one axis" in (tapestry.softmax.__doc__ or "")
    assert {"relu", "run", "matmul"} <= set(dir(tapestry))


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda x: x.permute(1, 0) + 0, X.T),
        (lambda x: x.expand(2, 4, 3) + 0, np.broadcast_to(X, (2, 4, 3))),
        (lambda x: x.tile(2, 2), np.tile(X, (2, 2))),
        (lambda x: tapestry.einsum("ij,kj->ik", x, x), X @ X.T),
        (lambda x: tapestry.einsum("ij,kj->ik", [x, x]), X @ X.T),
    ],
    ids=range(5),
)
def test_arguments_are_taken_as_numpy_and_pytorch_take_theirs(
    make: Callable[[Any], Any], want: np.ndarray
) -> None:
    _same(make(tapestry.input("x", (4, 3))), want, x=X)


@pytest.mark.parametrize("bounds", [(5,), (2, 5), (9, 2, -3)], ids=str)
def test_arange_takes_its_bounds_as_range_does(bounds: tuple[int, ...]) -> None:
    _same(tapestry.arange(*bounds), np.arange(*bounds))
    _same(tapestry.arange(2, stop=5), np.arange(2, 5))


def _layer_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt(x.var(1, keepdims=True) + 0.5)


def test_no_metakernel_is_hidden_by_another_public_name() -> None:
    from tapestry.metakernels import load_library

    package = Path(tapestry.__file__).parent
    modules = {path.stem for path in package.iterdir()}
    own = set(tapestry._HOMES)
    hidden = set(load_library().names) & (modules | own)
    assert not hidden


def test_results_have_the_structure_that_was_asked_for() -> None:
    x = tapestry.input("x", (4, 3))
    y = {"twice": x * 2, "half": x / 2}
    got = tapestry.run(y, x=X)
    assert list(got) == ["twice", "half"]
    np.testing.assert_array_equal(got["twice"], X * 2)
    assert isinstance(tapestry.run([x + 1], x=X), list)
    one, two = tapestry.run((x, x + 1), {"x": X})
    np.testing.assert_array_equal(one + 1, two)


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
def test_a_program_is_compiled_once_and_called_often(on: str) -> None:
    x, w = tapestry.input("x", (4, 3)), tapestry.input("w", (3, 5), "float32")
    program = tapestry.compile(tapestry.softmax(x @ w, axis=-1), on=on)
    lowered = program.lowered
    for scale in (1, 2):
        e = np.exp(X @ (np.ones((3, 5), "f4") * scale) * 1.0)
        got = program(X, w=np.full((3, 5), scale, np.float32))
        np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert program.lowered is lowered


def test_a_sharded_program_is_the_same_function() -> None:
    x = tapestry.input("x", (4, 3))
    y = {"y": (x @ x.T).sum(axis=1)}
    split = tapestry.shard(y, shards=2)
    np.testing.assert_allclose(split(X)["y"], (X @ X.T).sum(1), rtol=1e-5)
    assert "shards <" in str(split.lowered)
    assert "is split by" in tapestry.explain(split) or "over" in tapestry.explain(split)


def test_kernels_can_be_read() -> None:
    x = tapestry.input("x", (4, 3))
    source = tapestry.compile(tapestry.relu(x), on="triton").kernels()
    assert "@triton.jit" in source
    assert "test_expressions.py" in source


def test_kernels_have_the_schedules_of_a_device() -> None:
    """Those of Hopper where none is named: 16 programs would leave it idle."""
    a, b = (tapestry.input(name, (512, 512), "float16") for name in "ab")
    program = tapestry.compile(a @ b, on="triton")
    usual, plain = program.kernels(), program.kernels("none")
    assert usual == program.kernels("sm_90") != program.kernels("a100")
    assert "M = 128, N = 128" in plain
    assert "M = 128, N = 128" not in usual
    with pytest.raises(UsageError, match="no device 'h300'"):
        program.kernels("h300")


def test_tensors_of_pytorch_come_back_as_such() -> None:
    torch = pytest.importorskip("torch")
    x = tapestry.input("x", (4, 3), torch.bfloat16)
    given = torch.from_numpy(X).to(torch.bfloat16)
    got = tapestry.run(x * 2 + given, x=given)
    assert torch.equal(got, given * 2 + given)
    assert got.dtype == torch.bfloat16


_MINE = """
thrice:
  doc: Three times as much.
  inputs: {x: {shape: "[$d...]", dtype: number}}
  index: "[$d...]"
  wrap: "3 * x"
relu:
  doc: Another relu, which is one for large cells.
  inputs: {x: {shape: "[$d...]", dtype: number}}
  index: "[$d...]"
  wrap: "where(x > 1, x, 0)"
both:
  doc: One after the other.
  inputs: {x: {shape: "[$d...]", dtype: number}}
  steps:
    three: {op: thrice, x: x}
    y: {op: relu, x: three}
  outputs: {y: {}}
"""


def test_metakernels_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(_MINE)
    mine = tapestry.load_metakernels(tmp_path)
    assert dir(mine) == ["both", "relu", "thrice"]
    x = tapestry.input("x", (4, 3))
    want = np.where(X * 3 > 1, X * 3, 0)
    _same(mine.both(x), want, x=X)
    tapestry.save(mine.both(x), tmp_path / "both.mlir")
    (tmp_path / "mine.yaml").unlink()
    np.testing.assert_allclose(tapestry.load(tmp_path / "both.mlir")(X), want)
    with pytest.raises(tapestry.TapestryError, match="two metakernels of one program are named"):
        tapestry.run(mine.relu(x) + tapestry.relu(x), x=X)
    with pytest.raises(AttributeError, match="no metakernel 'twice' here; there is both"):
        _ = mine.twice


_WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: tapestry.matmul(x, x), tapestry.TapestryError, r"@matmul does not apply to"),
    (lambda x: x + "a", tapestry.TapestryError, "str is no operand"),
    (lambda x: x + np.array(["a"]), tapestry.TapestryError, "no array of numbers"),
    (lambda x: bool(x > 0), TypeError, "no truth value.*nothing has run"),
    (lambda x: float(x), TypeError, "is no number"),
    (lambda x: np.asarray(x), TypeError, "has no cells.*tapestry.run"),
    (lambda x: x.summ(), AttributeError, "did you mean sum"),
    (lambda x: tapestry.relu(x, 2), TypeError, r"relu\(x\): too many positional"),
    (lambda x: tapestry.sum(x, axis=2), tapestry.TapestryError, "axis is 2"),
    (lambda x: x[5], tapestry.TapestryError, "index 5 is outside"),
    (lambda x: x[0, 0, 0], tapestry.TapestryError, "3 indices for 2 axes"),
    (lambda x: x[..., ...], tapestry.TapestryError, "two ellipses"),
    (lambda x: x[x > 0], tapestry.TapestryError, "how many cells are true"),
    (lambda x: x[[0, 7]], tapestry.TapestryError, "outside of its axis"),
    (lambda x: x["a"], tapestry.TapestryError, "is no index"),
    (lambda x: tapestry.run(x, y=X), tapestry.TapestryError, "no argument named y"),
    (lambda x: tapestry.run(x, x=X[:2]), tapestry.TapestryError, r"must be float32 of shape \(4"),
    (lambda x: tapestry.run(x, x=X, on="tpu"), tapestry.TapestryError, "no executor 'tpu'"),
    (lambda _: tapestry.run(3, x=X), tapestry.TapestryError, "int is no expression"),
    (lambda x: tapestry.compile(x)(X, x=X), tapestry.TapestryError, "given twice"),
    (lambda x: tapestry.compile(x)(X, X), tapestry.TapestryError, "2 arrays are given"),
    (lambda x: tapestry.run(x + tapestry.input("x", (3,))), tapestry.TapestryError, "two inputs"),
    (lambda _: tapestry.input("a b", (3,)), tapestry.TapestryError, "cannot be named"),
    (lambda _: tapestry.input(3, (3,)), tapestry.TapestryError, "cannot be named 3"),
    (lambda x: tapestry.run(x, x=X, on=X), tapestry.TapestryError, "on is ndarray.*\n.*mapping"),
    (lambda _: tapestry.arange(1, 2, stop=3), TypeError, "multiple values for argument 'stop'"),
    (lambda _: tapestry.arange(), TypeError, "missing a required argument: 'stop'"),
    (lambda x: x.view(12), AttributeError, "did you mean reshape"),
    (lambda _: tapestry.input("a", (-3,)), tapestry.TapestryError, "cannot have the shape"),
    (lambda _: tapestry.input("a", (3,), "U8"), tapestry.TapestryError, "no tensors of"),
    (lambda x: tapestry.run(x, X), tapestry.TapestryError, "by name, not as a ndarray"),
    (lambda _: tapestry.input("n", (3,), "int8") + 2**70, tapestry.TapestryError, "is no int8"),
    (np.linalg.inv, tapestry.UsageError, r"np\.linalg\.inv does not take"),
    (lambda x: tapestry.save(x, "x.pickle"), tapestry.TapestryError, "ends with .mlir"),
]


@pytest.mark.parametrize("number", range(len(_WRONG)))
def test_mistakes_are_said_in_one_message(number: int) -> None:
    wrong, kind, message = _WRONG[number]
    with pytest.raises(kind, match=message) as caught:
        wrong(tapestry.input("x", (4, 3)))
    error = caught.value
    if isinstance(error, tapestry.TapestryError) and error.location is not None:
        assert error.location.file == __file__


def test_one_number_stands_for_a_list_of_known_length() -> None:
    x, w = tapestry.input("x", (1, 3, 8, 8)), tapestry.input("w", (4, 3, 3, 3))
    one = tapestry.conv2d(x, w, padding=1, stride=2)
    both = tapestry.conv2d(x, w, padding=[1, 1], stride=[2, 2])
    assert one.shape == both.shape == (1, 4, 4, 4)
    with pytest.raises(tapestry.TapestryError, match=r"padding is true; it must be int\[2\]"):
        tapestry.conv2d(x, w, padding=True)


def test_expressions_say_what_they_are() -> None:
    x = tapestry.input("x", (4, 3))
    assert repr(x.sum(axis=1) / 2) == "<float32[4]: div(sum(x, axis=1), 2.0)>"
    deep = x
    for _ in range(2000):
        deep = deep + 1
    assert len(repr(deep)) < 120
    _same(deep, X + 2000, x=X)

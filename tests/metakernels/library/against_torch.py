"""Compares entries of the library with PyTorch, on shapes, values and partitions drawn at random.

    ROWS = {"add": Row(torch.add, broadcast(ANY, ANY, alpha=floats(-2, 2)))}
    test_rows = law(ROWS)

A row says who computes the same, and what its arrays and parameters are drawn from. The dtype and
shape of a result are those of PyTorch on the same arrays; its values are those of PyTorch in f64,
rounded, up to a few units in the last place.
"""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapestry.metakernels.libraries import LIBRARY as FOLDER
from tests import on_gpu
from tests.metakernels.library.applying import HALVES, LIBRARY, NAMES, NUMPY, run

torch = pytest.importorskip("torch")

FLOATS = ("f16", "bf16", "f32", "f64")
WIDE = ("f32", "f64")
INTS = ("i8", "i16", "i32", "i64")
NUMBERS = (*INTS, *FLOATS)
ANY = ("i1", *NUMBERS)

TORCH = {
    "i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
    "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "ui8": torch.uint8,
}  # fmt: skip
DTYPE = {kind: name for name, kind in TORCH.items()}
EPS = {"f16": 2**-10, "bf16": 2**-7, "f32": 2**-23, "f64": 2**-52}

Draw = Any
"""A strategy of (arrays, parameters)."""


@dataclass(frozen=True)
class Row:
    """How an entry is checked: `reference(*tensors, **parameters)` gives what it should.

    `ulps` bounds the error relative to the result, `absolute` the error in units of the dtype's
    precision; `dtype` is False where the entry and PyTorch differ in the dtype of the result,
    `wide` where what is computed depends on the dtype, so that f64 computes something else.
    """

    reference: Callable[..., Any]
    draw: Draw
    ulps: float = 4
    absolute: float = 0
    dtype: bool = True
    wide: bool = True


def to_torch(array: np.ndarray) -> Any:
    """The tensor that holds an array."""
    if array.dtype == HALVES[1]:
        return torch.tensor(array.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(array)


def to_numpy(value: Any) -> np.ndarray:
    """The array that a tensor holds; halves as f32."""
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def widened(value: Any) -> Any:
    """A float tensor in f64; others as they are."""
    return value.double() if value.is_floating_point() else value


def like(number: float, *tensors: Any) -> Any:
    """A number as PyTorch wants it beside these tensors: whole beside integers."""
    return number if any(t.is_floating_point() for t in tensors) else int(number)


def listed(values: Any) -> list[Any]:
    """The results of a reference as a list."""
    return list(values) if isinstance(values, tuple | list) else [values]


def check_result(found: np.ndarray, same: Any, exact: Any, row: Row) -> None:
    """`found` is `exact` up to the row's tolerance, in the shape and dtype of `same`."""
    name = NAMES[found.dtype]
    assert found.shape == tuple(same.shape)
    if row.dtype:
        assert name == DTYPE[same.dtype]
    if name not in EPS:
        np.testing.assert_array_equal(found, to_numpy(same if row.dtype else exact))
        return
    with np.errstate(over="ignore"):
        wanted = to_numpy(exact).astype(found.dtype).astype(np.float64)
    require_close(found.astype(np.float64), wanted, row, EPS[name])


def require_close(found: np.ndarray, wanted: np.ndarray, row: Row, precision: float) -> None:
    """Equal, infinities and NaN too, up to the row's tolerance in a dtype of that precision."""
    finite = np.isfinite(wanted)
    with np.errstate(invalid="ignore"):
        error = np.abs(found - wanted)
    bound = precision * (row.ulps * np.abs(wanted) + row.absolute)
    near = np.where(finite, error <= bound, found == wanted) | (np.isnan(found) & np.isnan(wanted))
    assert near.all(), f"{found[~near]} where {wanted[~near]} is right"


def check_row(name: str, row: Row, arrays: list[np.ndarray], parameters: Mapping[str, Any]) -> Any:
    """Run the entry, whole, anywhere; compare with PyTorch; return what it computed."""
    tensors = [to_torch(array) for array in arrays]
    same = listed(row.reference(*tensors, **parameters))
    exact = same
    if row.wide:
        exact = listed(row.reference(*map(widened, tensors), **parameters))
    with np.errstate(all="ignore"):
        found = run(name, arrays, parameters, starts=(-1, 2))
    for result, kind, value in zip(found, same, exact, strict=True):
        check_result(result, kind, value, row)
    return found


def law(rows: Mapping[str, Row], examples: int = 10) -> Callable[..., None]:
    """A test per row: PyTorch agrees, and any partition gives what the whole gives."""

    @pytest.mark.parametrize("name", sorted(rows))
    @settings(
        max_examples=on_gpu.examples(examples), deadline=None, derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    @given(data=st.data())
    def test(name: str, data: st.DataObject) -> None:
        row = rows[name]
        arrays, parameters = data.draw(row.draw)
        whole = check_row(name, row, arrays, parameters)
        parts = data.draw(st.integers(1, 4))
        with np.errstate(all="ignore"):
            split = run(name, arrays, parameters, "numpy", cut=lambda size: min(size, parts))
        for left, right in zip(split, whole, strict=True):
            precision = EPS.get(NAMES[right.dtype], 0)
            require_close(left.astype(np.float64), right.astype(np.float64), row, precision)

    return test


def entries(*files: str) -> set[str]:
    """The names of the entries of library files."""
    names: set[str] = set()
    for file in files:
        names |= set(yaml.safe_load((Path(FOLDER) / f"{file}.yaml").read_text(encoding="utf-8")))
    return names


def examples_agree(rows: Mapping[str, Row], name: str) -> None:
    """The worked examples of an entry are what PyTorch computes."""
    template, row = LIBRARY.get(name), rows[name]
    for example in template.examples:
        tensors = [
            to_torch(np.array(example.inputs[entry.name]).astype(
                NUMPY[example.dtypes.get(entry.name, "f32")]
            ))
            for entry in template.inputs
            if entry.name in example.inputs
        ]  # fmt: skip
        parameters = dict(example.parameters)
        results = listed(row.reference(*tensors, **parameters))
        for output, result in zip(template.outputs, results, strict=True):
            wanted = np.array(example.outputs[output.name], np.float64)
            found = to_numpy(result)
            assert wanted.shape == found.shape
            precision = max(EPS.get(DTYPE[result.dtype], 0), 1e-6)
            np.testing.assert_allclose(wanted, found, rtol=precision, atol=precision)


# What arrays and parameters are drawn from.

sizes = st.sampled_from((0, 1, 1, 2, 3, 4))
positive = st.sampled_from((1, 1, 2, 3, 4))


@st.composite
def array(draw: Any, dtypes, shape, low: float = -3, high: float = 3, special: bool = False):
    """An array of one of the dtypes; floats in [low, high], `special` with infinities and NaN."""
    name = draw(st.sampled_from(dtypes))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = NUMPY[name]
    if name == "i1":
        return random.random(shape) < 0.5
    if name in INTS:
        bottom, top = max(np.iinfo(kind).min, int(low * 9)), min(np.iinfo(kind).max, int(high * 9))
        return random.integers(bottom, top + 1, shape).astype(kind)
    cells = np.asarray(random.random(shape) * (high - low) + low)
    if special and random.random() < 0.7:
        chosen = random.random(shape) < 0.3
        cells = np.where(chosen, random.choice([0.0, np.inf, -np.inf, np.nan], shape), cells)
    return cells.astype(kind)


@st.composite
def parameters(draw: Any, **kinds):
    """A dictionary of parameters; some of those with a default are left out."""
    return {name: draw(kind) for name, kind in kinds.items()}


def floats(low: float, high: float):
    """A float that f32 holds exactly."""
    return st.integers(int(low * 8), int(high * 8)).map(lambda n: n / 8)


@st.composite
def broadcast(
    draw: Any, *kinds, low: float = -3, high: float = 3, special: bool = True, **params: Any
):
    """Arrays whose shapes broadcast together, one per tuple of dtypes.

    Those of several dtypes have a dimension: PyTorch lets the dtype of a scalar give way.
    """
    names = [draw(st.sampled_from(dtypes)) for dtypes in kinds]
    least = int(len(set(names)) > 1)
    rank = draw(st.sampled_from((1, 2, 2, 3, 3, least)))
    full = [draw(sizes) for _ in range(rank)]
    arrays = []
    for name in names:
        shape = [draw(st.sampled_from((size, size, 1))) for size in full]
        if draw(st.booleans()):
            shape = shape[draw(st.integers(0, len(shape) - least)) :]
        arrays.append(draw(array((name,), tuple(shape), low, high, special)))
    return arrays, draw(parameters(**params))


def unary(dtypes=FLOATS, low: float = -3, high: float = 3, special: bool = True, **params: Any):
    """One array of any shape."""
    return broadcast(dtypes, low=low, high=high, special=special, **params)


@st.composite
def shapes(draw: Any, least: int = 0, most: int = 3, filled: bool = False):
    """A shape; `filled` without empty dimensions."""
    rank = draw(st.integers(least, most))
    return tuple(draw(positive if filled else sizes) for _ in range(rank))


@st.composite
def axes_of(
    draw: Any, dtypes, low: float = -3, high: float = 3, special: bool = False,
    filled: bool = False, **params: Any,
):  # fmt: skip
    """One array, some of its axes (from either end, in any order; one alone perhaps), keepdim."""
    shape = draw(shapes(filled=filled))
    chosen = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
    axis: Any = [axis - len(shape) if draw(st.booleans()) else axis for axis in chosen]
    if len(axis) == 1 and draw(st.booleans()):
        (axis,) = axis
    given = {"axis": axis, "keepdim": draw(st.booleans())}
    return [draw(array(dtypes, shape, low, high, special))], {
        **given, **draw(parameters(**params))
    }  # fmt: skip


@st.composite
def one_axis(
    draw: Any, dtypes, low: float = -3, high: float = 3, special: bool = False, **params: Any
):
    """One array and one of its axes, which is not empty."""
    shape = list(draw(shapes(1)))
    axis = draw(st.integers(0, len(shape) - 1))
    shape[axis] = draw(positive)
    given = {"axis": axis - len(shape) if draw(st.booleans()) else axis}
    return [draw(array(dtypes, tuple(shape), low, high, special))], {
        **given, **draw(parameters(**params))
    }  # fmt: skip


@st.composite
def channels(draw: Any, dtypes):
    """An array, and a number for each index along its dimension 1, or one for all."""
    name = draw(st.sampled_from(dtypes))
    shape = draw(shapes(1))
    count = draw(st.sampled_from((1, shape[1] if len(shape) > 1 else 1)))
    return [draw(array((name,), shape)), draw(array((name,), (count,)))], {}

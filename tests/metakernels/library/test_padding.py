"""Padding and sums of products against NumPy, for any shapes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import TensorSpec, WeftError, expand
from tapestry.metakernels.expansion import MapFold, Move
from tests.metakernels.library.applying import LIBRARY
from tests.metakernels.library.shapes import DTYPES, QUICK, cells, result, same, shapes

MODES: Any = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@QUICK
@given(st.data(), shapes(1, sizes=st.integers(1, 4)), DTYPES, st.sampled_from(sorted(MODES)))
def test_pads_of_cells(data: Any, shape: Any, dtype: Any, mode: str) -> None:
    most = {"reflect": -1, "replicate": 2, "circular": 0}[mode]
    widths = [[data.draw(st.integers(0, max(size + most, 0))) for _ in range(2)] for size in shape]
    before, after = map(list, zip(*widths, strict=True))
    x = cells(shape, dtype)
    (got,) = result("pad", [x], 2, before=before, after=after, mode=mode)
    same(got, np.pad(x, widths, MODES[mode]))


@QUICK
@given(st.data(), shapes(1), DTYPES, st.integers(-9, 9))
def test_pads_of_a_value(data: Any, shape: Any, dtype: Any, value: int) -> None:
    before, after = ([data.draw(st.integers(-1, 3)) for _ in shape] for _ in "ab")
    x = cells(shape, dtype)
    if any(b + n + a < 0 for b, n, a in zip(before, shape, after, strict=True)):
        with pytest.raises(WeftError) as caught:
            result("pad", [x], before=before, after=after)
        assert caught.value.kind == "requirement"
        return
    wide = np.pad(x, [(max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True)],
                  constant_values=value)  # fmt: skip
    cut = tuple(slice(max(-b, 0), n - max(-a, 0)) for b, a, n in
                zip(before, after, wide.shape, strict=True))  # fmt: skip
    (got,) = result("pad", [x], before=before, after=after, value=float(value))
    same(got, wide[cut])


def test_a_constant_pad_is_one_read_that_may_be_outside() -> None:
    parameters = {"before": [1], "after": [0]}
    padded = expand(LIBRARY.get("pad"), [TensorSpec((3,), "f32")], parameters, LIBRARY)
    assert isinstance(padded.body, MapFold)
    assert [str(read) for read in padded.reads] == ["(d0) -> (d0 - 1)"]
    cut = expand(LIBRARY.get("pad"), [TensorSpec((3,), "f32")], {"before": [-1], "after": [0]},
                 LIBRARY)  # fmt: skip
    assert isinstance(cut.body, Move)
    assert cut.fills == (None,)


@pytest.mark.parametrize(
    ("mode", "before"), [("reflect", 3), ("circular", 4), ("replicate", -1), ("constant", -4)]
)
def test_pads_that_reach_too_far(mode: str, before: int) -> None:
    with pytest.raises(WeftError) as caught:
        result("pad", [cells([3])], before=[before], after=[0], mode=mode)
    assert caught.value.kind == "requirement"


@st.composite
def products(draw: Any) -> Any:
    """An equation and the shapes of its operands."""
    sizes = dict(
        zip("abcd", draw(st.lists(st.integers(0, 3), min_size=4, max_size=4)), strict=True)
    )
    operands = draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(operands)))
    equation = ",".join(operands)
    if draw(st.booleans()):
        chosen: list[str] = draw(st.lists(st.sampled_from(used), unique=True)) if used else []
        equation += "->" + "".join(chosen)
    return equation, [[sizes[label] for label in operand] for operand in operands]


@QUICK
@given(products(), st.sampled_from([np.int64, np.float64]))
def test_einsum(product: Any, dtype: Any) -> None:
    equation, found = product
    arrays = [cells(shape, dtype) for shape in found]
    (got,) = result("einsum", [arrays], 1, equation=equation)
    same(got, np.einsum(equation, *arrays))


@pytest.mark.parametrize(
    ("equation", "kind", "says"),
    [
        ("ij->ji->i", "equation", "is no equation"),
        ("i1->i", "equation", "a letter for each axis"),
        ("...ij->ij", "equation", "name the axes"),
        ("ij->ii", "equation", "has i twice"),
        ("ij->k", "equation", "k of the result is in no operand"),
        ("i" * 600, "equation", "more than 512"),
        ("ij,jk", "requirement", "#i"),
        ("ijk->i", "requirement", "$d"),
        ("ii->i", "requirement", "$d"),
        (7, "parameter", "must be equation"),
    ],
)
def test_equations_that_do_not_fit(equation: Any, kind: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        result("einsum", [[cells([2, 3])]], equation=equation)
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)

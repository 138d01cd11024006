"""What the language says about sets of axes, empty folds, typed numbers and what steps pass on."""

from typing import Any

import pytest

from tapestry.metakernels import TensorSpec, WeftError, evaluate_expression, expand, load_library
from tapestry.metakernels.expansion import Composite, Expansion, MapFold, Move
from tapestry.zspace import AffineMap

LIBRARY = load_library()


def own(text: str, *specs: TensorSpec | None, **parameters: Any) -> Expansion:
    """The expansion of a template called t."""
    library = LIBRARY.with_text(text)
    return expand(library.get("t"), specs, parameters, library)


def f32(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "f32")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("others([1], 3)", [0, 2]),
        ("others([], 2)", [0, 1]),
        ("others([1, 0], 2)", []),
        ("inverse([2, 0, 1])", [1, 2, 0]),
        ("inverse([])", []),
        ("where(1, [7], 8)", [7]),
        ("where(2 > 3, [7], 8)", 8),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert evaluate_expression(text, {}) == value


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("others([3], 3)", "index_out_of_range", "3 is out of range"),
        ("others(1, 3)", "kind_mismatch", "must be a list"),
        ("inverse([0, 2])", "kind_mismatch", "no permutation"),
        ("where([1], 2, 3)", "kind_mismatch", "the condition of where must be an integer"),
        ("where(1, 2)", "kind_mismatch", "takes 3 arguments, not 2"),
    ],
)
def test_wrong_expressions(text: str, kind: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        evaluate_expression(text, {})
    assert caught.value.kind == kind
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("axis", "shape", "extents", "read"),
    [
        ([0, 2], (3,), (3, 2, 4), "(d0, d1, d2) -> (d1, d0, d2)"),
        ([-1], (2, 3), (2, 3, 4), "(d0, d1, d2) -> (d0, d1, d2)"),
        (1, (2, 4), (2, 4, 3), "(d0, d1, d2) -> (d0, d2, d1)"),
        ([], (), (2, 3, 4), "(d0, d1, d2) -> (d0, d1, d2)"),
    ],
)
def test_a_fold_of_a_set_of_axes(
    axis: Any, shape: tuple[int, ...], extents: tuple[int, ...], read: str
) -> None:
    total = expand(LIBRARY.get("sum"), [f32(2, 3, 4)], {"axis": axis}, LIBRARY)
    assert total.space is not None
    assert (total.space.extents, total.outputs[0].spec.shape) == (extents, shape)
    assert [str(projection) for projection in total.reads] == [read]
    kept = expand(LIBRARY.get("sum"), [f32(2, 3, 4)], {"axis": axis, "keepdim": True}, LIBRARY)
    assert len(kept.outputs[0].spec.shape) == 3


def test_an_axis_twice_is_refused() -> None:
    with pytest.raises(WeftError, match="lists an axis twice"):
        expand(LIBRARY.get("sum"), [f32(2, 3)], {"axis": [1, -1]}, LIBRARY)


def test_a_number_is_no_list_unless_it_is_an_axis() -> None:
    with pytest.raises(WeftError, match=r"it must be int\[\]"):
        expand(LIBRARY.get("reshape"), [f32(2, 3)], {"shape": 6}, LIBRARY)


def test_a_fold_over_no_dimensions_is_what_one_point_comes_to() -> None:
    loss = expand(LIBRARY.get("mse_loss"), [f32(3), f32(3)], {"reduction": "none"}, LIBRARY)
    assert isinstance(loss.body, MapFold)
    assert (loss.body.monoid, loss.body.unwrap) == (None, None)
    assert loss.space is not None
    assert loss.space.kinds == ("map",)
    half = [TensorSpec((), "f16")]
    assert expand(LIBRARY.get("sum"), half, {}, LIBRARY).body == Move(AffineMap.identity(0))


SCALED = """
t:
  inputs: {x: {shape: "[$n]", dtype: float}}
  steps: {result: {op: scale, x: x, factor: FACTOR}}
"""


def test_a_step_computes_a_float_parameter() -> None:
    body = own(SCALED.replace("FACTOR", '"where($n > 3, 1 / sqrt($n), 2)"'), f32(4)).body
    assert isinstance(body, Composite)
    inner = body.calls[0].expansion.body
    assert isinstance(inner, MapFold)
    assert "value=0.5" in repr(inner.wrap)


@pytest.mark.parametrize("factor", ["x", "'tanh'", "1 +", "$m"])
def test_a_float_parameter_that_is_no_number(factor: str) -> None:
    with pytest.raises(WeftError) as caught:
        own(SCALED.replace("FACTOR", f'"{factor}"'), f32(4))
    assert caught.value.location is not None


PASSED = """
t:
  inputs:
    x: {shape: "[$r, $n]", dtype: float}
    w: {shape: "[$n]", dtype: float, optional: true}
  steps: {result: {op: affine, x: x, weight: w}}
"""


def test_steps_pass_on_optional_inputs() -> None:
    given, absent = (own(PASSED, f32(2, 3), *more).body for more in ([f32(3)], []))
    assert isinstance(given, Composite)
    assert isinstance(absent, Composite)
    assert given.calls[0].operands == ("x", "w")
    assert absent.calls[0].operands == ("x",)
    assert isinstance(absent.calls[0].expansion.body, Move)


def test_an_optional_input_is_not_passed_on_as_one_that_is_needed() -> None:
    text = PASSED.replace("op: affine, x: x, weight: w", "op: add, a: x, b: w")
    own(text, f32(2, 3), f32(3))
    with pytest.raises(WeftError, match="input b of add is not given"):
        own(text, f32(2, 3))


def typed(wrap: str, dtype: str, result: str) -> Expansion:
    text = f"""
t:
  inputs: {{x: {{shape: "[$n]", dtype: $t}}, y: {{shape: "[$n]", dtype: $s}}}}
  index: "[$n]"
  wrap: "{wrap} + 0 * y"
  outputs: {{result: {{dtype: "{result}"}}}}
"""
    return own(text, TensorSpec((4,), dtype), f32(4))


@pytest.mark.parametrize(
    ("dtype", "result", "wanted"),
    [
        ("i32", "floating($t)", "f32"), ("i1", "floating($t)", "f32"),
        ("f16", "floating($t)", "f16"), ("f64", "floating($t, $s)", "f64"),
        ("i64", "floating($t, $s)", "f32"),
    ],
)  # fmt: skip
def test_floating_dtypes(dtype: str, result: str, wanted: str) -> None:
    assert typed("floating(x)", dtype, result).outputs[0].spec.dtype == wanted


def test_a_half_that_is_widened_and_comes_back_is_moved() -> None:
    text = 't: {inputs: {x: {shape: "[$n]", dtype: $t}}, index: "[$n]", wrap: "cast(x + 0, $t)"}'
    assert isinstance(own(text, TensorSpec((4,), "f16")).body, MapFold)
    text = text.replace("x + 0", "cast(x, f32)")
    assert isinstance(own(text, TensorSpec((4,), "f16")).body, Move)

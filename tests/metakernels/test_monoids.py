"""Monoids of templates: several parts, their types, statistics, and wrong definitions."""

from typing import Any

import numpy as np
import pytest

from tapestry.frontend import parse_text
from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.expansion import MonoidBody
from tapestry.metakernels.scalars import Constant
from tapestry.passes.weft.apply import apply_metakernels
from tapestry.runtime.executor import NoWatch, find_executor

MEAN = """\
t:
  inputs: {x: {shape: "[$n]", dtype: "$t"}}
  index: "[]"
  fold: {n: {extent: $n, monoid: tally}}
  monoids:
    tally:
      zero: [0, 0]
      merge: ["a[0] + b[0]", "a[1] + b[1]"]
      commutative: true
  wrap: ["x", "cast(1, i64)"]
  unwrap: "fold[0] / cast(fold[1], f32)"
"""


def apply(text: str, dtype: str = "f32") -> Any:
    library = load_library().with_text(text, "f.yaml")
    return expand(library.get("t"), [TensorSpec((4,), dtype)], {}, library)


def run(text: str, x: Any, executor: str = "reference") -> Any:
    module = parse_text(
        """
        !x = !loom.tensor<[0] : [4], f32>
        !y = !loom.tensor<[] : [], f32>
        func.func @main(%x: !x) -> !y {
          %y = weft.apply @t(%x) : (!x) -> !y
          func.return %y : !y
        }""",
        "m.mlir",
    )
    apply_metakernels(module, load_library().with_text(text, "f.yaml"))
    module.verify()
    return find_executor(executor).run(module, {"x": x}, NoWatch()).outputs[0]


def test_a_state_of_parts_with_types_of_their_own():
    monoid = apply(MEAN).body.monoid
    assert isinstance(monoid, MonoidBody)
    assert monoid.state == ("f32", "i64")
    assert monoid.zero == (Constant(0.0, "f32"), Constant(0, "i64"))
    assert apply(MEAN, "f16").body.monoid.state == ("f32", "i64")


@pytest.mark.parametrize("executor", ["reference", "numpy"])
def test_a_mean(executor: str):
    x = np.array([1, 2, 3, 6], np.float32)
    assert run(MEAN, x, executor) == 3


def test_a_state_of_one_part_needs_no_list():
    text = MEAN.replace("[0, 0]", "-inf").replace('["a[0] + b[0]", "a[1] + b[1]"]', '"max(a, b)"')
    text = text.replace('["x", "cast(1, i64)"]', "abs(x)").replace(
        '"fold[0] / cast(fold[1], f32)"', "fold"
    )
    assert run(text, np.array([1, -7, 3, 6], np.float32)) == 7


@pytest.mark.parametrize("executor", ["reference", "numpy"])
def test_statistics(executor: str):
    text = """
t:
  inputs: {x: {shape: "[$n]", dtype: float}}
  index: "[]"
  fold: {n: {extent: $n, monoid: logsumexp}}
  wrap: ["x", 1]
  unwrap: "fold[0] + log(fold[1])"
"""
    x = np.array([1, 2, 3, 800], np.float32)
    np.testing.assert_allclose(run(text, x, executor), np.logaddexp.reduce(x), rtol=1e-6)
    text = text.replace("logsumexp", "welford").replace('["x", 1]', '[1, "x", 0]')
    text = text.replace("fold[0] + log(fold[1])", "fold[2] / fold[0]")
    np.testing.assert_allclose(run(text, x, executor), x.var(), rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "kind", "where", "says"),
    [
        ("tally:", "add:", "monoid", "7:7", "is a built-in monoid"),
        ("tally:", "taly:", "monoid", "7:7", "nothing folds by it"),
        ("monoid: tally", "monoid: tall", "monoid", "7:7", "did you mean tall?"),
        ("monoid: tally", "monoid: argmax", "monoid", "7:7", "nothing folds by it"),
        ("zero: [0, 0]", "zero: [0]", "monoid", "7:7", "the zero has 1 parts, and merge gives 2"),
        ("zero: [0, 0]", "zero: []", "monoid", "7:7", "the zero has 0 parts"),
        ("zero: [0, 0]", "zeros: [0, 0]", "unknown_name", "7:7", "did you mean zero?"),
        ("zero: [0, 0]", "zero: [0, x]", "unknown_name", "7:17", "a number is needed"),
        ("zero: [0, 0]", "zero: [0, 0.5]", "dtype_mismatch", "7:17", "0.5 is no i64"),
        ("zero: [0, 0]", "zero: [1, 0]", "monoid", None, "is not the identity"),
        ("a[0] + b[0]", "a[0] + c[0]", "unknown_name", "8:16", "c is no input"),
        ("a[0] + b[0]", "a + b[0]", "kind_mismatch", "8:16", "write a[0], a[1]"),
        ("a[0] + b[0]", "a[0] + b[2]", "index_out_of_range", "8:16", "has 2 parts"),
        ("a[0] + b[0]", "a[0] > b[0]", "monoid", None, "is not"),
        ("a[1] + b[1]", "a[1] + b[0]", "dtype_mismatch", "8:31", "i64 is required"),
        ("a[1] + b[1]", "a[1] - b[1]", "monoid", None, "is not the identity"),
        ("a[0] + b[0]", "a[0] + @n", "unknown_name", "8:16", "@n is no index dimension"),
        ('"x", "cast(1, i64)"', '"x", 1', "dtype_mismatch", "10:15", "give it one"),
        ('"x", "cast(1, i64)"', '"x"', "invalid_template", "10:9", "wrap gives 1"),
        ("commutative: true", "commutative: 3", "invalid_template", "9:20", "boolean"),
    ],
)
def test_wrong_monoids(old: str, new: str, kind: str, where: str | None, says: str):
    assert old in MEAN
    text = MEAN.replace(old, new)
    with pytest.raises(WeftError) as caught:
        if where is None:
            run(text, np.zeros(4, np.float32))
        else:
            apply(text)
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value), caught.value
    place = str(caught.value.location)
    assert place.startswith("m.mlir:5:") if where is None else place == f"f.yaml:{where}", place


def test_statistics_fold_floats():
    text = MEAN.replace("monoid: tally", "monoid: logsumexp").replace("i64)", "i32)")
    start, end = text.index("  monoids:"), text.index("  wrap:")
    with pytest.raises(WeftError, match="logsumexp folds floats, not i32") as caught:
        apply(text[:start] + text[end:], "i32")
    assert caught.value.kind == "dtype_mismatch"


FLAGGED = """\
t:
  inputs: {x: {shape: "[$n]"}}
  index: "[]"
  fold: {n: {extent: $n, monoid: kept}}
  monoids:
    kept:
      zero: [0, 0]
      merge: ["a[0] or b[0]", "MERGE"]
  wrap: ["x > 0", "x"]
  unwrap: "where(fold[0], fold[1], 0)"
"""
FIRST = "where(a[0], a[1], where(b[0], b[1], a[1] + b[1]))"
LAST = "where(b[0], b[1], where(a[0], a[1], a[1] + b[1]))"


@pytest.mark.parametrize("executor", ["reference", "numpy"])
@pytest.mark.parametrize(("merge", "wanted"), [(FIRST, 7.0), (LAST, 2.0)])
def test_the_first_and_the_last_with_a_flag(merge: str, wanted: float, executor: str):
    x = np.array([-5, 7, 2, -3], np.float32)
    assert run(FLAGGED.replace("MERGE", merge), x, executor) == wanted
    assert run(FLAGGED.replace("MERGE", merge), -abs(x), executor) == 0


def test_a_flag_that_loses_what_it_hides():
    with pytest.raises(WeftError, match="is not the identity of merge"):
        run(FLAGGED.replace("MERGE", "where(a[0], a[1], b[1])"), np.ones(4, np.float32))

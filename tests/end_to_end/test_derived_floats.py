"""Derived folds lose no digits that the folds as written keep, and no NaN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tests.end_to_end import derivable

PIPELINE = "weft-apply,loom-simplify,loom-fuse,loom-derive{options},loom-simplify,loom-fuse"
ROW = "!x = !loom.tensor<[0, 0] : [4, 12], f32>\n!y = !loom.tensor<[0] : [4], f32>\n"
ONE = "!loom.tensor<[0, 0] : [4, 1], f32>"


def _centred(value: str, of: str) -> str:
    return f"""
  %m{of} = weft.apply @mean(%{of}) {{axis = 1, keepdim = true}} : (!x) -> {ONE}
  %{value} = weft.apply @sub(%{of}, %m{of}) : (!x, {ONE}) -> !x"""


def _of_row(name: str, result: str = "!y", options: str = " {axis = 1}") -> str:
    return f"""{ROW}func.func @main(%x: !x) -> {result} {{
  %r = weft.apply @{name}(%x){options} : (!x) -> {result}
  func.return %r : {result}
}}"""


SCALED_DEVIATIONS = f"""{ROW}func.func @main(%x: !x) -> !y {{{_centred("d", "x")}
  %p = weft.apply @mul(%d, %mx) : (!x, {ONE}) -> !x
  %s = weft.apply @mean(%p) {{axis = 1}} : (!x) -> !y
  func.return %s : !y
}}"""

RELATIVE = {
    "variance": _of_row("var"),
    "standard deviation": _of_row("std"),
    "layer norm": _of_row("layer_norm", "!x", ""),
    "scaled deviations": SCALED_DEVIATIONS,
    "moments": derivable.MOMENTS,
}


def _derived(text: str, options: str = "") -> tuple[ModuleOp, list[loom.OperationOp]]:
    module = parse_module(text)
    run_pipeline(module, PIPELINE.format(options=options))
    folds = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    return module, [op for op in folds if "derivation" in op.attributes]


def _run(module: ModuleOp, inputs: dict[str, Array], on: str) -> tuple[Array, ...]:
    return tuple(find_executor(on).run(module, inputs, NoWatch()).outputs)


def _plain(text: str, inputs: dict[str, Array]) -> tuple[Array, ...]:
    module = parse_module(text)
    run_pipeline(module, "weft-apply")
    return _run(module, inputs, "reference")


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
@pytest.mark.parametrize("label", RELATIVE)
def test_what_is_relative_to_no_number_is_nan(label: str, on: str, shards: int):
    """Rows with NaN and with infinities, in the first shard, the last and the middle."""
    x = np.random.default_rng(0).standard_normal((4, 12)).astype("f4")
    x[0, 4], x[1, 11], x[2, 0] = np.nan, np.inf, -np.inf
    module, (derived,) = _derived(RELATIVE[label])
    run_pipeline(module, f"loom-shard{{grid=1,{shards} op={derived.label.data}}}")
    got, want = _run(module, {"x": x}, on), _plain(RELATIVE[label], {"x": x})
    for n, (one, other) in enumerate(zip(got, want, strict=True)):
        rows = [bool(np.isnan(row).all()) for row in one]
        is_mean = label == "moments" and n == 0
        assert rows == [True, not is_mean, not is_mean, False]
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@dataclass(frozen=True)
class Unsafe:
    """A program that would cancel in one pass, its inputs, and its value in float64."""

    text: str
    inputs: Callable[[np.random.Generator], dict[str, Array]]
    exact: Callable[[dict[str, Array]], Array]
    error: float


def _softmax(x: Array) -> Array:
    p = np.exp(x - x.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


UNSAFE = {
    "spread of a softmax": Unsafe(
        f"""{ROW}func.func @main(%x: !x) -> !y {{
  %p = weft.apply @softmax(%x) : (!x) -> !x
  %s = weft.apply @std(%p) {{axis = 1}} : (!x) -> !y
  func.return %s : !y
}}""",
        lambda random: {"x": 1e-4 * random.standard_normal((4, 12))},
        lambda cells: _softmax(cells["x"]).std(1, ddof=1),
        1e-8,
    ),
    "likelihood of a label": Unsafe(
        f"""{ROW}func.func @main(%x: !x, %t: !x) -> !y {{
  %p = weft.apply @log_softmax(%x) : (!x) -> !x
  %q = weft.apply @mul(%p, %t) : (!x, !x) -> !x
  %s = weft.apply @sum(%q) {{axis = 1}} : (!x) -> !y
  func.return %s : !y
}}""",
        lambda random: {"x": 1e6 + random.standard_normal((4, 12)), "t": np.eye(4, 12)},
        lambda cells: (np.log(_softmax(cells["x"])) * cells["t"]).sum(1),
        1e-6,
    ),
}


@pytest.mark.parametrize("label", UNSAFE)
def test_sums_that_cancel_are_apart_unless_asked_for(label: str):
    case = UNSAFE[label]
    inputs = {n: v.astype("f4") for n, v in case.inputs(np.random.default_rng(0)).items()}
    exact = case.exact({n: v.astype("f8") for n, v in inputs.items()})
    errors: dict[str, float] = {}
    for options in ("", "{separate=true}"):
        module, derived = _derived(case.text, options)
        folds = [o for o in module.walk() if isinstance(o, loom.OperationOp) and o.monoid_name]
        assert derived
        assert len(folds) == (1 if options else 2)
        errors[options] = float(np.abs(_run(module, inputs, "numpy")[0] - exact).max())
    assert errors[""] < case.error
    assert not errors["{separate=true}"] < 100 * case.error, "nothing would be gained by refusing"


def test_a_covariance_has_both_centres():
    text = f"""{ROW}func.func @main(%x: !x, %z: !x) -> !y {{{_centred("d", "x")}{_centred("e", "z")}
  %p = weft.apply @mul(%d, %e) : (!x, !x) -> !x
  %s = weft.apply @mean(%p) {{axis = 1}} : (!x) -> !y
  func.return %s : !y
}}"""
    random = np.random.default_rng(0)
    x, z = (100 + random.standard_normal((2, 4, 12))).astype("f4")
    module, (derived,) = _derived(text)
    assert len(derived.state_types) == 4
    a, b = (v.astype("f8") - v.astype("f8").mean(1, keepdims=True) for v in (x, z))
    (got,) = _run(module, {"x": x, "z": z}, "numpy")
    np.testing.assert_allclose(got, (a * b).mean(1), atol=1e-5)

"""External kernels: the same cells whole and split on every executor; what may go wrong is said."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.diagnostics import InvalidProgramError
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime import externals
from tapestry.runtime.executor import EXECUTORS, NoWatch, find_executor
from tapestry.runtime.externals import find_external, gives_new, register_external

_PROGRAM = """
!x = !loom.tensor<[3, 1] : [9, 8], f32>
func.func @main(%x: !x) -> (!x, !loom.tensor<[0, 0] : [6, 7], i64>) {{
  %s = loom.external @{name} over <[3] : [9]>
         ins(%x : (d0) -> (d0, 1) :> [1, 7]) outs((d0) -> (d0, 1) :> [1, 7]) {more} : (!x) -> !x
  %o = loom.external @argsort over <[0] : [3]>
         ins(%s : (d0) -> (d0 * 2 + 3, 1) :> [2, 7]) outs((d0) -> (d0 * 2, 0) :> [2, 7])
         : (!x) -> !loom.tensor<[0, 0] : [6, 7], i64>
  func.return %s, %o : !x, !loom.tensor<[0, 0] : [6, 7], i64>
}}
"""
X = np.random.default_rng(3).integers(-4, 4, (6, 7)).astype(np.float32)
X[2, 3] = np.nan


def run(on: str, pipeline: str = "", *, name: str = "sort", more: str = ""):
    module = parse_text(_PROGRAM.format(name=name, more=more), "p.mlir")
    verify_module(module)
    run_pipeline(module, pipeline)
    verify_module(module)
    return find_executor(on).run(module, {"x": X}, NoWatch())


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize(
    "pipeline", ["", "loom-shard{shards=3}", "loom-shard{shards=3},loom-expand-shards"]
)
@pytest.mark.parametrize("descending", [False, True])
def test_sorts(on: str, pipeline: str, descending: bool) -> None:
    more = "parameters {descending = true}" if descending else ""
    result = run(on, pipeline, more=more)
    ordered, places = result.outputs
    # NaN is greater than every number.
    expected = np.sort(X, -1)[:, ::-1] if descending else np.sort(X, -1)
    np.testing.assert_array_equal(ordered, expected)
    np.testing.assert_array_equal(places, np.argsort(ordered, -1, kind="stable"))
    assert {"sort", "argsort"} <= {record.name for record in result.records}


def test_descending_keeps_the_order_of_equal_cells() -> None:
    text = _PROGRAM.replace(": (!x) -> !loom", "parameters {{descending = true}} : (!x) -> !loom")
    module = parse_text(text.format(name="sort", more=""))
    _, places = find_executor("numpy").run(module, {"x": np.zeros_like(X)}, NoWatch()).outputs
    np.testing.assert_array_equal(places, np.tile(np.arange(7), (6, 1)))


@pytest.mark.parametrize("on", EXECUTORS)
def test_one_that_is_not_registered_is_located(on: str) -> None:
    with pytest.raises(
        InvalidProgramError, match=r"p\.mlir:4:3: error: no implementation of @nix"
    ) as e:
        run(on, name="nix")
    assert "@argsort" in str(e.value)


@pytest.mark.parametrize("on", EXECUTORS)
def test_results_that_do_not_fit_are_refused(on: str) -> None:
    @register_external("narrow")
    def narrow(arrays, parameters):
        del parameters
        return (arrays[0][:, 1:],)

    with pytest.raises(
        InvalidProgramError, match=r"p\.mlir:4:3: error: @narrow returned float32 of"
    ):
        run(on, name="narrow")


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("parameters {bogus = 3}", "@sort failed: it has no parameter bogus; it has descending"),
        ('parameters {descending = "x"}', "@sort failed: descending is true or false, not 'x'"),
    ],
)
def test_what_an_implementation_refuses_is_located(on: str, more: str, says: str) -> None:
    with pytest.raises(InvalidProgramError, match=rf"p\.mlir:4:3: error: {says}"):
        run(on, more=more)


@pytest.mark.parametrize("on", EXECUTORS)
def test_tensors_without_dimensions(on: str) -> None:
    @register_external("next")
    def _(arrays, _):
        return (arrays[0] + np.float32(1),)

    module = parse_text("""
    !x = !loom.tensor<[] : [], f32>
    func.func @main(%x: !x) -> !x {
      %y = loom.external @next over <[] : []> ins(%x : () -> ()) outs(() -> ()) : (!x) -> !x
      func.return %y : !x
    }
    """)
    verify_module(module)
    result = find_executor(on).run(module, {"x": np.float32([2])[0].reshape(())}, NoWatch())
    assert result.outputs[0] == 3


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sorting_on_a_gpu_is_sorting_on_the_cpu(name, descending):
    """Ties keep their order, and NaN is the greatest."""
    torch = pytest.importorskip("torch")
    cells = np.random.default_rng(0).integers(0, 5, (6, 40)).astype(np.float32)
    cells[:, ::7] = np.nan
    given = {"descending": descending}
    (want,) = find_external(name, "numpy", None)([cells], given)
    (got,) = find_external(name, "torch", None)([torch.from_numpy(cells)], given)
    np.testing.assert_array_equal(got.numpy(), want)


_RESHAPED = """
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!v = !loom.tensor<[0, 0] : [6, 4], f32>
!w = !loom.tensor<[0] : [24], f32>
!y = !loom.tensor<[0] : [1], f32>
func.func @main(%x: !x) -> (!y, !w) {
  %v = loom.reshape %x : !x -> !v
  %w = loom.reshape %x : !x -> !w
  %y = loom.external @corner over <[] : []> ins(%v : () -> (0, 0) :> [2, 4])
         outs(() -> (0) :> [1]) : (!v) -> !y
  %s = loom.external @sort over <[] : []> ins(%w : () -> (0) :> [24])
         outs(() -> (0) :> [24]) : (!w) -> !w
  func.return %y, %s : !y, !w
}
"""


@pytest.mark.parametrize("on", EXECUTORS)
def test_what_is_read_under_another_shape_is_cut_in_that_shape(on: str) -> None:
    register_external("corner")(lambda arrays, _: [arrays[0].sum(keepdims=True).reshape(1)])
    module = parse_text(_RESHAPED)
    verify_module(module)
    x = np.arange(24, dtype=np.float32)[::-1].reshape(4, 6).copy()
    corner, ordered = find_executor(on).run(module, {"x": x}, NoWatch()).outputs
    np.testing.assert_array_equal(corner, [x.reshape(6, 4)[:2].sum()])
    np.testing.assert_array_equal(ordered, np.arange(24))


def test_results_are_copied_unless_nobody_else_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another implementation of a kernel may keep what it returns."""
    for name in ("_registered", "_leading", "_new"):
        monkeypatch.setattr(externals, name, getattr(externals, name).copy())
    x = np.array([[3.0, 1.0, 2.0]], np.float32)
    program = tapestry.compile(np.sort(tapestry.input("x", x.shape, "float32"), axis=1))
    assert gives_new("sort")
    np.testing.assert_array_equal(program(x), [[1, 2, 3]])
    kept = np.array([[7.0, 8.0, 9.0]], np.float32)
    register_external("sort")(lambda *_: (kept,))
    assert not gives_new("sort")
    found = tapestry.compile(np.sort(tapestry.input("x", x.shape, "float32"), axis=1))(x)
    found[:] = 0
    np.testing.assert_array_equal(kept, [[7, 8, 9]])

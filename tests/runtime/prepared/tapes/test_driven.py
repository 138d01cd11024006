"""Parts with no interpreter between their loops: the same cells, and nothing played by frames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.arrays.blocks import BlockIndexError
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.blas import find_function
from tapestry.runtime.cpu.threads import Workers
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops import loop as loops
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.tapes import driven
from tapestry.runtime.prepared.tapes.frames import Frame

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_LOOPS = Loops(1)

_SOFTMAX = """
!t = !loom.tensor<[0, 0] : [61, 40], f32>
func.func @main(%x: !t) -> !t {
  %y = weft.apply @softmax(%x) : (!t) -> !t
  func.return %y : !t
}
"""

_ATTENTION = """
!q = !loom.tensor<[0, 0, 0] : [2, 50, 16], f32>
!k = !loom.tensor<[0, 0, 0] : [2, 16, 48], f32>
!s = !loom.tensor<[0, 0, 0] : [2, 50, 48], f32>
!v = !loom.tensor<[0, 0, 0] : [2, 48, 16], f32>
func.func @main(%q: !q, %k: !k, %v: !v) -> !q {
  %s = weft.apply @matmul(%q, %k) : (!q, !k) -> !s
  %p = weft.apply @softmax(%s) : (!s) -> !s
  %y = weft.apply @matmul(%p, %v) : (!s, !v) -> !q
  func.return %y : !q
}
"""

_CAUSAL = """
!q = !loom.tensor<[0, 0, 0] : [2, 50, 16], f32>
!k = !loom.tensor<[0, 0, 0] : [2, 48, 16], f32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %y = weft.apply @scaled_dot_product_attention(%q, %k, %v) {causal = true} : (!q, !k, !k) -> !q
  func.return %y : !q
}
"""

_TRIANGLE = """
!x = !loom.tensor<[0, 0] : [80, 80], f32>
!w = !loom.tensor<[0, 0] : [80, 8], f32>
func.func @main(%x: !x, %w: !w) -> !w {
  %y = loom.operation @below over <[0, 0, 0] : [80, 8, 80]> [map, map, fold] by @add
         ins(%x : (i, n, k) -> (i, k), %w : (i, n, k) -> (k, n)) outs((i, n) -> (i, n))
         domain(d0 - d2 >= 0, 70 - d0 - d2 >= 0)
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32  loom.yield %p : f32 }
         : (!x, !w) -> !w
  func.return %y : !w
}
"""

HEADS = """
!q = !loom.tensor<[0, 0, 0, 0] : [3, 2, 20, 16], f32>
!w = !loom.tensor<[0, 0, 0] : [2, 16, 24], f32>
!y = !loom.tensor<[0, 0, 0] : [3, 20, 24], f32>
func.func @main(%q: !q, %k: !q, %v: !q, %w: !w) -> !y {
  %h = weft.apply @scaled_dot_product_attention(%q, %k, %v) : (!q, !q, !q) -> !q
  %y = loom.operation @projected over <[0, 0, 0, 0, 0] : [3, 20, 24, 2, 16]>
         [map, map, map, fold, fold] by @add
         ins(%h : (b, i, n, h, d) -> (b, h, i, d), %w : (b, i, n, h, d) -> (h, d, n))
         outs((b, i, n) -> (b, i, n))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32  loom.yield %p : f32 }
         : (!q, !w) -> !y
  func.return %y : !y
}
"""

_RAMP = """
!t = !loom.tensor<[0, 0] : [61, 40], f32>
func.func @main(%x: !t) -> !t {
  %y = loom.operation @ramp over <[0, 0] : [61, 40]> [map, map]
       ins(%x : (i, k) -> (i, k)) outs((i, k) -> (i, k))
       wrap (%p: f32) {
         %i = loom.index 0 : i64
         %f = arith.sitofp %i : i64 to f32
         %r = arith.mulf %p, %f : f32
         loom.yield %r : f32
       } : (!t) -> !t
  func.return %y : !t
}
"""

_LOOKUP = """
!x = !loom.tensor<[0, 0] : [50, 8], f32>
!i = !loom.tensor<[0, 0] : [900, 8], i64>
!y = !loom.tensor<[0, 0] : [900, 8], f32>
func.func @main(%x: !x, %i: !i) -> !y {
  %y = weft.apply @gather(%x, %i) {axis = 0 : i64} : (!x, !i) -> !y
  func.return %y : !y
}
"""


def _prepared(text: str, pipeline: str, threads: int, cache: int = 4096) -> PreparedProgram:
    module = parse_text(text)
    run_pipeline(module, pipeline)
    parts = partial(in_parts, small=0, threads=threads, cache=cache, loops=_LOOPS)
    return PreparedProgram(module, Library(loops=_LOOPS), parts)


def _random(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    source = np.random.default_rng(0)
    return [source.standard_normal(shape, np.float32) for shape in shapes]


_CASES = {
    "softmax": (_SOFTMAX, "default", _random((61, 40))),
    "attention": (_ATTENTION, "default", _random((2, 50, 16), (2, 16, 48), (2, 48, 16))),
    "attention as defined": (
        _ATTENTION,
        "weft-apply,loom-simplify,loom-fuse,loom-group",
        _random((2, 50, 16), (2, 16, 48), (2, 48, 16)),
    ),
    "causal attention": (_CAUSAL, "default", _random((2, 50, 16), (2, 48, 16), (2, 48, 16))),
    "causal attention as defined": (
        _CAUSAL,
        "weft-apply,loom-simplify,loom-fuse,loom-group",
        _random((2, 50, 16), (2, 48, 16), (2, 48, 16)),
    ),
    "attention of several heads, whose rows are those of all sequences": (
        HEADS,
        "default",
        _random((3, 2, 20, 16), (3, 2, 20, 16), (3, 2, 20, 16), (2, 16, 24)),
    ),
    "attention of several heads, which are copied to be one row": (
        HEADS,
        "weft-apply,loom-simplify,loom-fuse,loom-group",
        _random((3, 2, 20, 16), (3, 2, 20, 16), (3, 2, 20, 16), (2, 16, 24)),
    ),
    "triangle": (_TRIANGLE, "default", _random((80, 80), (80, 8))),
    "coordinates": (_RAMP, "default", _random((61, 40))),
    "lookup": (
        _LOOKUP,
        "default",
        [*_random((50, 8)), np.random.default_rng(0).integers(0, 50, (900, 8))],
    ),
}


def _need_products() -> None:
    if find_function("cblas_sgemm") is None:
        pytest.skip("NumPy multiplies by a library that has no such function")


def _by_frames(
    monkeypatch: pytest.MonkeyPatch, case: str, given: Sequence[np.ndarray], cache: int = 4096
) -> np.ndarray:
    text, pipeline, _ = _CASES[case]
    with monkeypatch.context() as patched:
        patched.setattr(driven, "can_take", lambda: False)
        (made,) = _prepared(text, pipeline, 1, cache)(given)
    return np.array(made)


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize(("threads", "cache"), [(1, 4096), (3, 4096), (1, 1 << 20)])
def test_frames_give_the_same_and_play_none(
    monkeypatch: pytest.MonkeyPatch, case: str, threads: int, cache: int
) -> None:
    if "attention" in case or case == "triangle":
        _need_products()
    text, pipeline, given = _CASES[case]
    want = _by_frames(monkeypatch, case, given, cache)

    def play(*_: object) -> None:
        raise AssertionError("a frame played a part")

    monkeypatch.setattr(Frame, "play", play)
    program = _prepared(text, pipeline, threads, cache)
    for _ in range(3):
        (made,) = program(given)
        np.testing.assert_array_equal(made, want)


@pytest.mark.skipif(not native.stores_past_caches(), reason="stores go to caches here")
@pytest.mark.parametrize("case", ["softmax", "attention as defined", "coordinates", "lookup"])
def test_only_what_is_read_no_more_is_written_past_caches(
    monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    if "attention" in case:
        _need_products()
    text, pipeline, given = _CASES[case]
    want = _by_frames(monkeypatch, case, given)
    texts = set[str]()
    compiled = loops.compiled

    def kept(text: str, about: str = "") -> object:
        texts.add(text)
        return compiled(text, about)

    monkeypatch.setattr(loops, "compiled", kept)
    monkeypatch.setattr(driven, "passes_caches", lambda _: True)
    monkeypatch.setattr(loops, "_PASSING", 0)
    program = _prepared(text, pipeline, 1)
    for _ in range(2):
        (made,) = program(given)
        np.testing.assert_array_equal(made, want)
    past = sum("!nontemporal !0\n" in text for text in texts)
    by_loops = case != "attention as defined"  # whose last result is a product
    assert past == by_loops
    assert len(texts) > past or case in ("coordinates", "lookup")


@pytest.mark.parametrize("threads", [1, 2])
def test_arrays_may_lie_otherwise_at_each_call(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    text, pipeline, (x,) = _CASES["softmax"]
    program = _prepared(text, pipeline, threads)
    wide = np.repeat(np.repeat(x, 2, 0), 3, 1)
    for given in (x, x.T.copy().T, wide[::2, ::3], x[::-1], x.copy()):
        (made,) = program([given])
        np.testing.assert_array_equal(made, _by_frames(monkeypatch, "softmax", [given]))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_place_that_is_not_there_is_said(threads: int) -> None:
    text, pipeline, (x, index) = _CASES["lookup"]
    program = _prepared(text, pipeline, threads)
    for wrong in (50, -1):
        bad = index.copy()
        bad[5, 2] = bad[860, 0] = wrong
        for _ in range(2):
            with pytest.raises(BlockIndexError, match=f"index {wrong} is out of range"):
                program([x, bad])
        (made,) = program([x, index])
        np.testing.assert_array_equal(made, np.take_along_axis(x, index, 0))


@pytest.mark.parametrize("threads", [1, 2])
def test_what_does_not_count_may_be_infinite_or_missing(threads: int) -> None:
    """Points outside a domain add nothing, though zero times infinity is not a number."""
    _need_products()
    text, pipeline, (x, w) = _CASES["triangle"]
    program = _prepared(text, pipeline, threads)
    for wrong in (np.inf, np.nan):
        bad = w.copy()
        bad[20, 3] = bad[79, 0] = wrong
        for given in (w, bad, w):
            (want,) = (
                find_executor("reference")
                .run(parse_text(text), {"x": x, "w": given}, NoWatch())
                .outputs
            )
            (made,) = program([x, given])
            np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-5)
            assert np.isfinite(made[:20]).all()
            assert np.isfinite(made).all() == (given is w)


class _Team:
    """Tapestry's threads as if they were the host's; `rows` has how many took parts of a call."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def count(self) -> int:
        return 3

    def run(self, function: int, rows: np.ndarray) -> None:
        self.rows.append(len(rows))
        Workers().run(function, rows)

    def step(self, rows: object) -> None:
        """None: nothing is linked."""


def test_the_threads_of_a_host_share_what_is_small() -> None:
    text = _SOFTMAX.replace("[61, 40]", "[301, 400]")
    module = parse_text(text)
    run_pipeline(module, "default")
    team = _Team()
    library = Library(loops=Loops(1, team))
    program = PreparedProgram(
        module, library, partial(in_parts, products=False, loops=library.loops)
    )
    (x,) = _random((301, 400))
    (made,) = program([x])
    assert team.rows == [3]
    weights = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(made, weights / weights.sum(1, keepdims=True), rtol=1e-5)

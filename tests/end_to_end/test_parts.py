"""States whose parts vary along different dimensions: any shards equal the whole, everywhere.

The index space is (i, j, d, e): j is folded, and nothing varies along e, which every output but the
first leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.parts import varying_axes
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime import numpy_executor
from tapestry.runtime.arrays.mapfold import Tensor
from tapestry.runtime.executor import EXECUTORS, Array, NoWatch, find_executor
from tapestry.zspace import Partition, Range
from tests.amounts import drawn

INDEX = Range((1, 0, -2, 0), (4, 5, 2, 2))

_ONLINE = """
loom.monoid @online commutative zero [0xFF800000 : f32, 0.0 : f32, 0.0 : f32]
  merge (%m0: f32, %l0: f32, %o0: f32, %m1: f32, %l1: f32, %o1: f32) {
    %m = arith.maximumf %m0, %m1 : f32
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.cmpf oeq, %m, %low : f32
    %ref = arith.select %none, %zero, %m : f32
    %d0 = arith.subf %m0, %ref : f32
    %d1 = arith.subf %m1, %ref : f32
    %a0 = math.EXP %d0 : f32
    %a1 = math.EXP %d1 : f32
    %x0 = arith.mulf %l0, %a0 : f32
    %x1 = arith.mulf %l1, %a1 : f32
    %l = arith.addf %x0, %x1 : f32
    %y0 = arith.mulf %o0, %a0 : f32
    %y1 = arith.mulf %o1, %a1 : f32
    %o = arith.addf %y0, %y1 : f32
    loom.yield %m, %l, %o : f32, f32, f32
  }
"""

_COVARIANCE = """
loom.monoid @covariance commutative zero [0.0 : f32, 0.0 : f32, 0.0 : f32, 0.0 : f32]
  merge (%n0: f32, %x0: f32, %y0: f32, %c0: f32, %n1: f32, %x1: f32, %y1: f32, %c1: f32) {
    %n = arith.addf %n0, %n1 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %none = arith.cmpf oeq, %n, %zero : f32
    %safe = arith.select %none, %one, %n : f32
    %w = arith.divf %n1, %safe : f32
    %dx = arith.subf %x1, %x0 : f32
    %dy = arith.subf %y1, %y0 : f32
    %wx = arith.mulf %dx, %w : f32
    %wy = arith.mulf %dy, %w : f32
    %x = arith.addf %x0, %wx : f32
    %y = arith.addf %y0, %wy : f32
    %c = arith.addf %c0, %c1 : f32
    %p = arith.mulf %dx, %dy : f32
    %q = arith.mulf %p, %w : f32
    %r = arith.mulf %q, %n0 : f32
    %s = arith.addf %c, %r : f32
    loom.yield %n, %x, %y, %s : f32, f32, f32, f32
  }
"""

_ONE = "%one = arith.constant 1.0 : f32"


@dataclass(frozen=True)
class Case:
    """A fold of `%x` over (i, j) and `%y` over (j, d), and what its parts vary along."""

    monoids: str
    by: str
    wrap: str
    unwrap: str
    outs: tuple[str, ...]
    axes: tuple[tuple[int, ...], ...]
    domain: str = ""
    state: tuple[str, ...] = ()
    exact: bool = False

    def first(self) -> Case:
        """The case with its first output alone, which leaves no dimension out."""
        body, _, values = self.unwrap.rpartition("loom.yield")
        unwrap = f"{body}loom.yield {values.split(',')[0]}"
        return replace(self, outs=self.outs[:1], unwrap=unwrap)

    def module(self, partition: Partition | None = None) -> ModuleOp:
        """A program of it."""
        x, y = "!loom.tensor<[1, 0] : [4, 5], f32>", "!loom.tensor<[0, -2] : [5, 2], f32>"
        kept = {"i": (1, 4), "d": (-2, 2), "e": (0, 2)}
        kinds: list[str] = []
        for out in self.outs:
            bounds = [kept[name] for name in out]
            start, end = [low for low, _ in bounds], [high for _, high in bounds]
            kinds.append(f"!loom.tensor<{start} : {end}, f32>")
        maps = ", ".join(f"(i, d, e) -> ({', '.join(out)})" for out in self.outs)
        types, count = ", ".join(kinds), len(self.outs)
        results = ", ".join(f"%o#{n}" for n in range(count)) if count > 1 else "%o"
        shards = "" if partition is None else f"shards <{partition}>"
        parts = self.state or ("f32",) * len(self.axes)
        state = ", ".join(f"%s{n}: {kind}" for n, kind in enumerate(parts))
        yielded = ", ".join(parts)
        return parse_text(f"""{self.monoids}
func.func @main(%x: {x}, %y: {y}) -> ({types}) {{
  %o{f":{count}" if count > 1 else ""} = loom.operation @f over <{INDEX}> [map, fold, map, map]
       by @{self.by}
       ins(%x : (i, j, d, e) -> (i, j), %y : (i, j, d, e) -> (j, d)) outs({maps}) {self.domain}
       {shards}
       wrap (%x: f32, %y: f32) {{ {_ONE} {self.wrap} : {yielded} }}
       unwrap ({state}) {{ {self.unwrap} : {", ".join(["f32"] * count)} }}
       : ({x}, {y}) -> ({types})
  func.return {results} : {types}
}}""")


CASES = {
    "attention": Case(
        _ONLINE.replace("EXP", "exp"),
        "online",
        "loom.yield %x, %one, %y",
        "%r = arith.divf %s2, %s1 : f32  %l = math.log %s1 : f32  loom.yield %r, %l",
        ("ide", "i"),
        ((0,), (0,), (0, 1)),
    ),
    # Whole numbers to the power of two: every order gives the same bits.
    "exact": Case(
        _ONLINE.replace("EXP", "exp2"),
        "online",
        "loom.yield %x, %one, %y",
        "loom.yield %s2, %s1, %s0",
        ("edi", "i", "i"),
        ((0,), (0,), (0, 1)),
        exact=True,
    ),
    "causal": Case(
        _ONLINE.replace("EXP", "exp2"),
        "online",
        "loom.yield %x, %one, %y",
        "loom.yield %s2, %s1, %s0",
        ("ide", "i", "i"),
        ((0,), (0,), (0, 1)),
        domain="domain(d0 - d1 - 2 >= 0)",
        exact=True,
    ),
    "window": Case(
        _ONLINE.replace("EXP", "exp2"),
        "online",
        "loom.yield %x, %one, %y",
        "loom.yield %s2, %s1",
        ("ide", "id"),
        ((0, 1), (0, 1), (0, 1)),
        domain="domain(d1 - d2 >= 0)",
        exact=True,
    ),
    "welford": Case(
        "",
        "welford",
        "%z = arith.constant 0.0 : f32 loom.yield %one, %y, %z",
        "%v = arith.divf %s2, %s0 : f32  loom.yield %v, %s1, %s0",
        ("ide", "d", ""),
        ((), (1,), (1,)),
    ),
    "covariance": Case(
        _COVARIANCE,
        "covariance",
        "%z = arith.constant 0.0 : f32 loom.yield %one, %x, %y, %z",
        "loom.yield %s3, %s1, %s2",
        ("edi", "i", "d"),
        ((), (0,), (1,), (0, 1)),
    ),
    "argmax": Case(
        "",
        "argmax",
        "%j = loom.index 1 : i64 loom.yield %x, %j",
        "%n = arith.sitofp %s1 : i64 to f32  loom.yield %n, %s0",
        ("ide", "i"),
        ((0,), (0,)),
        state=("f32", "i64"),
        exact=True,
    ),
}


def _inputs() -> dict[str, Array]:
    random = np.random.default_rng(3)
    return {
        "x": random.integers(-3, 4, (3, 5)).astype(np.float32),
        "y": random.integers(-4, 5, (5, 4)).astype(np.float32),
    }


def _run(on: str, module: ModuleOp) -> tuple[Array, ...]:
    verify_module(module)
    return find_executor(on).run(module, _inputs(), NoWatch()).outputs


def _same(case: Case, got: tuple[Array, ...], want: tuple[Array, ...]) -> None:
    for one, other in zip(got, want, strict=True):
        if case.exact:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def _operation(module: ModuleOp) -> loom.OperationOp:
    (op,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    return op


def grid(random: Random, box: Range) -> Partition:
    """Cuts anywhere along every dimension."""
    cuts: list[list[int]] = []
    for start, end in zip(box.start, box.end, strict=True):
        inner = [at for at in range(start + 1, end) if random.random() < 0.4]
        cuts.append([start, *inner, end])
    return Partition.grid(cuts)


def pieces(random: Random, box: Range, depth: int = 3) -> list[Range]:
    """A box cut in two, each part cut anywhere else in its turn: no grid."""
    dims = [d for d in range(box.rank) if box.shape[d] > 1]
    if depth == 0 or not dims or random.random() < 0.2:
        return [box]
    dim = random.choice(dims)
    at = random.randrange(box.start[dim] + 1, box.end[dim])
    low, high = list(box.end), list(box.start)
    low[dim] = high[dim] = at
    halves = Range(box.start, tuple(low)), Range(tuple(high), box.end)
    return [part for half in halves for part in pieces(random, half, depth - 1)]


def check(name: str, seed: int, on: str) -> None:
    """Any shards, spelled out or not and merged by trees or not, equal the whole."""
    random, case = Random(seed), CASES[name]
    index = _operation(case.module()).index
    partition = grid(random, index)
    if random.random() < 0.5:
        partition = Partition.explicit(pieces(random, index))
    if random.random() < 0.3 or _operation(case.module()).sharding_problems(partition):
        case = case.first()
    want = _run("reference", case.module())
    module = case.module(partition)
    if random.random() < 0.8:
        arity = random.choice(["", "{arity=2}", "{arity=3}"])
        run_pipeline(module, f"loom-expand-shards{arity}")
    _same(case, _run(on, module), want)


@pytest.mark.parametrize("name", CASES)
def test_what_parts_vary_along(name: str) -> None:
    module = CASES[name].module()
    verify_module(module)
    assert varying_axes(_operation(module)) == CASES[name].axes


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("on", ["numpy", "triton"])
def test_executors_agree(on: str, name: str) -> None:
    case = CASES[name]
    _same(case, _run(on, case.module()), _run("reference", case.module()))


@pytest.mark.parametrize("name", CASES)
def test_any_shards_equal_the_whole(name: str) -> None:
    @settings(max_examples=drawn(12), deadline=None)
    @given(st.integers(0, 10**6), st.sampled_from(["reference", "numpy"]))
    def law(seed: int, on: str) -> None:
        check(name, seed, on)

    law()


@settings(max_examples=drawn(8), deadline=None)
@given(st.sampled_from(sorted(CASES)), st.integers(0, 10**6))
def test_kernels(name: str, seed: int) -> None:
    check(name, seed, "triton")


@pytest.mark.slow
@pytest.mark.parametrize("on", EXECUTORS)
def test_many(on: str) -> None:
    for seed in range(50):
        for name in CASES:
            check(name, seed, on)


def test_shards_store_parts_over_their_own_dimensions() -> None:
    module = CASES["attention"].module(Partition.balanced(INDEX, (1, 3, 1, 1)))
    run_pipeline(module, "loom-expand-shards{arity=2}")
    verify_module(module)
    partial = [
        [tensor_type(out).box.rank for out in op.outs]
        for op in module.walk()
        if isinstance(op, loom.ApplicationOp | loom.MergeOp) and op.is_partial
    ]
    assert partial == [[1, 1, 2]] * 4


def test_numpy_holds_parts_over_their_own_dimensions() -> None:
    op = _operation(CASES["attention"].module())
    ins = [
        Tensor(tensor_type(value).box, array)
        for value, array in zip(op.ins, _inputs().values(), strict=True)
    ]
    state = numpy_executor.NumpyExecutor().fold(op, INDEX, ins)
    assert [part.shape for part in state] == [(3, 1, 1), (3, 1, 1), (3, 4, 1)]


@pytest.mark.parametrize("name", CASES)
def test_blocks_of_few_cells(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_executor, "_CELLS", 6)
    for seed in range(3):
        check(name, seed, "numpy")


_SCAN = """
loom.monoid @both zero [0.0 : f32, 0xFF800000 : f32]
  merge (%a0: f32, %b0: f32, %a1: f32, %b1: f32) {
    %a = arith.addf %a0, %a1 : f32
    %b = arith.maximumf %b0, %b1 : f32
    loom.yield %a, %b : f32, f32
  }
!x = !loom.tensor<[0] : [5], f32>
!y = !loom.tensor<[0, 0] : [5, 4], f32>
func.func @main(%x: !x, %y: !y) -> (!y, !x) {
  %o:2 = loom.operation @running over <[0, 0, 0] : [5, 4, 3]> [scan, map, map] by @both
         ins(%x : (i, d, e) -> (i), %y : (i, d, e) -> (i, d))
         outs((i, d, e) -> (i, d), (i, d, e) -> (i))
         wrap (%a: f32, %b: f32) { loom.yield %a, %b : f32, f32 }
         unwrap (%a: f32, %b: f32) {
           %s = arith.addf %a, %b : f32
           loom.yield %s, %a : f32, f32
         } : (!x, !y) -> (!y, !x)
  func.return %o#0, %o#1 : !y, !x
}
"""


_GRIDS = ("5,1,1", "2,1,1", "2,2,1", "1,4,1", "2,2,3")
_ON = [(on, grid) for on in ("reference", "numpy", "few cells") for grid in _GRIDS]


@pytest.mark.parametrize(("on", "grid"), [*_ON, ("triton", "2,1,1"), ("triton", "2,2,1")])
def test_scans(on: str, grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if on == "few cells":
        on = "numpy"
        monkeypatch.setattr(numpy_executor, "_CELLS", 2)
    x = np.array([2, -1, 3, 0, 4], np.float32)
    y = np.arange(20, dtype=np.float32).reshape(5, 4) * np.array([3, -2, 1, -4], np.float32) % 7
    sums = np.cumsum(x)
    want = sums[:, None] + np.maximum.accumulate(y), sums
    text = _SCAN
    if not grid.endswith(",1,1"):
        # What shards cut, every output has.
        whole, each = "!loom.tensor<[0, 0, 0] : [5, 4, 3], f32>", "(i, d, e) -> (i, d, e)"
        text = text.replace("outs((i, d, e) -> (i, d), (i, d, e) -> (i))", f"outs({each}, {each})")
        text = text.replace("-> (!y, !x)", f"-> ({whole}, {whole})")
        text = text.replace("%o#1 : !y, !x", f"%o#1 : {whole}, {whole}")
        both = np.broadcast_arrays(want[0][:, :, None], want[1][:, None, None], np.zeros((5, 4, 3)))
        want = both[0], both[1]
    for spelled in ("", ",loom-expand-shards{arity=2}"):
        module = parse_text(text)
        run_pipeline(module, f"loom-shard{{grid={grid}}}{spelled}")
        verify_module(module)
        got = find_executor(on).run(module, {"x": x, "y": y}, NoWatch()).outputs
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)


_GROUP = """
!s = !loom.tensor<[0, 0] : [4, 6], f32>
!v = !loom.tensor<[0, 0] : [6, 8], f32>
!o = !loom.tensor<[0, 0] : [4, 8], f32>
!e = !loom.tensor<[0] : [4], f32>
func.func @main(%s: !s, %v: !v) -> (!o, !e) {
  %o, %e = loom.fused @group over <[0, 0, 0] : [4, 6, 8]>
    aligned((i, j, d) -> (i, j), (i, j, d) -> (i, j, d), (i, j, d) -> (i))
    ins(%s, %v) group (%x: !s, %y: !v) {
      %a = loom.operation @halved over <[0, 0] : [4, 6]> [map, map]
             ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
             wrap (%c: f32) {
               %h = arith.constant 0.5 : f32
               %r = arith.mulf %c, %h : f32
               loom.yield %r : f32
             } : (!s) -> !s
      %p, %q = loom.operation @attention over <[0, 0, 0] : [4, 6, 8]> [map, fold, map] by @online
             ins(%a : (i, j, d) -> (i, j), %y : (i, j, d) -> (j, d))
             outs((i, d) -> (i, d), (i, d) -> (i))
             wrap (%c: f32, %w: f32) {
               %one = arith.constant 1.0 : f32
               loom.yield %c, %one, %w : f32, f32, f32
             }
             unwrap (%m: f32, %l: f32, %t: f32) { loom.yield %t, %l : f32, f32 }
             : (!s, !v) -> (!o, !e)
      %n = loom.operation @negated over <[0] : [4]> [map] ins(%q : (i) -> (i)) outs((i) -> (i))
             wrap (%c: f32) { %r = arith.negf %c : f32  loom.yield %r : f32 } : (!e) -> !e
      loom.yield %p, %n : !o, !e
    } : (!s, !v) -> (!o, !e)
  func.return %o, %e : !o, !e
}
"""


@pytest.mark.parametrize("on", EXECUTORS)
def test_members_of_a_group(on: str) -> None:
    text = _ONLINE.replace("EXP", "exp2") + _GROUP
    random = np.random.default_rng(4)
    inputs = {
        "s": 2 * random.integers(-3, 4, (4, 6)).astype(np.float32),
        "v": random.integers(-4, 5, (6, 8)).astype(np.float32),
    }
    want = find_executor("reference").run(parse_text(text), inputs, NoWatch()).outputs
    weights = np.exp2(inputs["s"] / 2 - inputs["s"].max(1, keepdims=True) / 2)
    np.testing.assert_array_equal(want[0], weights @ inputs["v"])
    np.testing.assert_array_equal(want[1], -weights.sum(1))
    for passes in (
        "loom-shard{grid=2,1,1},loom-expand-shards",
        "loom-shard{shards=8}",  # rows alone may be cut: the group's other outputs lack d
        "loom-ungroup,loom-shard{shards=8},loom-expand-shards{arity=2}",
    ):
        module = parse_text(text)
        run_pipeline(module, passes)
        verify_module(module)
        got = find_executor(on).run(module, inputs, NoWatch()).outputs
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)

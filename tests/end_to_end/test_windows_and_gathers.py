"""Any window, any fill, any gather: every executor and partition gives what the reference gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapestry.dialects import loom
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import Array
from tapestry.runtime.running import run
from tapestry.zspace import Partition
from tests.amounts import drawn

SETTINGS = settings(
    max_examples=drawn(12),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

STRIDES = st.sampled_from([-3, -2, -1, 0, 1, 1, 1, 2, 3])


@dataclass(frozen=True)
class Case:
    """A program of one operation and its inputs."""

    text: str
    inputs: dict[str, Array]

    def __repr__(self) -> str:
        return self.text


def _row(draw: st.DrawFn, names: str) -> str:
    terms = [f"{draw(STRIDES)} * {name}" for name in names]
    return " + ".join([str(draw(st.integers(-4, 6))), *terms]).replace("+ -", "- ")


def _box(start: list[int], shape: list[int]) -> str:
    return f"{start} : {[a + n for a, n in zip(start, shape, strict=True)]}"


@st.composite
def windows(draw: st.DrawFn) -> Case:
    """A map or a fold of a clipped read through any affine rows, with a clipped extra input."""
    shape = draw(st.lists(st.integers(1, 6), min_size=3, max_size=3))
    tensor = draw(st.lists(st.integers(0, 7), min_size=2, max_size=2))
    start = draw(st.lists(st.integers(-3, 3), min_size=2, max_size=2))
    fill, other = (draw(st.integers(-9, 9)) for _ in range(2))
    folds = draw(st.booleans())
    monoid = draw(st.sampled_from(["add", "max", "min"]))
    kinds, out = ("[map, map, fold]", shape[:2]) if folds else ("[map, map, map]", shape)
    names = "ijk"
    kept = names[:2] if folds else names
    point, end = ", ".join(names), ", ".join(kept)
    reads = f"%x : ({point}) -> ({_row(draw, names)}, {_row(draw, names)}) clip {fill} : i32"
    extra = f"%x : ({end}) -> ({_row(draw, kept)}, {_row(draw, kept)}) clip {other} : i32"
    body = "wrap (%a: i32) { loom.yield %a : i32 } unwrap (%s: i32, %b: i32)"
    if not folds:
        body = "wrap (%s: i32, %b: i32)"
    inputs = f"ins({reads}) extra({extra})" if folds else f"ins({reads}, {extra})"
    text = f"""
    !x = !loom.tensor<{_box(start, tensor)}, i32>
    !y = !loom.tensor<{_box([0] * len(out), out)}, i32>
    func.func @main(%x: !x) -> !y {{
      %y = loom.operation @window over <{_box([0] * 3, shape)}> {kinds}
             {f"by @{monoid}" if folds else ""} {inputs} outs(({end}) -> ({end}))
             {body} {{
               %two = arith.constant 2 : i32
               %t = arith.muli %b, %two : i32
               %r = arith.addi %s, %t : i32
               loom.yield %r : i32
             }} : (!x, !x) -> !y
      func.return %y : !y
    }}"""
    return Case(text, {"x": np.arange(1, 1 + tensor[0] * tensor[1], dtype="i4").reshape(tensor)})


@st.composite
def gathers(draw: st.DrawFn) -> Case:
    """A map or a fold of reads of any box, which may leave its tensor, at any indices."""
    shape = draw(st.lists(st.integers(1, 5), min_size=2, max_size=2))
    tensor = draw(st.lists(st.integers(1, 6), min_size=2, max_size=2))
    box = draw(st.lists(st.integers(1, 4), min_size=2, max_size=2).filter(lambda b: b != [1, 1]))
    folds = draw(st.booleans())
    kinds, out, kept = ("[map, fold]", shape[:1], "i") if folds else ("[map, map]", shape, "i, j")
    rows = f"({_row(draw, 'ij')}, {_row(draw, 'ij')})"
    fill = draw(st.integers(-9, 9))
    text = f"""
    !x = !loom.tensor<{_box([0, 0], tensor)}, i32>
    !at = !loom.tensor<{_box([0, 0], shape)}, i64>
    !y = !loom.tensor<{_box([0] * len(out), out)}, i32>
    func.func @main(%x: !x, %at: !at) -> !y {{
      %y = loom.operation @gather over <{_box([0, 0], shape)}> {kinds} {"by @add" if folds else ""}
             ins(%at : (i, j) -> (i, j), %x : (i, j) -> {rows} :> {box} clip {fill} : i32)
             outs(({kept}) -> ({kept}))
             wrap (%p: i64, %b: !loom.block<{box}, i32>) {{
               %j = loom.index 1 : i64
               %q = arith.subi %p, %j : i64
               %none = arith.constant {draw(st.sampled_from([0, 7]))} : i32
               %v = loom.read %b[%p, %q] else %none : i32
               loom.yield %v : i32
             }} : (!at, !x) -> !y
      func.return %y : !y
    }}"""
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    at = generator.integers(-2, 6, shape)
    return Case(text, {"x": generator.integers(1, 99, tensor, dtype="i4"), "at": at})


@st.composite
def one_hots(draw: st.DrawFn) -> Case:
    """A read of a block that is 0 outside, at one or two indices, some of them out of range."""
    points, rows, columns = (draw(st.integers(1, 6)) for _ in range(3))
    box = [rows, columns if draw(st.booleans()) else 1]
    second = "%q" if box[1] > 1 else "%zero"
    if box == [1, 1]:
        box[0] = rows = 2
    text = f"""
    !x = !loom.tensor<{_box([0, 0], [rows, columns])}, i32>
    !at = !loom.tensor<{_box([0], [points])}, i64>
    !y = !loom.tensor<{_box([0, 0], [points, columns])}, i32>
    func.func @main(%x: !x, %a: !at, %c: !at) -> !y {{
      %y = loom.operation @take over <{_box([0, 0], [points, columns])}> [map, map]
             ins(%a : (i, j) -> (i), %c : (i, j) -> (i),
                 %x : (i, j) -> (0, {"0" if box[1] > 1 else "j"}) :> {box})
             outs((i, j) -> (i, j))
             wrap (%p: i64, %q: i64, %b: !loom.block<{box}, i32>) {{
               %zero = arith.constant 0 : i64
               %none = arith.constant 0 : i32
               %v = loom.read %b[%p, {second}] else %none : i32
               %n = arith.trunci %p : i64 to i32
               %r = arith.addi %v, %n : i32
               loom.yield %r : i32
             }} : (!at, !at, !x) -> !y
      func.return %y : !y
    }}"""
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    x = generator.integers(1, 99, (rows, columns), dtype="i4")
    a, c = (generator.integers(-1, n + 1, points) for n in (rows, columns))
    return Case(text, {"x": x, "a": a, "c": c})


def _shard(data: st.DataObject, op: loom.OperationOp) -> None:
    cuts: list[list[int]] = []
    for start, end in zip(op.index.start, op.index.end, strict=True):
        inside = st.sets(st.integers(start + 1, end - 1), max_size=2) if end - start > 1 else None
        cuts.append([start, *sorted(data.draw(inside) if inside is not None else ()), end])
    op.shards = PartitionAttr(Partition.grid(cuts))


def _check(case: Case, data: st.DataObject, rewrites: str, executors: tuple[str, ...]) -> None:
    whole = parse_text(case.text)
    verify_module(whole)
    (want,) = run(whole, case.inputs, on="reference").outputs
    module = parse_text(case.text)
    run_pipeline(module, rewrites)
    (op,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    _shard(data, op)
    verify_module(module)
    for spelled in ("", "loom-expand-shards"):
        run_pipeline(module, spelled)
        for executor in executors:
            (got,) = run(module, case.inputs, on=executor).outputs
            np.testing.assert_array_equal(got, want, err_msg=f"{executor} {spelled}")


ALL = ("reference", "numpy", "triton")


@SETTINGS
@given(windows(), st.data(), st.sampled_from(["", "loom-simplify"]))
def test_windows(case: Case, data: st.DataObject, rewrites: str) -> None:
    _check(case, data, rewrites, ALL)


@SETTINGS
@given(gathers(), st.data())
def test_gathers(case: Case, data: st.DataObject) -> None:
    _check(case, data, "loom-simplify", ALL)


@SETTINGS
@given(one_hots(), st.data(), st.sampled_from(["", "loom-fold-to-read"]))
def test_reads_split_along_their_block(case: Case, data: st.DataObject, back: str) -> None:
    _check(case, data, ",".join(filter(None, ("loom-read-to-fold", back))), ALL)

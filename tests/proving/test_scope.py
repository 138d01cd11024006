"""Cutting two programs to what changed: at identical values, and where names are kept."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.proving.scope import Scope, cut_scope, cut_scopes
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.program import arguments
from tapestry.zspace import Partition
from tests.amounts import drawn
from tests.end_to_end.programs import Program, programs

V = "!loom.tensor<[0] : [6], f64>"


def _map(name: str, body: str, *operands: str) -> str:
    """`%name`, an operation on cells %0, %1, ... of vectors."""
    taken = ", ".join(f"%{x} : (d0) -> (d0)" for x in operands)
    cells = ", ".join(f"%c{n}: f64" for n in range(len(operands)))
    types = ", ".join([V] * len(operands))
    return (
        f"%{name} = loom.operation @{name} over <[0] : [6]> [map] ins({taken}) "
        f"outs((d0) -> (d0)) wrap ({cells}) {{ {body} loom.yield %r : f64 }} : ({types}) -> {V}"
    )


_EXP = "%r = math.exp %c0 : f64"
_NEG = "%r = arith.negf %c0 : f64"
_ADD = "%r = arith.addf %c0, %c1 : f64"
_DOUBLE = "%r = arith.addf %c0, %c0 : f64"
_SUB = "%r = arith.subf %c0, %c1 : f64"


def _program(*lines: str, result: str, inputs: str = "x", head: str = "") -> ModuleOp:
    taken = ", ".join(f"%{x}: {V}" for x in inputs)
    return parse_module(
        f"{head} func.func @main({taken}) -> {V} {{ {' '.join(lines)} "
        f"func.return %{result} : {V} }}"
    )


def _labels(module: ModuleOp) -> list[str]:
    return [op.label.data for op in module.walk() if isinstance(op, loom.OperationOp)]


def _names(module: ModuleOp) -> list[str]:
    return [argument.name for argument in arguments(module)]


def _run(module: ModuleOp, seed: int = 0) -> tuple[Array, ...]:
    verify_module(module)
    generator = np.random.default_rng(seed)
    inputs = {
        a.name: (generator.uniform(-1, 1, a.type.box.shape) * 3).astype(
            {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8"}[str(a.type.element_type)]
        )
        for a in arguments(module)
    }
    return find_executor("numpy").run(module, inputs, NoWatch()).outputs


def _agrees(scope: Scope) -> bool:
    pairs = zip(_run(scope.a), _run(scope.b), strict=True)
    return all(np.allclose(x, y, rtol=1e-3, atol=1e-3, equal_nan=True) for x, y in pairs)


def test_equal_programs_leave_nothing() -> None:
    a = _program(_map("u", _EXP, "x"), _map("w", _NEG, "u"), result="w")
    b = _program(_map("p", _EXP, "x"), _map("q", _NEG, "p"), result="q")
    assert cut_scope(a, b).results == 0
    assert cut_scopes(a, b) == ()


def test_a_scope_starts_where_values_are_identical() -> None:
    a = _program(_map("h", _EXP, "x"), _map("s", _ADD, "h", "y"), result="s", inputs="xy")
    b = _program(_map("g", _EXP, "x"), _map("s", _ADD, "y", "g"), result="s", inputs="xy")
    scope = cut_scope(a, b)
    assert (_labels(scope.a), _labels(scope.b)) == (["s"], ["s"])
    assert sorted(_names(scope.a)) == ["h", "y"]
    assert _names(scope.a) == _names(scope.b)
    assert not scope.is_whole
    assert _agrees(scope)
    wider = cut_scope(a, b, rounds=1)
    assert (_labels(wider.a), _labels(wider.b)) == (["h", "s"], ["g", "s"])
    assert wider.is_whole
    assert _labels(cut_scope(a, b, rounds=None).a) == ["h", "s"]


def test_results_that_are_identical_are_left_out() -> None:
    text = "func.func @main(%x: {V}) -> ({V}, {V}) {{ {lines} func.return %u, %w : {V}, {V} }}"
    a, b = (
        parse_module(text.format(V=V, lines=" ".join((_map("u", _EXP, "x"), _map("w", f, "x")))))
        for f in (_NEG, "%o = arith.constant -1.0 : f64 %r = arith.mulf %c0, %o : f64")
    )
    scope = cut_scope(a, b)
    assert scope.results == 1
    assert _labels(scope.a) == ["w"]


def test_changes_far_apart_are_scopes_of_their_own() -> None:
    names = [f"v{n}" for n in range(20)]

    def chain(first: str, last: str) -> ModuleOp:
        lines = [_map("v0", first, "x")]
        lines += [_map(name, _NEG, before) for before, name in pairwise(names)]
        lines += [_map("s", last, names[-1], "x")]
        return _program(*lines, result="s")

    times = "%o = arith.constant 2.0 : f64 %r = arith.mulf %c0, %o : f64"
    a, b = chain(_DOUBLE, _ADD), chain(times, "%r = arith.addf %c1, %c0 : f64")
    scopes = cut_scopes(a, b)
    assert [(_labels(s.a), _names(s.a)) for s in scopes] == [
        (["v0"], ["x"]),
        (["s"], ["x", "v19"]),
    ]
    assert all(map(_agrees, scopes))
    assert cut_scope(a, b).operations == 42


def test_equal_scopes_are_listed_once() -> None:
    names = ["x", *(f"v{n}" for n in range(30))]

    def chain(body: str) -> ModuleOp:
        lines = [_map(y, body, x, x) for x, y in pairwise(names)]
        return _program(*lines, result=names[-1])

    (scope,) = cut_scopes(chain(_ADD), chain("%r = arith.addf %c1, %c0 : f64"))
    assert (scope.count, scope.operations) == (30, 2)


def test_names_that_mislead_are_seen() -> None:
    minus = "%o = arith.constant -1.0 : f64 %r = arith.mulf %c0, %o : f64"
    twice = "%o = arith.constant 2.0 : f64 %r = arith.mulf %c0, %o : f64"
    a = _program(
        _map("h", _DOUBLE, "x"), _map("k", _NEG, "x"), _map("s", _ADD, "h", "k"), result="s"
    )
    b = _program(
        _map("k", twice, "x"), _map("h", minus, "x"), _map("s", _ADD, "h", "k"), result="s"
    )
    # The programs are equal, which is not to be seen from the first, but from the other.
    assert not all(map(_agrees, cut_scopes(a, b)))
    assert _agrees(cut_scope(a, b))


def test_no_two_suppositions_rest_on_each_other() -> None:
    # Each of u and w would follow from the other; in truth they differ.
    a = _program(_map("u", _EXP, "x"), _map("w", _NEG, "u"), _map("s", _SUB, "u", "w"), result="s")
    b = _program(
        _map("w", _DOUBLE, "x"), _map("u", _NEG, "w"), _map("s", _SUB, "u", "w"), result="s"
    )
    assert not np.allclose(_run(a)[0], _run(b)[0])
    assert not all(map(_agrees, cut_scopes(a, b)))


def test_a_supposition_is_shown_even_where_its_value_is_known() -> None:
    # %u is found in b under another name, while b's own %u is something else.
    a = _program(_map("u", _EXP, "x"), _map("s", _ADD, "u", "u"), result="s")
    b = _program(_map("z", _EXP, "x"), _map("u", _NEG, "x"), _map("s", _ADD, "u", "u"), result="s")
    assert not all(map(_agrees, cut_scopes(a, b)))


def test_a_result_may_be_a_value_that_was_kept() -> None:
    # %h, computed otherwise, is what b returns; %s is what a makes of it, which changes nothing.
    twice = "%o = arith.constant 2.0 : f64 %r = arith.mulf %c0, %o : f64"
    same = "%o = arith.constant 1.0 : f64 %r = arith.mulf %c0, %o : f64"
    a = _program(_map("h", _DOUBLE, "x"), _map("s", same, "h"), result="s")
    b = _program(_map("h", twice, "x"), result="h")
    scopes = cut_scopes(a, b)
    assert [(_labels(s.a), _labels(s.b)) for s in scopes] == [(["h"], ["h"]), (["s"], [])]
    assert all(map(_agrees, scopes))


def test_what_a_symbol_stands_for_counts() -> None:
    monoid = (
        "loom.monoid @m zero [{zero} : f64] merge (%a: f64, %b: f64) "
        "{{ %r = arith.{op} %a, %b : f64 loom.yield %r : f64 }}"
    )
    fold = (
        "%y = loom.operation @y over <[0, 0] : [6, 6]> [map, fold] by @m "
        "ins(%x : (d0, d1) -> (d1)) outs((d0) -> (d0)) "
        f"wrap (%c: f64) {{ loom.yield %c : f64 }} : ({V}) -> {V}"
    )
    add = monoid.format(zero="0.0", op="addf")
    mul = monoid.format(zero="1.0", op="mulf")
    a, b = _program(fold, result="y", head=add), _program(fold, result="y", head=mul)
    assert cut_scopes(a, a.clone()) == ()
    scope = cut_scope(a, b)
    assert scope.results == 1
    assert not _agrees(scope)


def _shard(data: st.DataObject, module: ModuleOp) -> None:
    for op in module.walk():
        if isinstance(op, loom.OperationOp) and not op.index.is_empty:
            counts = [data.draw(st.integers(1, min(n, 3))) for n in op.index.shape]
            partition = Partition.balanced(op.index, counts)
            if not op.sharding_problems(partition):
                op.shards = PartitionAttr(partition)


_PIPELINES = ["loom-simplify", "loom-fuse", "loom-expand-shards", "loom-simplify,loom-fuse"]


@settings(max_examples=drawn(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from(_PIPELINES), st.data())
def test_scopes_of_rewrites_agree(program: Program, pipeline: str, data: st.DataObject) -> None:
    a = parse_module(program.text)
    run_pipeline(a, "weft-apply")
    b = a.clone()
    _shard(data, b)
    run_pipeline(b, pipeline)
    texts = str(a), str(b)
    for scope in (*cut_scopes(a, b), cut_scope(a, b), cut_scope(a, b, rounds=None)):
        assert _agrees(scope)
    assert (str(a), str(b)) == texts

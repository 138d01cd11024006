"""Reasons that operations stay apart, one program per reason, and how folds were derived."""

from __future__ import annotations

import pytest

from tapestry.explaining import boundaries, explain, why_not_derived
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.movement import splittables

HEAD = """
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x, %y: !y) -> ({results}) {{
{lines}
  func.return {values} : {results}
}}
"""


def program(lines: str, values: str, results: str) -> str:
    return HEAD.format(lines=lines, values=values, results=results)


def exp(value: str, of: str, more: str = "") -> str:
    return (
        f"  {value} = loom.operation @{value[1:]} over <[0, 0] : [4, 6]> [map, map]"
        f" ins({of} : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1)) {more}"
        " wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x\n"
    )


def total(value: str, of: str) -> str:
    return (
        f"  {value} = loom.operation @{value[1:]} over <[0, 0] : [4, 6]> [map, fold] by @add"
        f" ins({of} : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))"
        " wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y\n"
    )


def spread(value: str, of: str) -> str:
    return (
        f"  {value} = loom.operation @{value[1:]} over <[0, 0] : [4, 6]> [map, map]"
        f" ins({of} : (d0, d1) -> (d0)) outs((d0, d1) -> (d0, d1))"
        " wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!y) -> !x\n"
    )


CLIPPED = (
    "  %b = loom.operation @b over <[0, 0] : [4, 6]> [map, map]"
    " ins(%a : (d0, d1) -> (d0 - 1, d1) clip 0.0 : f32) outs((d0, d1) -> (d0, d1))"
    " wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x\n"
)
OF_THREE = (
    "  %a = loom.operation @a over <[0, 0] : [4, 6]> [map, map]"
    " ins(%x : (d0, d1) -> (d0, d1), %x : (d0, d1) -> (3 - d0, d1), %x : (d0, d1) -> (d0, 5 - d1))"
    " outs((d0, d1) -> (d0, d1)) wrap (%c: f32, %d: f32, %e: f32)"
    " { %r = math.fma %c, %d, %e : f32 loom.yield %r : f32 } : (!x, !x, !x) -> !x\n"
)
VIEWED = "  %t = loom.view %a : (d0) -> (d0, 0) : !x -> !y\n"
READS_VIEW = (
    "  %b = loom.operation @b over <[0] : [4]> [map] ins(%t : (d0) -> (d0)) outs((d0) -> (d0))"
    " wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!y) -> !y\n"
)
SPLIT_OTHERWISE = exp("%a", "%x", "shards <grid [[0, 2, 4], [0, 6]]>") + exp(
    "%b", "%a", "shards <grid [[0, 4], [0, 3, 6]]>"
)

CASES = {
    "stored anyway": (exp("%a", "%x") + exp("%b", "%a"), "%a, %b", "!x, !x"),
    "a fold of a fold is two operations": (
        total("%a", "%x")
        + "  %b = loom.operation @b over <[0] : [4]> [fold] by @max ins(%a : (d0) -> (d0))"
        " outs(() -> ()) wrap (%c: f32) { loom.yield %c : f32 }"
        " : (!y) -> !loom.tensor<[] : [], f32>\n",
        "%b",
        "!loom.tensor<[] : [], f32>",
    ),
    "does not visit each cell of what @a writes once": (
        total("%a", "%x") + spread("%b", "%a"),
        "%b",
        "!x",
    ),
    "reads past the edges": (exp("%a", "%x") + CLIPPED, "%b", "!x"),
    "is cheaper: 24 scalar operations computed again save no bytes": (
        OF_THREE + total("%b", "%a") + total("%c", "%a").replace("@add", "@max"),
        "%b, %c",
        "!y, !y",
    ),
    "a view stands between them": (exp("%a", "%x") + VIEWED + READS_VIEW, "%b", "!y"),
    "are split into different boxes": (SPLIT_OTHERWISE, "%b", "!x"),
}


@pytest.mark.parametrize("reason", CASES)
def test_what_loom_fuse_leaves_has_a_reason(reason: str) -> None:
    module = parse_text(program(*CASES[reason]))
    verify_module(module)
    run_pipeline(module, "loom-fuse")
    assert all(reason in boundary.why_apart for boundary in boundaries(module))
    assert any(reason in line for line in explain(module))


def test_what_loom_fuse_would_join_has_none() -> None:
    module = parse_text(program(exp("%a", "%x") + exp("%b", "%a"), "%b", "!x"))
    (boundary,) = boundaries(module)
    assert boundary.why_apart == "loom-fuse has not run"
    run_pipeline(module, "loom-fuse")
    assert boundaries(module) == ()


def relative(body: str) -> str:
    return (
        total("%m", "%x").replace("@add", "@max")
        + "  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add"
        " ins(%x : (d0, d1) -> (d0, d1), %m : (d0, d1) -> (d0)) outs((d0) -> (d0))"
        f" wrap (%c: f32, %b: f32) {{ %d = arith.subf %c, %b : f32 %r = {body} %d : f32"
        " loom.yield %r : f32 } : (!x, !y) -> !y\n"
    )


def test_folds_that_are_derived_say_how_and_others_why_not() -> None:
    module = parse_text(program(relative("math.exp"), "%s", "!y"))
    run_pipeline(module, "loom-derive")
    lines = list(explain(module))
    assert sum("derived: " in line for line in lines) >= 3
    assert not any("not derived" in line for line in lines)
    run_pipeline(refused := parse_text(program(relative("math.tanh"), "%s", "!y")), "loom-derive")
    _, last = splittables(refused)
    assert "tanh" in (why_not_derived(last) or "")
    assert any("not derived" in line and "tanh" in line for line in explain(refused))


def test_why_a_fold_is_not_derived_is_said_after_those_before_it_were():
    """What would cancel is left apart, which is recorded: what it reads is one pass by then."""
    module = parse_text("""
!x = !loom.tensor<[0, 0] : [4, 64], f32>
!y = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !y {
  %p = weft.apply @softmax(%x) : (!x) -> !x
  %s = weft.apply @std(%p) {axis = 1} : (!x) -> !y
  func.return %s : !y
}""")
    run_pipeline(module, "weft-apply,loom-simplify,loom-fuse,loom-derive,loom-simplify")
    lines = list(explain(module))
    assert sum(line.startswith("  derived: ") for line in lines) > 4
    (refused,) = [line for line in lines if line.startswith("  not derived: ")]
    assert refused.endswith("may cancel (separate=true takes them apart)")


SUM_AND_SHARE = (
    total("%s", "%x") + "  %p = loom.operation @p over <[0, 0] : [4, 6]> [map, map]"
    " ins(%x : (d0, d1) -> (d0, d1), %s : (d0, d1) -> (d0)) outs((d0, d1) -> (d0, d1))"
    " wrap (%c: f32, %b: f32) { %r = arith.divf %c, %b : f32 loom.yield %r : f32 }"
    " : (!x, !y) -> !x\n"
)
BACKWARDS = exp("%q", "%p").replace(
    "ins(%p : (d0, d1) -> (d0, d1))", "ins(%p : (d0, d1) -> (3 - d0, d1))"
)


def test_what_is_no_group_has_a_reason_and_what_could_be_has_none() -> None:
    module = parse_text(program(SUM_AND_SHARE + BACKWARDS, "%q, %p", "!x, !x"))
    verify_module(module)
    one, other = boundaries(module)
    assert one.why_no_group is None
    assert (
        other.why_no_group == "@q reads other cells of what @p writes than the same point computes"
    )
    run_pipeline(module, "loom-group")
    (left,) = boundaries(module)
    assert left.why_no_group == other.why_no_group
    assert any(
        line.startswith("  no group with @s_p: @q reads other cells") for line in explain(module)
    )


def test_what_is_external_comes_first() -> None:
    sort = "loom.external @sort over <[] : []> ins(%x : () -> (0, 0) :> [4, 6])"
    sort += " outs(() -> (0, 0) :> [4, 6]) : (!x) -> !x\n"
    module = parse_text(program(f"  %a = {sort}  %b = {sort}", "%a, %b", "!x, !x"), "p.mlir")
    assert list(explain(module))[:1] == ["external: 2 x @sort, first at p.mlir:5:3"]


def test_a_group_that_is_several_kernels_says_why() -> None:
    lines = exp("%e", "%x") + total("%s", "%e")
    one = parse_text(program(lines, "%s", "!y"))
    run_pipeline(one, "loom-group{ops=e,s}")
    assert not any("several kernels" in line for line in explain(one))
    moved = total("%s", "%e").replace("-> (d0, d1)) outs", "-> (3 - d0, d1)) outs")
    apart = parse_text(program(exp("%e", "%x") + moved, "%s", "!y"))
    run_pipeline(apart, "loom-group{ops=e,s}")
    assert [line for line in explain(apart) if "kernels of Triton" in line] == [
        "  several kernels of Triton: @s reads other cells of @e than the same point writes",
        "  kernels of Triton: @e; @s",
    ]


def test_a_group_that_is_cut_says_what_stays_together() -> None:
    sizes = ("8, 4", "4, 8", "8, 8", "4, 3")
    q, k, s, w = (f"!loom.tensor<[0, 0, 0] : [2, {size}], f32>" for size in sizes)
    y = "!loom.tensor<[0, 0] : [8, 3], f32>"
    module = parse_text(
        f"""func.func @main(%q: {q}, %k: {k}, %v: {q}, %w: {w}) -> {y} {{
          %s = weft.apply @matmul(%q, %k) : ({q}, {k}) -> {s}
          %o = weft.apply @matmul(%s, %v) : ({s}, {q}) -> {q}
          %y = loom.operation @y over <[0, 0, 0, 0] : [8, 3, 2, 4]> [map, map, fold, fold] by @add
                 ins(%o : (i, e, h, d) -> (h, i, d), %w : (i, e, h, d) -> (h, d, e))
                 outs((i, e) -> (i, e))
                 wrap (%a: f32, %b: f32) {{
                   %p = arith.mulf %a, %b : f32
                   loom.yield %p : f32 }} : ({q}, {w}) -> {y}
          func.return %y : {y} }}"""
    )
    run_pipeline(module, "weft-apply,loom-group{ops=s,o,y}")
    before = str(module)
    assert "  kernels of Triton: @s with @o; @y" in list(explain(module))
    assert str(module) == before

"""Programs of realistic sizes, compared by changed regions at smaller sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_module, run_pipeline
from tapestry.proving.equality import Options, Verdict, compare_as_they_are, compare_programs
from tapestry.proving.stages import compare_in_stages, work_of

X, W, H = (
    f"!loom.tensor<[0, 0] : {shape}, f32>" for shape in ([512, 768], [768, 3072], [512, 3072])
)

_QUICK = Options(seeds=1)


def _program(*kernels: str) -> ModuleOp:
    lines = [f"%h0 = weft.apply @matmul(%x, %w) : ({X}, {W}) -> {H}"]
    lines += [
        f"%h{n + 1} = weft.apply @{kernel}(%h{n}) : ({H}) -> {H}"
        for n, kernel in enumerate(kernels)
    ]
    module = parse_module(
        f"func.func @main(%x: {X}, %w: {W}) -> {H} {{ {' '.join(lines)} "
        f"func.return %h{len(kernels)} : {H} }}"
    )
    run_pipeline(module, "weft-apply")
    return module


def _compared(a: ModuleOp, b: ModuleOp) -> tuple[Verdict | None, list[int]]:
    """The verdict, and how many points the programs had that were compared."""
    points: list[int] = []

    def compare(one: ModuleOp, other: ModuleOp) -> Verdict:
        points.append(max(work_of(one), work_of(other)))
        return compare_as_they_are(one, other, _QUICK)

    return compare_in_stages(a, b, compare), points


@pytest.mark.parametrize("pipeline", ["loom-fuse", "loom-shard{shards=8},loom-expand-shards"])
def test_large_programs_are_compared_at_smaller_sizes(pipeline: str) -> None:
    a = _program("gelu", "softmax")
    b = a.clone()
    run_pipeline(b, pipeline)
    verdict, points = _compared(a, b)
    assert verdict is not None
    assert verdict.answer in ("certified", "numeric")
    assert work_of(a) > 1 << 30
    assert max(points) < 1 << 14


def test_a_change_is_found_and_reported_from_the_arguments_on() -> None:
    a, b = _program("gelu", "relu", "exp"), _program("gelu", "neg", "exp")
    verdict, _ = _compared(a, b)
    assert verdict is not None
    assert verdict.answer == "differs"
    assert verdict.counterexample is not None
    assert verdict.counterexample.names == ("x", "w")
    assert any("x [512, 768] -> " in note for note in verdict.notes)


def test_only_what_changed_is_compared() -> None:
    a, b = _program("gelu", "relu", "neg"), _program("gelu", "relu", "neg")
    (*_, op) = [op for op in b.walk() if op.name == "loom.operation"]
    assert _compared(a, b) == (None, [])
    run_pipeline(b, "loom-shard{shards=2 op=" + op.properties["label"].data + "}")
    verdict, points = _compared(a, b)
    assert verdict is not None
    assert verdict.answer in ("certified", "numeric")
    assert max(points) < 200


def test_a_region_that_differs_where_the_programs_do_not_is_widened() -> None:
    # After exp, relu does nothing; the region alone does not know.
    a, b = _program("exp", "relu"), _program("exp")
    verdict, points = _compared(a, b)
    assert verdict is not None
    assert verdict.answer in ("certified", "numeric")
    assert len(points) > 2


def test_options_reach_the_comparison() -> None:
    a, b = _program("gelu"), _program("relu")
    verdict = compare_programs(a, b, replace(_QUICK, seed=3))
    assert verdict.counterexample is not None
    assert verdict.counterexample.seed == 3


@pytest.mark.parametrize("last", ["exp", "neg"])
def test_literals_of_what_did_not_change_do_not_keep_extents(last: str) -> None:
    row = "!loom.tensor<[0, 0] : [512, 1], f32>"

    def program(kernel: str) -> ModuleOp:
        module = parse_module(
            f"func.func @main(%x: {X}) -> {X} {{ "
            f"%m = weft.apply @mean(%x) {{axis = 1 : i64, keepdim = true}} : ({X}) -> {row} "
            f"%y = weft.apply @sub(%x, %m) : ({X}, {row}) -> {X} "
            f"%z = weft.apply @{kernel}(%y) : ({X}) -> {X} func.return %z : {X} }}"
        )
        run_pipeline(module, "weft-apply")
        return module

    verdict, points = _compared(program("relu"), program(last))
    assert verdict is not None
    assert verdict.answer == "differs"
    assert max(points) < 1000


def _views(first: str, second: str, cells: int) -> tuple[ModuleOp, ModuleOp]:
    kind = f"!loom.tensor<[0] : [{cells}], f32>"
    one, two = (
        parse_module(
            f"func.func @main(%x: {kind}) -> {kind} {{ "
            f"%y = loom.view %x : (d0) -> ({row}) : {kind} -> {kind} func.return %y : {kind} }}"
        )
        for row in (first, second)
    )
    return one, two


def test_cells_of_values_that_no_operation_makes_are_work() -> None:
    large = 2_000_000_000
    a, b = _views(f"{large - 1} - d0", "d0", large)
    assert work_of(a) == 2 * large
    verdict = compare_as_they_are(a, b, _QUICK)
    assert verdict.answer == "undecided"
    assert "4000000000 points or cells, more than" in verdict.reason
    assert compare_programs(a, b, _QUICK).answer == "differs"  # at smaller sizes

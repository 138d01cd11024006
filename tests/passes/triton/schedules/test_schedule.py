"""Schedules: text and back, the legal ones, and what a program's kernels may have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleError
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.passes.triton.schedules.schedule import cells_of, check, default, is_legal
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.schedules.tiling import Tiling
from tapestry.passes.triton.tasks import candidates as candidates_of
from tapestry.passes.triton.tasks import give, tasks

powers = st.integers(0, 10).map(lambda n: 1 << n)
schedules = st.builds(
    Schedule,
    tile=st.dictionaries(st.sampled_from(["M", "N", "K", "P", "C", "C1"]), powers),
    warps=st.sampled_from([1, 2, 4, 8, 16]),
    stages=st.integers(1, 6),
    swizzle=st.integers(1, 16),
    programs=st.integers(0, 264),
    loads=st.sampled_from(["pointer", "descriptor"]),
    segments=st.integers(1, 2),
    order=st.sampled_from(["ascending", "descending"]),
    masks=st.sampled_from(["always", "boundary"]),
    unroll=st.integers(1, 8),
    parts=st.integers(1, 8),
    pipeline=st.sampled_from(["products", "loads"]),
)


def product(m=64, n=48, k=80):
    module = parse_text(f"""
!x = !loom.tensor<[0, 0] : [{m}, {k}], f32>
!w = !loom.tensor<[0, 0] : [{k}, {n}], f32>
!y = !loom.tensor<[0, 0] : [{m}, {n}], f32>
func.func @main(%x: !x, %w: !w) -> !y {{
  %y = weft.apply @matmul(%x, %w) : (!x, !w) -> !y
  func.return %y : !y
}}
""")
    verify_module(module)
    run_pipeline(module, "default")
    return module


@given(schedules)
def test_text_is_a_schedule_and_back(schedule):
    assert Schedule.parse(str(schedule)) == schedule


@given(schedules)
def test_so_is_the_attribute(schedule):
    text = f"triton.kernel @k() schedule <{schedule}> [] {{\n%p = triton.program_id 0\n}}"
    module = parse_text(text)
    assert str(module.body.block.first_op.schedule.data) == str(schedule)
    assert str(parse_text(str(module))) == str(module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M = 12", "M = 12 is not a power of two"),
        ("M = 16, M = 32", "M is said twice"),
        ("M", "'M' is not NAME = VALUE"),
        ("warps = 3", "warps = 3 is not one of"),
        ("stages = 0", "stages = 0 is less than 1"),
        ("segments = 3", "segments = 3 is not 1 or 2"),
        ("loads = some", "loads = some is not pointer or descriptor"),
        ("masks = some", "masks = some is not always or boundary"),
        ("unroll = 0", "unroll = 0 is less than 1"),
        ("speed = 2", "speed is no parameter of a schedule"),
        ("M = big", "M = big is not a number"),
        ("P = 2097152", "P = 2097152 is more than 1048576, the most cells"),
        ("stages = 33", "stages = 33 is more than 32"),
        ("programs = 4294967296", "programs = 4294967296 is more than 1048576"),
        ("unroll = 1180591620717411303424", "unroll = 118059162071741130... is too long"),
        (f"parts = {'9' * 5000}", "is too long"),
    ],
)
def test_what_is_no_schedule_says_why(text, message):
    with pytest.raises(ScheduleError, match=message):
        Schedule.parse(text)


@pytest.mark.parametrize(
    ("task", "tile", "message"),
    [
        (Task("f", "fold", {"P": 8, "K": 8}), {"M": 8}, "tile axes P, K; the schedule has M"),
        (
            Task("f", "contraction", {"M": 64, "N": 64, "K": 64}),
            {"M": 64, "N": 8, "K": 16},
            "N = 8 is less than 16",
        ),
        (
            Task("f", "group", {"M": 64, "K": 64, "N": 100}, held=frozenset("N")),
            {"M": 64, "K": 16, "N": 64},
            "N = 64 is too small, 128 would do",
        ),
        (Task("f", "fold", {"P": 8, "K": 8}), {"P": 2048, "K": 1024}, "2048 x 1024 cells"),
    ],
)
def test_what_is_illegal_says_what_would_be_right(task, tile, message):
    with pytest.raises(ScheduleError, match=message):
        check(task, Schedule(tile))


def test_swizzled_groups_of_blocks_are_counted_in_32_bits():
    task = Task("f", "contraction", {"M": 16, "N": 1 << 25, "K": 16}, grid=("M", "N"))
    tile = {"M": 16, "N": 16, "K": 16}
    check(task, Schedule(tile, swizzle=1023))
    with pytest.raises(ScheduleError, match=r"groups of 2\^31 blocks or more with swizzle = 1024"):
        check(task, Schedule(tile, swizzle=1024))


def test_tiles_of_8_bits_a_cell_are_deeper():
    task = Task("q", "contraction", {"M": 64, "N": 64, "K": 64}, cell=1)
    check(task, Schedule({"M": 16, "N": 16, "K": 32}))
    with pytest.raises(ScheduleError, match="K = 16 is less than 32, the least side"):
        check(task, Schedule({"M": 16, "N": 16, "K": 16}))


lengths = st.integers(1, 10000)


@given(lengths, lengths, lengths, st.sampled_from((1, 2, 4, 8)))
def test_candidates_are_legal_and_different(m, n, k, cell):
    for task in (
        Task("c", "contraction", {"M": m, "N": n, "K": k}, cell=cell),
        Task("g", "group", {"M": m, "K": k}, walks=2),
        Task("f", "fold", {"P": m, "K": k}),
        Task("m", "map", {"P": m}, grid=("P",)),
    ):
        found = list(candidates(task))
        assert found[0] == default(task, Tiling())
        assert len({*found}) == len(found)
        assert all(is_legal(task, schedule) for schedule in found)


@pytest.mark.parametrize(
    ("lengths", "tile", "legal"),
    [
        ({"P": 100}, {"P": 32}, True),
        ({"P": 96}, {"P": 32}, False),  # no block is masked
        ({"P": 20}, {"P": 32}, False),  # none is full
        ({"M": 100, "N": 64}, {"M": 32, "N": 64}, True),
        ({"M": 100, "N": 60}, {"M": 32, "N": 64}, False),
    ],
)
def test_programs_branch_where_some_are_full_and_others_not(lengths, tile, legal):
    task = Task("f", "map", lengths, grid=tuple(lengths))
    schedule = Schedule(tile, masks="boundary")
    assert is_legal(task, schedule) == legal
    if not legal:
        with pytest.raises(ScheduleError, match="no programs with full blocks beside others"):
            check(task, schedule)


@pytest.mark.parametrize(
    ("task", "schedule", "message"),
    [
        (Task("f", "fold", {"P": 8, "K": 64}), "P = 1, K = 64, unroll = 2", "one block covers K"),
        (
            Task("f", "fold", {"P": 8, "K": 64}),
            "P = 1, K = 16, stages = 1, pipeline = loads",
            "stages = 1 is less than 2",
        ),
        (
            Task("f", "contraction", {"M": 64, "N": 64, "K": 64}),
            "M = 16, N = 16, K = 16, pipeline = loads",
            "it multiplies tiles",
        ),
    ],
)
def test_what_cannot_load_ahead_says_so_ahead(task, schedule, message):
    with pytest.raises(ScheduleError, match=message):
        check(task, Schedule.parse(schedule))


@pytest.mark.parametrize(
    ("task", "schedule", "message"),
    [
        (Task("f", "fold", {"P": 8, "K": 64}), "P = 1, K = 16, parts = 4", "memory merges"),
        (
            Task("f", "fold", {"P": 8, "K": 64}, atomic=True),
            "P = 1, K = 64, parts = 4",
            "one block along K",
        ),
        (
            Task("f", "fold", {"P": 8, "K": 60}, atomic=True),
            "P = 1, K = 16, parts = 4, segments = 2",
            "segments = 1",
        ),
    ],
)
def test_what_programs_cannot_share_says_so(task, schedule, message):
    with pytest.raises(ScheduleError, match=message):
        check(task, Schedule.parse(schedule))


def test_a_descriptor_moves_blocks_that_are_not_too_long():
    task = Task("f", "contraction", {"M": 512, "N": 512, "K": 512}, cell=2, described=True)
    check(task, Schedule.parse("M = 512, N = 16, K = 16, loads = descriptor"))
    with pytest.raises(ScheduleError, match="256 rows and columns at most"):
        check(task, Schedule.parse("M = 512, N = 16, K = 512, loads = descriptor"))


def fold_of(dtype, reduction):
    module = parse_text(f"""
!x = !loom.tensor<[0, 0] : [8, 64], {dtype}>
!y = !loom.tensor<[0] : [8], {dtype}>
func.func @main(%x: !x) -> !y {{
  %y = weft.apply @{reduction}(%x) {{axis = 1}} : (!x) -> !y
  func.return %y : !y
}}
""")
    verify_module(module)
    run_pipeline(module, "default")
    return module


@pytest.mark.parametrize(
    ("dtype", "reduction", "atomic"),
    [
        ("f32", "sum", True),
        ("bf16", "sum", True),  # in float32
        ("i64", "sum", True),
        ("i32", "max", True),
        ("f32", "max", False),  # memory's own drops NaN
        ("f32", "prod", False),
        ("i8", "sum", False),
    ],
)
def test_memory_merges_what_it_merges_as_the_monoid_does(dtype, reduction, atomic):
    (task,) = tasks(fold_of(dtype, reduction))
    assert task.atomic == atomic


def test_parts_are_shared_only_where_that_is_asked_for():
    assert {
        c.parts for c in candidates(Task("f", "fold", {"P": 8, "K": 1 << 20}, atomic=True))
    } == {1}


def test_odd_lengths_have_candidates_with_masks_at_the_boundary():
    odd, even = (
        {c.masks for c in candidates(Task("m", "map", {"P": n}, grid=("P",)))}
        for n in (99999, 1 << 17)
    )
    assert (odd, even) == ({"always", "boundary"}, {"always"})
    rows = Task("f", "fold", {"P": 64, "K": 9999}, grid=("P",))
    assert {c.segments for c in candidates(rows)} == {1, 2}


def test_a_program_says_its_tasks():
    (task,) = tasks(product())
    assert (task.kind, dict(task.lengths)) == ("contraction", {"M": 64, "N": 48, "K": 80})


def test_an_operation_is_given_a_schedule_that_its_kernel_has():
    module = product()
    (op,) = (op for op in module.walk() if isinstance(op, loom.OperationOp))
    chosen = list(candidates_of(op))[-1]
    give(op, chosen)
    run_pipeline(module, "loom-to-triton")
    assert f"schedule <{chosen}>" in str(module)


def test_the_pass_gives_schedules_by_label():
    module = product()
    run_pipeline(module, 'loom-to-triton{schedules="y: M = 32, N = 16, K = 16"}')
    assert "schedule <M = 32, N = 16, K = 16, warps = 4, stages = 2>" in str(module)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("y: M = 12", "M = 12 is not a power of two"),
        ("other: M = 16", "no operation is labelled 'other'"),
        ("M = 16", "is not `LABEL: NAME = VALUE, ...`"),
    ],
)
def test_what_the_pass_cannot_give_is_wrong_usage(given, message):
    with pytest.raises(UsageError, match=message):
        run_pipeline(product(), f'loom-to-triton{{schedules="{given}"}}')


def test_an_illegal_schedule_is_an_error_at_its_operation():
    with pytest.raises(InvalidProgramError, match="the schedule of @y multiplies") as error:
        run_pipeline(product(), 'loom-to-triton{schedules="y: M = 8, N = 16, K = 16"}')
    assert error.value.location is not None


@pytest.mark.parametrize(("sums", "widest"), [(1, 256), (2, 128)])
def test_columns_that_programs_are_spread_over_are_blocks_as_of_a_product(sums, widest):
    lengths = {"M": 2048, "K": 4096, "N": 14336}
    task = Task("y", "group", lengths, cell=2, dots=True, sums=sums, grid=("M", "N"))
    assert default(task, Tiling()).tile == {"M": 128, "K": 64, "N": 128}
    tried = {schedule.tile["N"] for schedule in candidates(task) if schedule.tile["M"] == 128}
    assert tried == {64, 128, widest}


def test_columns_are_long_where_each_block_folds_again_inside():
    lengths = {"M": 2048, "C": 64, "K": 4096, "N": 512}
    task = Task("o", "group", lengths, cell=2, dots=True, grid=("B", "M", "N"))
    assert {schedule.tile["N"] for schedule in candidates(task)} == {256}


@pytest.mark.parametrize(
    ("kind", "lengths", "warps"),
    [
        ("map", {"P": 3}, 1),
        ("map", {"M": 4, "N": 16}, 2),
        ("fold", {"P": 1, "K": 16}, 1),
        ("fold", {"P": 4, "K": 16}, 2),
        ("fold", {"P": 450, "K": 10}, 4),
        ("group", {"M": 1, "K": 16}, 1),
        ("group", {"K": 16, "N": 2}, 1),
        ("contraction", {"M": 16, "N": 16, "K": 16}, 4),
    ],
)
def test_no_warp_is_without_cells(kind: Any, lengths: dict[str, int], warps: int) -> None:
    task = Task("one", kind, lengths, walks=2 if kind == "group" else 1)
    assert default(task, Tiling()).warps == warps
    if not task.multiplied:
        every = list(candidates(task))
        assert all(cells_of(one) >= 32 * one.warps or one.warps == 1 for one in every)


def test_a_warp_has_several_short_rows() -> None:
    task = Task("softmax", "group", {"M": 450, "K": 10}, walks=2)
    tiles = [one.tile for one in candidates(task)]
    assert {"M": 2, "K": 16} in tiles
    assert all(tile["M"] * tile["K"] >= 32 for tile in tiles)


@pytest.mark.parametrize("length", [7, 4096])
def test_defaults_of_one_row_load_ahead_where_there_is_a_loop(length: int) -> None:
    task = Task("decoding", "group", {"K": length, "C": 16, "N": 16}, held=frozenset({"C", "N"}))
    found = default(task, Tiling())
    assert is_legal(task, found)
    assert (found.pipeline == "loads") == (length > found.tile["K"])


def test_parts_of_more_points_than_32_bits_count_are_refused() -> None:
    task = Task("total", "fold", {"P": 1, "K": 1100000}, grid=("P",), atomic=True)
    check(task, Schedule({"P": 1, "K": 524288}, parts=4095))
    with pytest.raises(ScheduleError, match="2\\^31 points together or more.*3 parts have some"):
        check(task, Schedule({"P": 1, "K": 524288}, parts=4096))

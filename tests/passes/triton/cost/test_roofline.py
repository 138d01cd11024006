"""What the cost model says of kernels that are known."""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import pytest
from xdsl.context import Context

import tapestry as t
from tapestry.devices import DeviceSpec, find_spec
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of
from tapestry.passes.triton.cost.work import Work
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.passes.triton.tasks import tasks

H200, A100 = find_spec("h200"), find_spec("a100")


def works(expression: Expression) -> list[Work]:
    """What the kernels of a program do."""
    module = t.compile(expression, on="triton").lowered
    LoomToTriton().apply(Context(), module)
    found = [op for op in module.body.block.ops if isinstance(op, triton.KernelOp)]
    kernels = {kernel.sym_name.data: kernel for kernel in found}
    launches = [op for op in module.walk() if isinstance(op, triton.LaunchOp)]
    calls = [(kernels[launch.kernel_name], calls_of(launch)) for launch in launches]
    return [work_of(kernel, call) for kernel, each in calls for call, _ in each]


def estimate(expression: Expression, spec: DeviceSpec = H200) -> Estimate:
    (work,) = works(expression)
    return estimate_of(work, spec)


def _product(m: int, n: int, k: int) -> Expression:
    return t.input("a", (m, k), "f16") @ t.input("b", (k, n), "f16")


def _vectors(length: int, schedule: str) -> set[tuple[int, bool]]:
    """How many bytes of bfloat16 lanes move at once, and whether most programs do so."""
    module = t.compile(t.input("x", (length,), "bf16") * 2.0, on="triton").lowered
    LoomToTriton(schedules=(f"mul: {schedule}",), device="none").apply(Context(), module)
    (launch,) = (op for op in module.walk() if isinstance(op, triton.LaunchOp))
    (kernel,) = (op for op in module.body.block.ops if isinstance(op, triton.KernelOp))
    ((call, _),) = calls_of(launch)
    return {(s.vector, s.accesses > 0.5) for s in work_of(kernel, call).streams}


def test_lanes_move_neighbours_together_that_are_masked_alike():
    assert _vectors(1 << 20, "P = 1024") == {(16, True)}
    assert _vectors(1_000_008, "P = 1024") == {(16, True)}
    assert _vectors(1_000_002, "P = 1024") == {(4, True)}
    assert _vectors(1_000_003, "P = 1024") == {(2, True)}
    assert _vectors(1_000_003, "P = 1024, masks = boundary") == {(16, True), (2, False)}


def test_rows_that_are_looked_up_are_read_whole():
    """A row's number is the same for all of its cells, and so is whether there is such a row."""
    table, ids = t.input("table", (50257, 1024), "bf16"), t.input("ids", (4096,), "i64")
    (work,) = works(t.embedding(table, ids))
    assert sorted(stream.vector for stream in work.streams if stream.cell == 2) == [16, 16]


def test_small_requests_take_longer_where_memory_is_what_takes_longest():
    whole, odd = (estimate(t.input("x", (n,), "bf16") * 2.0) for n in (1 << 27, (1 << 27) - 1))
    assert whole.bytes >= odd.bytes
    assert 1.1 * whole.seconds < odd.seconds < 1.3 * whole.seconds
    # Those of 4 bytes are as large as any.
    whole, odd = (estimate(t.input("x", (n,), "f32") * 2.0) for n in (1 << 27, (1 << 27) - 1))
    assert odd.seconds < 1.01 * whole.seconds


def _waiting(expression: Expression, schedule: str) -> float:
    """Seconds that programs wait on an H200, with a schedule of the last kernel."""
    module = t.compile(expression, on="triton").lowered
    name = tasks(module)[-1].name
    LoomToTriton(schedules=(f"{name}: {schedule}",), device="none").apply(Context(), module)
    return predictions(module, H200)[-1].estimate.parts.get("waiting", 0.0)


def test_steps_wait_together_where_loads_can_pass_what_is_between_them():
    x = t.input("x", (64, 1 << 15), "f32")
    tile = "P = 1, K = 1024, warps = 4"
    alone = _waiting(x.sum(axis=1), tile)
    assert _waiting(x.sum(axis=1), f"{tile}, unroll = 4") < 0.3 * alone
    assert _waiting(x.sum(axis=1), f"{tile}, stages = 4, pipeline = loads") < 0.5 * alone
    # Threads reduce each block's maximum, and store each block: loads do not move past that.
    tile = "M = 1, K = 1024, warps = 4"
    alone = _waiting(t.softmax(x, axis=1), tile)
    assert _waiting(t.softmax(x, axis=1), f"{tile}, unroll = 4") == alone
    assert _waiting(t.softmax(x, axis=1), f"{tile}, stages = 4, pipeline = loads") < 0.6 * alone


def test_the_time_is_at_least_that_of_each_part_but_waiting() -> None:
    found = estimate(_product(1024, 1024, 1024))
    assert found.seconds >= max(found.parts.values())
    assert found.problems == ()


def test_work_counts_what_a_product_does() -> None:
    (work,) = works(_product(1024, 512, 256))
    (product,) = work.products
    assert work.programs * product.flops == 2 * 1024 * 512 * 256
    read, other, written = work.streams
    assert work.programs * read.bytes == 1024 * 256 * 2 * (512 / product.n)
    assert work.programs * other.bytes == 512 * 256 * 2 * (1024 / product.m)
    assert work.programs * written.bytes == 1024 * 512 * 2
    # Programs of one row of tiles read the same rows.
    assert read.apart(work.programs) == 1024 // product.m
    assert other.apart(work.programs) == 512 // product.n
    assert work.buffers == (1024 * 256 * 2, 256 * 512 * 2, 1024 * 512 * 2)


def test_lanes_that_are_no_points_move_nothing() -> None:
    (work,) = works(t.input("x", (300, 700), "f32").sum(axis=1))
    (read,) = [stream for stream in work.streams if not stream.writes]
    assert work.programs * read.bytes == pytest.approx(300 * 700 * 4, rel=0.02)


def test_causal_attention_takes_half_the_steps_of_full_attention() -> None:
    q, k, v = (t.input(name, (4, 2048, 64), "f16") for name in "qkv")
    (full,) = works(t.scaled_dot_product_attention(q, k, v))
    (causal,) = works(t.scaled_dot_product_attention(q, k, v, causal=True))
    assert causal.steps == pytest.approx(full.steps / 2, rel=0.1)
    assert len(full.products) == 2


def test_columns_read_across_memory_take_whole_sectors() -> None:
    straight, turned = (
        estimate(x * 1)
        for x in (t.input("x", (4096, 4096), "f16"), t.input("y", (4096, 4096), "f16").T)
    )
    for part in ("memory", "l2"):
        assert turned.parts[part] >= straight.parts[part]


def test_what_bounds_kernels_that_are_known() -> None:
    x = t.input("x", (1 << 26,), "f32")
    assert estimate(x + t.input("y", (1 << 26,), "f32")).bound == "memory"
    assert estimate(t.softmax(t.input("x", (8192, 4096), "f16"), axis=-1)).bound == "memory"
    big = estimate(_product(8192, 8192, 8192))
    assert big.bound != "memory"
    # Between the peak and a third of it.
    assert 1 / 3 < 2 * 8192**3 / H200.rates.f16 / big.seconds < 1


def test_small_launches_cost_the_launch() -> None:
    found = estimate(t.input("x", (64,), "f32") * 2)
    waited = H200.coefficients.launch + H200.memory.latency
    assert found.seconds == pytest.approx(waited, rel=0.2)


def test_problems_say_what_does_not_fit() -> None:
    (work,) = works(_product(1024, 1024, 1024))
    (one, *more) = estimate_of(replace(work, staged=1 << 17), H200).problems
    assert not more
    assert one == f"{3 << 17} bytes of shared memory, of 232448"
    problems = estimate_of(replace(work, live=work.live * 4), H200).problems
    assert [problem for problem in problems if "registers, of 255" in problem]


def test_programs_that_share_a_multiprocessor_are_limited_by_what_they_take() -> None:
    (work,) = works(_product(8192, 8192, 8192))
    found = [
        estimate_of(replace(work, staged=staged), H200).occupancy
        for staged in (1, 1 << 15, 1 << 16)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] == 1


def test_shards_are_counted_by_their_bounds() -> None:
    x = t.input("x", (1000, 64), "f32")
    module = t.compile(x * 2, on="triton").sharded(shards=3).lowered
    LoomToTriton().apply(Context(), module)
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, triton.KernelOp)]
    (launch,) = [op for op in module.walk() if isinstance(op, triton.LaunchOp)]
    each = [(work_of(kernel, call), count) for call, count in calls_of(launch)]
    stored = [(w.programs * s.bytes, n) for w, n in each for s in w.streams if s.writes]
    assert sum(count for _, count in each) == len(launch.rows) == 3
    assert sum(size * count for size, count in stored) == pytest.approx(1000 * 64 * 4)


def _scheduled(expression: Expression, schedule: str, spec: DeviceSpec = H200) -> Estimate:
    """A product with a schedule."""
    module = t.compile(expression, on="triton").lowered
    name = tasks(module)[-1].name
    LoomToTriton(schedules=(f"{name}: {schedule}",), device="none").apply(Context(), module)
    return predictions(module, spec)[-1].estimate


def test_two_stages_cannot_hide_what_comes_within_one_step() -> None:
    product, tile = _product(8192, 8192, 8192), "M = 128, N = 256, swizzle = 8, warps = 8"
    two = _scheduled(product, f"{tile}, K = 128, stages = 2")
    three = _scheduled(product, f"{tile}, K = 64, stages = 3")
    assert two.shared > three.shared
    assert two.seconds > 1.1 * three.seconds


def test_tensor_cores_and_what_feeds_them_overlap_in_part() -> None:
    (work,) = works(_product(8192, 8192, 8192))
    one = estimate_of(work, H200)
    tensor, shared = one.parts["tensor cores"], one.parts["shared memory"]
    assert max(tensor, shared) < hypot(tensor, shared) < one.seconds < tensor + shared


def test_without_a_loop_programs_hide_the_work_of_others() -> None:
    """8192 rows of 768 on an H200: 8.4 us in tiles of 4 rows, 11 in tiles of 16."""
    x = t.input("x", (8192, 768), "f16")
    norm = (x - x.mean(axis=1, keepdims=True)) / t.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    small, large = (_scheduled(norm, f"M = {m}, K = 1024, warps = 8") for m in (4, 16))
    assert small.bytes == large.bytes
    assert large.seconds > small.seconds


def test_stages_bring_no_more_than_a_multiprocessor_gets() -> None:
    (work,) = works(_product(128, 128, 1 << 16))
    moving = replace(work, products=(), lanes=0.0, stages=6)
    rate = H200.memory.l2_bandwidth / H200.multiprocessors
    loaded = (work.steps - 5) * work.staged
    assert loaded / rate <= estimate_of(moving, H200).seconds < 1.2 * loaded / rate


def test_neighbours_along_blocks_are_lost_where_blocks_and_steps_are_one_loop() -> None:
    """Loads of rows of n are not staged there; those along k, and descriptors, are."""
    tile = "M = 128, N = 128, K = 64, warps = 8, stages = 3, swizzle = 8"
    straight = _product(4096, 4096, 4096)
    turned = t.input("a", (4096, 4096), "f16") @ t.input("b", (4096, 4096), "f16").T
    programs, blocks = f"{tile}, programs = 132", f"{tile}, programs = 132, loads = descriptor"
    slow = _scheduled(straight, programs)
    assert slow.seconds > 1.5 * _scheduled(straight, tile).seconds
    assert slow.seconds > 1.5 * _scheduled(turned, programs).seconds
    assert slow.seconds > 1.5 * _scheduled(straight, blocks).seconds
    # One block of each stage is left, and one of what is loaded when it is needed.
    assert slow.shared == (3 + 1) * 128 * 64 * 2


def test_what_an_epilogue_reads_by_descriptors_lies_beside_the_stages() -> None:
    """Of persistent programs: 196,648 bytes by Triton 3.9, with barriers."""
    x, w, r = (t.input(name, (4096, 4096), "f16") for name in "xwr")
    tile = "M = 128, N = 128, K = 64, warps = 8, stages = 4, programs = 132, loads = descriptor"
    stages, block = 4 * 2 * 128 * 64 * 2, 128 * 128 * 2
    assert _scheduled(x @ w, tile).shared == stages + block
    assert _scheduled(x @ w + r, tile).shared == stages + 2 * block


def test_what_threads_read_of_a_stage_leaves_it_early() -> None:
    x, gain = t.input("x", (2048, 4096), "bf16"), t.input("gain", (4096,), "bf16")
    product = (x * gain) @ t.input("w", (4096, 4096), "bf16")
    found = _scheduled(product, "M = 128, N = 128, K = 64, warps = 8, stages = 3")
    assert found.shared == 3 * 128 * 64 * 2 + 2 * (128 * 64 + 64) * 2


def test_warps_that_share_rows_take_them_apart_each() -> None:
    """Attention of float32 took 952 us on an H100 with 4 warps of 16 rows, 2091 with 8 for them."""
    given = [t.input(name, (2, 16, 2048, 128), "f32") for name in "qkv"]
    module = t.compile(t.scaled_dot_product_attention(*given, causal=True), on="triton").lowered
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))

    def taken(warps: int) -> float:
        tile = {"M": 64, "C": 64, "K": 32, "N": 128}
        group.attributes[SCHEDULE] = ScheduleAttr(Schedule(tile, warps=warps, stages=2))
        lowered = module.clone()
        LoomToTriton(device="h100").apply(Context(), lowered)
        return predictions(lowered, find_spec("h100"))[0].estimate.seconds

    assert taken(4) * 1.2 < taken(8)


def _attention(schedule: str, rows: int = 1024, *, causal: bool = True) -> Estimate:
    given = [t.input(name, (8, 12, rows, 64), "bf16") for name in "qkv"]
    return _scheduled(
        t.scaled_dot_product_attention(*given, causal=causal),
        f"{schedule}, C = 64, K = 64, N = 64, stages = 3",
        find_spec("h100"),
    )


def test_warps_that_share_rows_do_the_same_where_rows_are_reduced():
    """A product that feeds another has warps along rows alone, 16 for each."""
    assert _attention("M = 64, warps = 4").seconds * 1.2 < _attention("M = 64, warps = 8").seconds
    wide = [_attention(f"M = 128, warps = {warps}").seconds for warps in (4, 8)]
    assert max(wide) < 1.2 * min(wide)


def test_the_last_programs_say_how_long_the_others_wait() -> None:
    """Of 12 programs for 4 multiprocessors, half are three times as long as the others."""
    few = H200.model_copy(update={"multiprocessors": 4})
    (work,) = works(_product(1024, 512, 256))

    def rounds(*walks: float) -> float:
        each = tuple(walk for walk in walks for _ in range(6))
        uneven = replace(work, programs=12, walks=each)
        one = estimate_of(replace(work, programs=1), few).parts["tensor cores"]
        return estimate_of(uneven, few).parts["tensor cores"] / one

    assert rounds() == pytest.approx(3.0)
    assert rounds(1.5, 0.5) == pytest.approx(3.0)
    assert rounds(0.5, 1.5) == pytest.approx(3.5)


def test_programs_of_causal_rows_are_uneven() -> None:
    """Those of one head come together, longest first: the last head's say how long all takes."""
    full, causal = (
        _attention("M = 64, warps = 4", causal=causal).seconds for causal in (False, True)
    )
    assert full / 2 < causal < full / 1.5


def test_longest_walks_of_many_heads_come_first() -> None:
    """One head after the other, a multiprocessor starts long rows last, and the others wait."""
    tile = "M = 128, warps = 8, order = descending"
    apart, together = (_attention(f"{tile}, swizzle = {heads}").seconds for heads in (1, 64))
    assert together * 1.08 < apart
    # Where all walks are as long, nothing is gained.
    assert "swizzle" not in str(_default(causal=False))
    assert _default(causal=True).swizzle * (1024 // 128) >= 2 * 132


def _default(*, causal: bool) -> Schedule:
    given = [t.input(name, (8, 12, 1024, 64), "bf16") for name in "qkv"]
    program = t.scaled_dot_product_attention(*given, causal=causal)
    module = t.compile(program, on="triton").lowered
    LoomToTriton(device="none").apply(Context(), module)
    (kernel,) = (op for op in module.body.block.ops if isinstance(op, triton.KernelOp))
    return kernel.schedule.data


def test_what_is_read_again_stays_in_a_part_of_the_l2_only() -> None:
    """Rows of 64 KB are held in registers, not read twice by 132 programs that write as much.

    On an H100 the one took 107 us, the other 129, and 141 by more programs at once, when the one
    still computed each exponential twice.
    """
    x = t.input("x", (2048, 32768), "f16")
    held = _scheduled(t.softmax(x, axis=1), "M = 1, K = 32768, warps = 16")
    again = _scheduled(t.softmax(x, axis=1), "M = 1, K = 8192, warps = 16")
    many = _scheduled(t.softmax(x, axis=1), "M = 1, K = 4096, warps = 4")
    assert 1.2 * held.bytes < again.bytes < many.bytes <= 1.5 * held.bytes
    assert 1.3 * held.seconds > again.seconds > 1.2 * held.seconds
    assert many.bytes > 1.4 * held.bytes

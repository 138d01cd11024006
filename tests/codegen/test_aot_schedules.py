"""What schedules become on Hopper: matrix units, blocks moved by hardware, no spills."""

from __future__ import annotations

import re

import pytest

import tapestry
from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import run_pipeline
from tests.codegen.test_aot import check_fits, compiled, matmul

WIDE = "M = 128, N = 256, K = 64, warps = 8, stages = 3, swizzle = 8"


def scheduled(module, schedule, tmp_path):
    pipeline = f'loom-to-triton{{schedules="product: {schedule}"}}'
    (kernel,) = compiled(module, pipeline, tmp_path, targets=(90,))
    check_fits([kernel])
    assert kernel.uses_wgmma
    return kernel


def test_descriptors_are_moved_by_hardware(tmp_path):
    kernel = scheduled(matmul("bf16", 1024, 1024, 512), f"{WIDE}, loads = descriptor", tmp_path)
    assert "cp.async.bulk.tensor.2d.shared" in kernel.ptx
    assert "cp.async.bulk.tensor.2d.global" in kernel.ptx
    assert "ld.global" not in kernel.ptx


@pytest.mark.parametrize("loads", ["pointer", "descriptor"])
def test_persistent_programs_are_one_loop(loads, tmp_path):
    module = matmul("bf16", 1024, 1024, 512)
    kernel = scheduled(module, f"{WIDE}, programs = 132, loads = {loads}", tmp_path)
    # Flattened, the products of all blocks are in one loop.
    assert len(re.findall(r"wgmma\.mma_async", kernel.ptx)) <= 16
    assert ("cp.async.bulk.tensor" in kernel.ptx) == (loads == "descriptor")


def test_a_schedule_is_read_in_the_source():
    module = matmul("bf16")
    schedule = f"product: {WIDE}, programs = 132, loads = descriptor"
    run_pipeline(module, f'loom-to-triton{{schedules="{schedule}"}}')
    source = print_module(module).source
    assert "block_m, block_n = tl.swizzle2d(" in source
    assert "PROGRAMS, flatten=True):" in source
    assert source.count("tl.make_tensor_descriptor(") == 3
    # Descriptors are made once, not for each block.
    assert source.rindex("tl.make_tensor_descriptor(") < source.index("for block in")


def test_offsets_have_64_bits_where_a_tensor_is_too_large_for_32(tmp_path):
    """Cells of a tensor of 2^32 are found, and small tensors are not slowed down by that."""
    large, small = (
        aot_pointwise((1 << 16, columns), tmp_path / str(columns)) for columns in (1 << 16, 1 << 10)
    )
    assert "tl.int64" in large[0]
    assert "tl.int64" not in small[0]
    assert large[1].spills == small[1].spills == 0


@pytest.mark.parametrize(
    ("dtype", "shards", "width"),
    [("f32", 1, 4), ("bf16", 1, 4), ("f32", 2, 4), ("bf16", 2, 4), ("f32", 3, 1)],
)
def test_threads_move_16_bytes_at_a_time(dtype, shards, width, tmp_path):
    """So they do in shards that start at multiples of them; others start anywhere."""
    x, y = (tapestry.input(name, (1 << 16,), dtype) for name in "xy")
    program = tapestry.compile(x * 2.0 + y, on="triton")
    module = (program if shards == 1 else program.sharded(shards=shards)).lowered
    (kernel,) = compiled(module, "loom-to-triton", tmp_path, targets=(90,))
    moved = set(re.findall(r"(?:ld|st)\.global(?:\.\w+)*?(\.v\d)?\.b\d+", kernel.ptx))
    assert moved == {f".v{width}" if width > 1 else ""}


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(("masks", "wide"), [("always", False), ("boundary", True)])
def test_full_blocks_of_odd_lengths_are_moved_16_bytes_at_a_time(dtype, masks, wide, tmp_path):
    module = tapestry.compile(tapestry.input("x", (1_000_003,), dtype) * 2.0, on="triton").lowered
    pipeline = f'loom-to-triton{{schedules="mul: P = 2048, masks = {masks}"}}'
    (kernel,) = compiled(module, pipeline, tmp_path, targets=(90,))
    check_fits([kernel])
    assert ("ld.global.v4" in kernel.ptx) == ("st.global.v4" in kernel.ptx) == wide


@pytest.mark.parametrize(("segments", "wide"), [(1, False), (2, True)])
def test_full_steps_of_odd_walks_are_read_16_bytes_at_a_time(segments, wide, tmp_path):
    """Rows of 50257 cells that lie in memory of 50264 each."""
    x = tapestry.input("x", (64, 50264), "bf16")
    module = tapestry.compile(x[:, :50257].sum(axis=1), on="triton").lowered
    pipeline = f'loom-to-triton{{schedules="sum: P = 1, K = 2048, segments = {segments}"}}'
    (kernel,) = compiled(module, pipeline, tmp_path, targets=(90,))
    check_fits([kernel])
    assert ("ld.global.v4" in kernel.ptx) == wide


@pytest.mark.parametrize(
    ("how", "loads", "copies"),
    [("stages = 2", 1, 0), ("unroll = 4", 4, 0), ("stages = 3, pipeline = loads", 0, 3)],
)
def test_long_folds_load_ahead(how, loads, copies, tmp_path):
    """A step's cells are 16 bytes of each thread: loads, or copies before and in the loop."""
    module = tapestry.compile(tapestry.input("x", (64, 1 << 15), "bf16").sum(axis=1)).lowered
    pipeline = f'loom-to-triton{{schedules="sum: P = 1, K = 1024, {how}"}}'
    (kernel,) = compiled(module, pipeline, tmp_path, targets=(90,))
    check_fits([kernel])
    assert kernel.ptx.count("ld.global.v4") == loads
    assert kernel.ptx.count("cp.async.cg.shared.global") == copies


def test_parts_are_merged_by_memory(tmp_path):
    how = "M = 64, N = 64, K = 64, warps = 4, stages = 3, parts = 8"
    module = matmul("bf16", 64, 64, 8192)
    kernels = compiled(
        module, f'loom-to-triton{{schedules="product: {how}"}}', tmp_path, targets=(90,)
    )
    check_fits(kernels)
    main, finish = kernels
    assert main.uses_wgmma
    assert re.search(r"(atom|red)\.\S*global\S*add\S*f32", main.ptx)
    assert "add.f32" not in finish.ptx


def aot_pointwise(shape, folder):
    folder.mkdir()
    module = tapestry.compile(
        tapestry.relu(tapestry.input("x", shape, "bfloat16").T), on="triton"
    ).lowered
    run_pipeline(module, "loom-to-triton")
    printed = print_module(module)
    path = folder / "kernels.py"
    path.write_text(printed.source)
    (kernel,) = compile_kernels(path, printed.kernels, targets=(90,))
    return printed.source, kernel


def test_unrolled_loops_do_not_end_in_front_of_their_start():
    """Triton counts their steps without a sign: parts with no points would fold others' again."""
    module = tapestry.compile(tapestry.input("x", (64, 5)).sum(axis=1), on="triton").lowered.clone()
    schedule = "sum: P = 4, K = 4, parts = 5, unroll = 3"
    run_pipeline(module, f'loom-to-triton{{schedules="{schedule}"}}')
    source = print_module(module).source
    assert "k_end = tl.maximum(k_first, tl.minimum(5, " in source
    assert "in tl.range(k_first, k_end, BLOCK_K, loop_unroll_factor=3):" in source

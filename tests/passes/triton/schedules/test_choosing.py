"""Schedules that the cost model chooses: of known shapes, never too large, never without a gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.devices import find_spec
from tapestry.diagnostics import UsageError
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.frontend import run_pipeline
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.predicting import Prediction, predictions
from tapestry.passes.triton.cost.ranking import Seen
from tapestry.passes.triton.cost.roofline import estimate_of
from tapestry.passes.triton.schedules.choosing import Chooser, pointers_first

H200 = find_spec("h200")


def lowered(expression: Expression, device: str) -> ModuleOp:
    module = t.compile(expression, on="triton").lowered.clone()
    run_pipeline(module, f'loom-to-triton{{device="{device}" relayout=false store=false}}')
    return module


def kernels(module: ModuleOp) -> Iterator[triton.KernelOp]:
    return (op for op in module.body.block.ops if isinstance(op, triton.KernelOp))


def chosen(expression: Expression, device: str = "h200") -> Schedule:
    (kernel,) = kernels(lowered(expression, device))
    return kernel.schedule.data


def predicted(expression: Expression, device: str) -> Prediction:
    (one,) = predictions(lowered(expression, device), H200)
    return one


def product(m: int, n: int, k: int, dtype: str = "bf16") -> Expression:
    return t.input("a", (m, k), dtype) @ t.input("b", (k, n), dtype)


def rows(count: int, columns: int) -> Expression:
    return t.softmax(t.input("x", (count, columns), "f16"), axis=-1)


def attention(dtype: str, width: int, length: int = 2048) -> Expression:
    q, k, v = (t.input(name, (8, length, width), dtype) for name in "qkv")
    return t.scaled_dot_product_attention(q, k, v)


def test_large_products_have_large_tiles() -> None:
    tile = chosen(product(8192, 8192, 8192)).tile
    assert tile["M"] >= 128
    assert tile["N"] >= 128
    assert tile["M"] * tile["N"] > 128 * 128


def test_small_products_have_tiles_for_all_multiprocessors() -> None:
    tile = chosen(product(512, 512, 512)).tile
    default = chosen(product(512, 512, 512), "none").tile
    assert tile["M"] * tile["N"] < default["M"] * default["N"]
    programs = (512 // tile["M"]) * (512 // tile["N"])
    assert programs >= 64 > (512 // default["M"]) * (512 // default["N"])


def test_of_what_is_as_fast_warpgroups_multiply() -> None:
    """For 512 rows a B200 is predicted to be as fast by warps, within three in a hundred."""
    schedule = chosen(product(512, 512, 512), "b200")
    assert schedule.tile["M"] >= 64
    (one,) = predictions(lowered(product(512, 512, 512), "b200"), find_spec("b200"))
    assert not one.estimate.by_warps


def test_products_that_need_one_another_may_take_all_registers() -> None:
    """The fastest of 28 that were timed on an H200 takes 252 of 255 (`schedules_h200.json`)."""
    q, k, v = (t.input(name, (4, 16, 4096, 128), "bf16") for name in "qkv")
    one = predicted(t.scaled_dot_product_attention(q, k, v, causal=True), "h200")
    assert one.estimate.registers > 0.9 * H200.limits.registers_per_thread
    assert not one.estimate.problems


def test_of_what_is_as_fast_products_that_need_one_another_load_by_pointers() -> None:
    first = predicted(attention("bf16", 64), "h200")
    pointers = replace(first.schedule, loads="pointer")
    described = replace(first.schedule, loads="descriptor")

    def found(*seconds: float) -> list[Schedule]:
        loads = (described, pointers, described)
        ranked = [
            Prediction(first.name, schedule, replace(first.estimate, seconds=each))
            for schedule, each in zip(loads, seconds, strict=True)
        ]
        return [one.schedule for one in pointers_first(Seen(iter(ranked)))]

    assert found(1.0, 1.02, 1.04) == [pointers, described, described]
    assert found(1.0, 1.1, 1.2) == [described, pointers, described]


def test_what_has_few_rows_is_multiplied_by_warps() -> None:
    few = predicted(product(16, 512, 512), "h200")
    assert few.estimate.by_warps
    assert not predicted(product(8192, 8192, 8192), "h200").estimate.by_warps
    on_a100 = lowered(product(512, 512, 512), "a100")
    assert not predictions(on_a100, find_spec("a100"))[0].estimate.by_warps


def test_thin_products_have_programs_for_all_multiprocessors() -> None:
    assert 8192 // chosen(product(16, 8192, 8192)).tile["N"] >= 128


def chained() -> Expression:
    """Two products of which the first's rows are computed, and held while the second's go by."""
    x = t.input("x", (49152, 196), "f16")
    up, bias = t.input("up", (196, 384), "f16"), t.input("bias", (384,), "f16")
    return t.gelu(t.tanh(x) @ up + bias) @ t.input("down", (384, 196), "f16") + x


def test_what_is_too_large_by_default_is_chosen_to_fit() -> None:
    """The rows are in shared memory beside each stage: an H100 refused 262,400 bytes."""
    default, one = (predicted(chained(), device).estimate for device in ("none", "h100"))
    assert default.shared == 128 * 256 * 2 + 3 * 2 * 256 * 64 * 2 + 256
    assert not default.fits
    assert one.fits


def test_spilled_registers_are_a_cost() -> None:
    """A kernel of which nothing is clean can still be chosen: by what its spills take."""
    module = lowered(chained(), "h100")
    (kernel,) = kernels(module)
    (launch,) = (op for op in module.walk() if isinstance(op, triton.LaunchOp))
    ((call, _),) = calls_of(launch)
    work = work_of(kernel, call)
    some, more = (replace(work, live=4 * work.threads * n) for n in (255, 300))
    found = [estimate_of(one, H200) for one in (some, more)]
    assert all(one.fits and one.problems for one in found)
    assert found[0].seconds < found[1].seconds


def test_rows_that_fit_are_one_block() -> None:
    assert chosen(rows(8192, 4096)).tile["K"] == 4096
    # 2 bytes in one walk, not 2 + 2.
    longer = predicted(rows(2048, 32768), "h200")
    assert longer.estimate.bytes < 1.1 * 2 * 2048 * 32768 * 2


@pytest.mark.parametrize(
    "expression",
    [
        product(4096, 4096, 4096, "f16"),
        product(1001, 1003, 997, "f16"),
        product(2048, 2048, 2048, "f32"),
        rows(512, 65536),
        attention("f16", 128),
        attention("f32", 128),
    ],
    ids=["f16", "odd", "f32", "rows", "attention", "attention of float32"],
)
def test_what_is_chosen_fits_and_is_not_slower(expression: Expression) -> None:
    before, after = predicted(expression, "none"), predicted(expression, "h200")
    limits = H200.limits
    assert after.estimate.problems == ()
    assert after.estimate.shared <= limits.shared_per_program
    assert after.estimate.registers <= limits.registers_per_thread
    # A default that is near the limit of registers is left for what surely fits.
    if not before.estimate.problems:
        assert after.estimate.seconds <= 1.05 * before.estimate.seconds


def test_what_is_as_fast_as_memory_keeps_its_default() -> None:
    x = t.input("x", (1 << 24,), "f32")
    assert chosen(x * 2 + 1) == chosen(x * 2 + 1, "none")


def test_odd_lengths_are_read_without_masks_where_that_is_faster() -> None:
    odd = t.input("x", ((1 << 27) - 1,), "bf16") * 2.0
    assert chosen(odd).masks == "boundary"
    assert predicted(odd, "h200").estimate.seconds < predicted(odd, "none").estimate.seconds
    # Cells of four bytes are as fast one by one, and there is nothing to gain in small tensors.
    assert chosen(t.input("x", ((1 << 27) - 1,), "f32") * 2.0).masks == "always"
    assert chosen(t.input("x", (9999,), "bf16") * 2.0).masks == "always"


def test_a_schedule_that_is_given_stays() -> None:
    module = t.compile(product(8192, 8192, 8192), on="triton").lowered.clone()
    given = "M = 64, N = 64, K = 64, warps = 4, stages = 2"
    run_pipeline(module, f'loom-to-triton{{device="h200" schedules="matmul: {given}"}}')
    (kernel,) = kernels(module)
    assert str(kernel.schedule.data) == given


def test_equal_kernels_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    chosen_before = Chooser._chosen

    def counted(*arguments: Any) -> Schedule | None:
        counts.append(1)
        return chosen_before(*arguments)

    monkeypatch.setattr(Chooser, "_chosen", counted)
    x = t.input("x", (1024, 1024), "f16")
    for name in "abc":
        x = x @ t.input(name, (1024, 1024), "f16")
    module = lowered(x, "h200")
    assert len(list(kernels(module))) == 1
    assert len(counts) == 1


def test_an_unknown_device_is_said() -> None:
    with pytest.raises(UsageError, match="there is no device 'h300'"):
        lowered(product(64, 64, 64), "h300")


def test_kernels_of_shards_are_chosen_for_shards() -> None:
    x = t.input("x", (4096, 4096), "f16")
    module = t.compile(x @ x, on="triton").sharded(shards=4).lowered.clone()
    run_pipeline(module, 'loom-to-triton{device="h200"}')
    (launch,) = [op for op in module.walk() if isinstance(op, triton.LaunchOp)]
    assert len(launch.rows) == 4
    (one,) = predictions(module, H200)
    assert one.estimate.problems == ()


def test_kernels_for_several_targets_fit_the_smallest() -> None:
    small = find_spec("a100")
    (one,) = predictions(lowered(product(8192, 8192, 8192), "sm_80"), small)
    assert one.estimate.shared <= small.limits.shared_per_program
    (other,) = predictions(lowered(product(8192, 8192, 8192), "sm_90"), H200)
    assert other.estimate.shared > small.limits.shared_per_program


def test_a_buffer_that_a_group_reads_in_several_places_is_one_pointer() -> None:
    """As the heads of one product for queries, keys and values are."""
    x = t.input("x", (4, 64, 32), "f16")
    (kernel,) = kernels(lowered(t.scaled_dot_product_attention(x, x, x), "h200"))
    assert len(kernel.body.block.args) == 2

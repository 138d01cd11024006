"""Kernels that turn out badly when they are compiled: the next schedule, said once, remembered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry
from tapestry.codegen import bundle as bundles
from tapestry.codegen.aot import CompiledKernel
from tapestry.codegen.aot_jobs import CompileError
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.refusals import Refusals
from tapestry.codegen.specs import KernelSpec
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.choosing import never
from tapestry.store import Store
from tests.codegen.standing import compiled_at_once


def product() -> ModuleOp:
    a, b = tapestry.input("a", (512, 512), "f16"), tapestry.input("b", (512, 512), "f16")
    return tapestry.compile(a @ b, on="triton").lowered


def lowered(refused: Any = never) -> ModuleOp:
    module = product().clone()
    LoomToTriton(device="h200").lower(Context(), module, refused=refused)
    return module


def kernel_of(module: ModuleOp) -> triton.KernelOp:
    (kernel,) = (op for op in module.body.block.ops if isinstance(op, triton.KernelOp))
    return kernel


def result(spills: int, shared: int = 0, warnings: tuple[str, ...] = ()) -> CompiledKernel:
    return CompiledKernel("product", 90, "", b"", 0, 96, spills, shared, warnings)


@pytest.mark.parametrize(
    "bad",
    [result(4), result(0, shared=1 << 20), result(0, warnings=("C7515: serialized",))],
    ids=["spills", "shared memory", "a warning"],
)
def test_the_next_schedule_is_chosen(bad: CompiledKernel, caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals([90])
    first = lowered(refusals)
    assert refusals.learn(first, [bad])
    second = lowered(refusals)
    assert kernel_of(second).schedule != kernel_of(first).schedule
    assert not refusals.learn(second, [result(0)])
    (record,) = caplog.records
    assert str(kernel_of(first).schedule.data) in record.getMessage()
    assert bad.problems[0] in record.getMessage()
    # Nothing else is known: what is asked for without it stays.
    assert kernel_of(lowered()).schedule == kernel_of(first).schedule


def test_what_is_compiled_wrongly_is_chosen_without_stages() -> None:
    """Whatever its tiles are: none of these is compiled to find out."""
    refusals = Refusals([90])
    first = lowered(refusals)
    printed = print_module(first).kernels
    said = {printed[0].name: "would be wrong"}
    broken = CompileError("no memory", said)
    assert not refusals.learn_miscompiled(first, printed, broken)
    elsewhere = CompileError("", said, miscompiled={(printed[0].name, 100): "would be wrong"})
    assert not refusals.learn_miscompiled(first, printed, elsewhere)
    wrong = CompileError("", said, miscompiled={(printed[0].name, 90): "would be wrong"})
    assert refusals.learn_miscompiled(first, printed, wrong)
    assert not refusals.learn_miscompiled(first, printed, wrong)
    assert kernel_of(first).schedule.data.stages > 1
    assert kernel_of(lowered(refusals)).schedule.data.stages == 1


def test_the_next_schedule_is_chosen_of_a_kernel_that_is_changed_before_its_launch() -> None:
    """Masks of blocks on the diagonal leave unused numbers, quotients become approximate."""
    q, k, v = (tapestry.input(name, (64, 2048, 64), "f32") for name in "qkv")
    program = tapestry.scaled_dot_product_attention(q, k, v, causal=True)
    module = tapestry.compile(program, on="triton").lowered
    refusals = Refusals([90])
    seen: list[str] = []
    for _ in range(3):
        made = module.clone()
        LoomToTriton(device="h200").lower(Context(), made, refused=refusals)
        seen.append(str(kernel_of(made).schedule.data))
        assert refusals(kernel_of(made)) is False
        assert refusals.learn(made, [result(24)])
    assert len(set(seen)) == len(seen)


def test_small_blocks_are_left_where_large_ones_of_float32_spill() -> None:
    """What threads take apart of a tile they hold: of equal tiles one is compiled, no more."""
    q, k, v = (tapestry.input(name, (64, 2048, 64), "f32") for name in "qkv")
    program = tapestry.scaled_dot_product_attention(q, k, v, causal=True)
    module = tapestry.compile(program, on="triton").lowered
    tried: list[Schedule] = []

    def refused(kernel: triton.KernelOp) -> bool:
        tried.append(kernel.schedule.data)
        return kernel.schedule.data.tile["K"] > 16

    made = module.clone()
    LoomToTriton(device="a100").lower(Context(), made, refused=refused)
    assert kernel_of(made).schedule.data.tile["K"] == 16
    after_default = [(tuple(one.tile.items()), one.warps) for one in tried[1:]]
    assert len(set(after_default)) == len(after_default)


def test_what_is_known_is_not_said_again(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals([90])
    module = lowered(refusals)
    assert refusals.learn(module, [result(4)])
    assert not refusals.learn(module, [result(4)])
    assert len(caplog.records) == 1


def test_what_was_refused_is_remembered_by_target(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = lowered()
    assert Refusals([90], store).learn(first, [result(4)])
    assert Refusals([90], store)(kernel_of(first))
    assert Refusals([80, 90], store)(kernel_of(first))
    assert not Refusals([80], store)(kernel_of(first))
    for entry in tmp_path.glob("*.json"):
        entry.write_bytes(b"damaged")
    assert not Refusals([90], store)(kernel_of(first))


def test_names_and_places_do_not_matter() -> None:
    refusals = Refusals([90])
    module = lowered()
    assert refusals.learn(module, [result(4)])
    a, b = tapestry.input("left", (512, 512), "f16"), tapestry.input("right", (512, 512), "f16")
    other = tapestry.compile(a @ b, on="triton").lowered.clone()
    LoomToTriton(device="h200").apply(Context(), other)
    assert refusals(kernel_of(other))


def test_where_all_are_refused_the_first_choice_stays() -> None:
    everything = lowered(lambda _: True)
    assert kernel_of(everything).schedule == kernel_of(lowered()).schedule


def test_a_folder_has_kernels_that_compile_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[dict[str, int]] = []

    def spilling(path: Path, specs: Sequence[KernelSpec], **options: Any) -> Any:
        """Kernels of which the first schedule that is tried spills."""
        tried.append(dict(specs[0].blocks) | {"warps": specs[0].num_warps})
        options.pop("cache"), options.pop("workers")
        made = compiled_at_once(path, specs, **options)
        worst = {**vars(made[0]), "spills": 4 if tried[-1] == tried[0] else 0}
        return (CompiledKernel(**worst), *made[1:])

    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TAPESTRY_CACHE", "refused")
    monkeypatch.setattr(bundles, "compile_kernels", spilling)
    made = bundles.compile_bundle(product(), tmp_path / "one")
    assert len(tried) == 2
    assert not any(kernel.problems for kernel in made.kernels)
    # The next time it is known beforehand.
    bundles.compile_bundle(product(), tmp_path / "two")
    assert len(tried) == 3
    assert tried[2] == tried[1]


def test_what_spills_in_all_tiles_that_are_tried_keeps_its_stages() -> None:
    """Each is refused as it was compiled: of other stages nothing is known, and none mends it."""
    compiled: dict[str, int] = {}

    def spills(kernel: triton.KernelOp) -> bool:
        schedule = kernel.schedule.data
        return compiled.setdefault(str(schedule.tile), schedule.stages) == schedule.stages

    assert kernel_of(lowered(spills)).schedule.data.stages > 1
    assert len(compiled) > 1

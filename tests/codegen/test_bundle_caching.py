"""What was compiled before is not lowered again, unless it would be other kernels now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import tapestry
from tapestry.caching import lowered
from tapestry.codegen import bundle as bundles
from tapestry.codegen.aot import CompiledKernel
from tapestry.codegen.refusals import KIND, Refusals
from tapestry.devices import find_spec
from tapestry.dialects import triton
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.store import find_store
from tests.codegen.standing import compiled_at_once


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ModuleOp]:
    """What programs are lowered to, with a cache of one's own and no compiler."""
    found: list[ModuleOp] = []
    lower = LoomToTriton.lower

    def lowering(self: LoomToTriton, ctx: Any, op: ModuleOp, **options: Any) -> None:
        lower(self, ctx, op, **options)
        if self.split:  # else it is an alternative that is looked at
            found.append(op)

    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TAPESTRY_CACHE", "1")
    monkeypatch.setattr(LoomToTriton, "lower", lowering)
    monkeypatch.setattr(bundles, "compile_kernels", compiled_at_once)
    return found


def compiled(folder: Path, *targets: int, numerics: str = "mixed") -> tuple[str, str]:
    """The kernels of a product, and what is said of them."""
    a, b = tapestry.input("a", (512, 512), "f16"), tapestry.input("b", (512, 512), "f16")
    module = tapestry.compile(a @ b, on="triton").lowered
    bundles.compile_bundle(module, folder, targets=targets or (90,), numerics=numerics)
    return (folder / "kernels.py").read_text(), (folder / "manifest.json").read_text()


def learn_of(module: ModuleOp, target: int) -> None:
    """Find that the kernel of a program spills on a target."""
    result = CompiledKernel("product", target, "", b"", 0, 96, 4, 0, ())
    assert Refusals([target], find_store(KIND)).learn(module, [result])


def kernel_of(module: ModuleOp) -> triton.KernelOp:
    (kernel,) = (op for op in module.body.block.ops if isinstance(op, triton.KernelOp))
    return kernel


def test_the_second_time_nothing_is_lowered(made: list[ModuleOp], tmp_path: Path) -> None:
    first = compiled(tmp_path / "first")
    assert len(made) == 1
    assert compiled(tmp_path / "second") == first
    assert len(made) == 1


def test_other_options_are_other_programs(made: list[ModuleOp], tmp_path: Path) -> None:
    compiled(tmp_path / "out")
    compiled(tmp_path / "out", numerics="fast")
    compiled(tmp_path / "out", 80)
    assert len(made) == 3


def test_without_a_cache_it_is_lowered_again(
    made: list[ModuleOp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPESTRY_CACHE", "0")
    compiled(tmp_path / "out")
    compiled(tmp_path / "out")
    assert len(made) == 2


def test_what_is_refused_meanwhile_is_not_taken_from_the_cache(
    made: list[ModuleOp], tmp_path: Path
) -> None:
    first = compiled(tmp_path / "out")
    learn_of(made[0], 90)
    second = compiled(tmp_path / "out")
    assert second[0] != first[0]
    assert kernel_of(made[1]).schedule != kernel_of(made[0]).schedule
    # What was made by what is known now is kept in its place.
    assert compiled(tmp_path / "out") == second
    assert len(made) == 2


def test_what_passes_make_that_ask_nothing_is_another_program(
    made: list[ModuleOp], tmp_path: Path
) -> None:
    """The same pass as a pipeline knows of no kernel that is refused."""
    a, b = tapestry.input("a", (512, 512), "f16"), tapestry.input("b", (512, 512), "f16")
    module = tapestry.compile(a @ b, on="triton").lowered
    lowering = LoomToTriton(device=find_spec("sm_90").name)
    plain = lowered(module.clone(), str(lowering.spec(include_default=True)))
    learn_of(plain, 90)
    bundles.compile_bundle(module, tmp_path / "out")
    assert len(made) == 2
    assert kernel_of(made[1]).schedule != kernel_of(plain).schedule


def test_what_one_target_refuses_others_may_take(made: list[ModuleOp], tmp_path: Path) -> None:
    """One device stands for both targets, but what is known is known of one of them."""
    compiled(tmp_path / "out", 80)
    learn_of(made[0], 90)
    compiled(tmp_path / "out", 90, 80)
    compiled(tmp_path / "out", 80)
    first, both, alone = (kernel_of(one).schedule for one in made)
    assert both != first == alone

"""Registers of products under way that are written again: found where a loop has no wait between.

The loops are as Triton prints them, but for most of their registers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tapestry.codegen import aot
from tapestry.codegen.aot_jobs import CompileError
from tapestry.codegen.overwriting import overwritten
from tapestry.codegen.specs import KernelSpec

PRODUCT = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%r1,%r2}, {%r8,%r9}, %rd1, 1, 1;"
OTHER = PRODUCT.replace("%r8,%r9", "%r10,%r11")
COMPUTED = "cvt.rn.bf16x2.f32 %r8, %f1, %f2;"
COMMIT = "wgmma.commit_group.sync.aligned;"


def wait(count: int) -> str:
    """A wait until so many groups are under way."""
    return f"wgmma.wait_group.sync.aligned {count};"


def loop(*lines: str) -> str:
    """A loop of some instructions."""
    return "\n".join(["$L__BB0_1:", *(f"\t{line}" for line in lines), "\t@%p2 bra \t$L__BB0_1;"])


def test_a_factor_that_the_next_step_computes_before_the_wait_is_overwritten() -> None:
    """All but one product are done when the next step begins; that one still reads `%r8`."""
    step = (COMPUTED, PRODUCT, COMMIT, wait(1))
    assert overwritten(loop(*step)) == ("%r8", "%r9")


@pytest.mark.parametrize(
    "lines",
    [
        (COMPUTED, PRODUCT, COMMIT, wait(0)),
        (wait(0), COMPUTED, PRODUCT, COMMIT),
        # The second product is waited for by the time that the first one's factor is computed.
        (COMPUTED, PRODUCT, COMMIT, OTHER, COMMIT, wait(1)),
        # What is computed before the loop stays.
        (PRODUCT, COMMIT, wait(1)),
        # It is copied to registers that are its product's own, after the wait.
        ("mov.b32 %r8, %r7;", PRODUCT, COMMIT, wait(1), OTHER, COMMIT, wait(1)),
        # A store reads what is its first operand.
        ("st.shared.b32 [%r8], %r9;", PRODUCT, COMMIT, wait(1)),
    ],
)
def test_what_is_waited_for_is_not_overwritten(lines: tuple[str, ...]) -> None:
    """A wait lies between each product and what writes its registers, or nothing does."""
    assert overwritten(loop(*lines)) == ()


def test_the_second_of_two_products_is_looked_at_as_well() -> None:
    """A wait for all but one leaves the last one under way, whose factor comes first then."""
    ldmatrix = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11}, [%r20+98304];"
    step = (ldmatrix, COMPUTED, PRODUCT, COMMIT, OTHER, COMMIT, wait(1))
    assert overwritten(loop(*step)) == ("%r10", "%r11")


def test_factors_in_shared_memory_are_none_of_it() -> None:
    """They are described by a number of 64 bits, which an instruction reads as it begins."""
    shared = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%r1,%r2}, %rd1, %rd2, 1, 1;"
    assert overwritten(loop("add.s64 %rd1, %rd3, 2;", shared, COMMIT, wait(1))) == ()


def test_a_kernel_that_is_compiled_wrongly_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message says what would be wrong, and of which kernel."""
    answer: dict[str, Any] = {"name": "mm", "target": 90, "overwritten": ["%r8"], "cached": True}

    def answers(_jobs: object, _workers: int) -> list[dict[str, Any]]:
        return [answer]

    monkeypatch.setattr(aot, "answers_of", answers)
    path = tmp_path / "kernels.py"
    path.write_text("def mm(): pass\n")
    spec = KernelSpec("mm", (), (), num_warps=4, num_stages=3)
    with pytest.raises(CompileError, match="kernel mm would be wrong on sm_90.* read registers"):
        aot.compile_kernels(path, [spec])

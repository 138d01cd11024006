# pyright: basic
"""Programs give the same numbers where LLVM fails on their loops: the first, or a later one."""

from __future__ import annotations

import logging
from functools import partial

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.program import arguments
from tests.end_to_end.operations import random_program

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

SOFTMAX = """
func.func @main(%x: !loom.tensor<[0, 0] : [13, 17], f32>, %w: !loom.tensor<[0, 0] : [17, 5], f32>)
    -> (!loom.tensor<[0, 0] : [13, 17], f32>, !loom.tensor<[0, 0] : [13, 5], f32>) {
  %s = weft.apply @softmax(%x) {axis = 1 : i64}
       : (!loom.tensor<[0, 0] : [13, 17], f32>) -> !loom.tensor<[0, 0] : [13, 17], f32>
  %t = weft.apply @tanh(%s) : (!loom.tensor<[0, 0] : [13, 17], f32>) -> !loom.tensor<[0, 0] : [13, 17], f32>
  %p = weft.apply @matmul(%t, %w)
       : (!loom.tensor<[0, 0] : [13, 17], f32>, !loom.tensor<[0, 0] : [17, 5], f32>)
      -> !loom.tensor<[0, 0] : [13, 5], f32>
  %r = weft.apply @relu(%p) : (!loom.tensor<[0, 0] : [13, 5], f32>) -> !loom.tensor<[0, 0] : [13, 5], f32>
  func.return %s, %r : !loom.tensor<[0, 0] : [13, 17], f32>, !loom.tensor<[0, 0] : [13, 5], f32>
}
"""  # noqa: E501


@pytest.fixture(params=[0, 1, 2])
def failing(request, monkeypatch):
    """LLVM that fails after it compiled so many loops."""
    native.forget()
    monkeypatch.setenv("TAPESTRY_CACHE", "0")
    compiled, left = native._Machine._compile, [request.param]

    def compile_some(self, text):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("LLVM is tired")
        return compiled(self, text)

    monkeypatch.setattr(native._Machine, "_compile", compile_some)
    yield left
    native.forget()


def _check(text: str, inputs: dict[str, np.ndarray], pipeline: str) -> None:
    naive = parse_text(text)
    run_pipeline(naive, "weft-apply")
    want = find_executor("reference").run(naive, inputs, NoWatch()).outputs
    module = parse_text(text)
    run_pipeline(module, pipeline)
    given = [inputs[argument.name] for argument in arguments(module)]
    loops = Loops(0)
    parts = partial(in_parts, small=0, threads=2, cache=256, loops=loops)
    for prepared in (
        PreparedProgram(module, Library(loops=loops), None),
        PreparedProgram(module, Library(loops=loops), parts),
    ):
        for _ in range(2):
            for have, expected in zip(prepared(given), want, strict=True):
                assert have.dtype == expected.dtype
                np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-6)


def test_a_softmax(failing, caplog) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(13, 17)).astype(np.float32)
    w = rng.normal(size=(17, 5)).astype(np.float32)
    with caplog.at_level(logging.WARNING, "tapestry.kernels"):
        _check(SOFTMAX, {"x": x, "w": w}, "default")
    assert failing[0] < 0, "no loop was tried that fails"
    assert len([r for r in caplog.records if "LLVM is tired" in r.getMessage()]) == 1


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("seed", range(4))
def test_raw_operations(seed: int) -> None:
    program = random_program(seed)
    _check(program.text, program.inputs(), "loom-simplify,loom-fuse,loom-group")

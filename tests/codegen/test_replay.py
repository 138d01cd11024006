"""Programs replayed as graphs, on a device that captures as CUDA does: nothing runs meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.codegen.replay import Replayed
from tapestry.frontend import parse_text
from tapestry.runtime.prepared.kernels import PreparedKernels
from tapestry.runtime.triton import compiled
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu, Standing, Tensor, aligned, compiled_at_once

RNG = np.random.default_rng(2)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "compile_kernels", compiled_at_once)


_KEPT: list[Tensor] = []
"""Tensors stay, so that no other one takes their place."""


def cells(*shape: int) -> Tensor:
    made = Tensor(aligned(RNG.normal(size=shape).astype(np.float32)))
    _KEPT.append(made)
    return made


def program(y: Any | None = None) -> tuple[Replayed, Standing, list[str]]:
    if y is None:
        x, w = tapestry.input("x", (8, 16)), tapestry.input("w", (16, 16))
        y = tapestry.softmax(tapestry.softmax(x @ w) @ w)
    gpu = Gpu()
    PreparedKernels(tapestry.compile(y).lowered, TritonExecutor(device=gpu))
    assert gpu.launches is not None
    notes: list[str] = []
    return Replayed(gpu.launches, notes.append), gpu.devices[0], notes


def want(x: Tensor, w: Tensor) -> np.ndarray:
    made = x.array.astype(np.float64)
    for _ in range(2):
        made = np.exp(made @ w.array)
        made /= made.sum(axis=1, keepdims=True)
    return made


def check(run: Replayed, given: Sequence[Tensor], **out: Any) -> Tensor:
    (made,) = run(list(given), **out)
    np.testing.assert_allclose(made.array, want(*given), rtol=1e-4, atol=1e-6)
    return made


def test_a_program_is_captured_once_and_replayed() -> None:
    run, device, notes = program()
    w = cells(16, 16)
    check(run, (cells(8, 16), w))
    assert device.captures == 0
    kept = [check(run, (cells(8, 16), w)) for _ in range(4)]
    assert device.captures == 1
    assert notes == []
    assert len({one.data_ptr() for one in kept}) == 4


def test_what_stays_in_place_is_read_in_place() -> None:
    """Weights may change between calls: a graph reads them where they are."""
    run, device, _ = program()
    w = cells(16, 16)
    for _ in range(3):
        check(run, (cells(8, 16), w))
    before = len(device.empties)
    w.array[...] = cells(16, 16).array
    check(run, (cells(8, 16), w))
    assert device.captures == 1
    assert len(device.empties) == before


def test_what_moves_later_is_copied_from_then_on() -> None:
    run, device, _ = program()
    x, w = cells(8, 16), cells(16, 16)
    for _ in range(3):
        check(run, (x, w))
    for _ in range(3):
        check(run, (x, cells(16, 16)))
    assert device.captures == 2
    for _ in range(3):
        check(run, (cells(8, 16), cells(16, 16)))
    assert device.captures == 3


def test_results_are_copied_to_tensors_of_the_caller() -> None:
    run, _, _ = program()
    w = cells(16, 16)
    for _ in range(3):
        out = cells(8, 16)
        assert check(run, (cells(8, 16), w), out=[out]) is out


def test_a_result_that_is_an_input_is_that_tensor() -> None:
    kind = "!loom.tensor<[0] : [4], f32>"
    text = f"""
    func.func @main(%x: {kind}) -> ({kind}, {kind}) {{
      %y = loom.operation @double over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
        wrap (%a: f32) {{ %s = arith.addf %a, %a : f32 loom.yield %s : f32 }} : ({kind}) -> {kind}
      func.return %x, %y : {kind}, {kind}
    }}"""
    gpu = Gpu()
    PreparedKernels(parse_text(text), TritonExecutor(device=gpu))
    assert gpu.launches is not None
    run = Replayed(gpu.launches)
    for _ in range(4):
        given = cells(4)
        same, twice = run([given])
        assert same.data_ptr() == given.data_ptr()
        np.testing.assert_array_equal(twice.array, given.array * 2)


def test_what_cannot_be_captured_is_launched_and_said_once() -> None:
    run, device, notes = program()
    device.uncapturable = True
    for _ in range(4):
        check(run, (cells(8, 16), cells(16, 16)))
    assert notes == ["capturing failed: operation not permitted when stream is capturing"]


def test_while_the_caller_captures_calls_are_launches_of_that_graph() -> None:
    run, device, notes = program()
    x, w = cells(8, 16), cells(16, 16)
    for before in range(4):  # before it has a graph of its own, when it would capture, and after
        x.array[...] = cells(8, 16).array
        device.capturing = theirs = []
        (made,) = run([x, w])
        device.capturing = None
        assert len(theirs) == 2
        for one in theirs:
            one()
        np.testing.assert_allclose(made.array, want(x, w), rtol=1e-4, atol=1e-6)
        assert device.captures == (before > 1)
        check(run, (x, w))
    assert notes == []


def test_functions_that_are_no_kernels_are_not_captured() -> None:
    run, device, notes = program(tapestry.input("x", (4, 8)).sort(axis=1)[0] + 1)
    for _ in range(3):
        given = cells(4, 8)
        (made,) = run([given])
        np.testing.assert_array_equal(made.array, np.sort(given.array, 1) + 1)
    assert device.captures == 0
    assert len(notes) == 1


def test_another_stream_waits_for_the_last_one() -> None:
    run, device, _ = program()
    w = cells(16, 16)
    for _ in range(3):
        check(run, (cells(8, 16), w))
    assert device.waited == []
    device.queue = 11
    check(run, (cells(8, 16), w))
    assert device.waited == [7]
    assert device.captures == 1


def test_the_executor_replays_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    x = tapestry.input("x", (6, 40))
    gpu = Gpu()
    module = tapestry.compile(x.max(axis=1)).sharded(grid=(1, 2)).lowered
    run = PreparedKernels(module, TritonExecutor(device=gpu, graphs=True))
    for _ in range(4):
        array = RNG.normal(size=(6, 40)).astype(np.float32)
        np.testing.assert_array_equal(run([array])[0], array.max(axis=1))
    assert gpu.devices[0].captures in (1, 2)
    assert caplog.records == []

"""What a program touches is counted once: by the kernel's own arithmetic, lane by lane."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import triton
from tapestry.frontend import make_context
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.footprints import overlaps, written_out
from tapestry.passes.triton.cost.predicting import Prediction, predictions
from tapestry.passes.triton.cost.work import Stream
from tapestry.passes.triton.loom_to_triton import LoomToTriton

PLANES, SIDE, OUT = 4096, 112, 55


def _lowered(*schedules: str, planes: int = PLANES) -> ModuleOp:
    """Windows of 3 x 3 cells, every other one of each axis."""
    x = t.input("x", (planes, 1, SIDE, SIDE), "f16")
    pool = t.max_pool2d(x, kernel=[3, 3], stride=[2, 2])
    module = t.compile(pool, on="triton").lowered
    given = tuple(f"max_pool2d: {schedule}" for schedule in schedules)
    LoomToTriton(device="h100", schedules=given).lower(make_context(), module)
    return module


def _prediction(module: ModuleOp) -> Prediction:
    (found,) = predictions(module, find_spec("h100"))
    return found


def _read(module: ModuleOp) -> Stream:
    (launch,) = (op for op in module.walk() if isinstance(op, triton.LaunchOp))
    (kernel,) = (op for op in module.walk() if isinstance(op, triton.KernelOp))
    ((call, _),) = calls_of(launch)
    (stream,) = (one for one in work_of(kernel, call).streams if not one.writes)
    return stream


def test_lanes_that_lie_between_others_read_their_sectors_with_them() -> None:
    """Rows that are written side by side: neighbours of a lane's cell are those of the next one."""
    turned = t.relu(t.input("x", (4, 65536), "f16").T)
    module = t.compile(turned, on="triton").lowered
    LoomToTriton(schedules=("relu: P = 1024, warps = 4",)).lower(make_context(), module)
    stream = _read(module)
    assert stream.cells == 1024
    assert stream.vector == 2
    assert stream.moved == pytest.approx(2 * 1024, rel=0.1)


def _windows(first: int, count: int) -> set[int]:
    """The cells that so many windows read, from the first one on."""
    p, k = np.divmod(np.arange(first * 9, (first + count) * 9), 9)
    plane, rest = np.divmod(p, OUT * OUT)
    rows, columns = rest // OUT * 2 + k // 3, rest % OUT * 2 + k % 3
    return set((plane * SIDE * SIDE + rows * SIDE + columns).tolist())


@pytest.mark.parametrize(
    "schedule",
    [
        "P = 128, K = 16, warps = 4",
        "P = 128, K = 1, warps = 4, unroll = 9",
    ],
)
def test_each_cell_of_a_program_is_counted_once(schedule: str) -> None:
    stream = _read(_lowered(schedule))
    programs = -(-PLANES * OUT * OUT // 128)
    cells = _windows((programs - 1) // 2 * 128, 128)
    assert stream.accesses == 1
    assert stream.cells == len(cells)
    assert stream.moved == pytest.approx(32 * len({one // 16 for one in cells}), rel=0.1)


@pytest.mark.parametrize(
    "schedule", ["P = 128, K = 16, warps = 4", "P = 512, K = 1, warps = 4, unroll = 16"]
)
def test_windows_come_from_memory_about_once(schedule: str) -> None:
    # Rows at the edge of a program's windows are read by the next one too.
    least = 2 * PLANES * (SIDE * SIDE + OUT * OUT)
    assert least < _prediction(_lowered(schedule)).estimate.bytes < 1.3 * least


def test_short_windows_are_written_out_where_a_device_is_known() -> None:
    module = _lowered()
    found = _prediction(module)
    assert found.schedule.tile["K"] == 1
    assert found.schedule.unroll >= 9
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    (load,) = (op for op in module.walk() if isinstance(op, triton.LoadOp))
    assert written_out(load) is loop
    tile = _prediction(_lowered("P = 128, K = 16, warps = 4"))
    assert found.estimate.seconds < tile.estimate.seconds


@pytest.mark.parametrize(
    ("strides", "cell", "shared"),
    [
        ([(1, 1024), (4096, 2)], 2, False),  # rows
        ([(1, 16), (2, 128)], 2, True),  # windows beside each other
        ([(2, 128)], 2, True),  # every other cell: half of each sector
        ([(64, 128)], 2, False),  # a sector each
        ([(0, 128), (1, 64)], 2, False),  # the same for all
        ([], 2, False),
    ],
)
def test_which_lanes_share(strides: list[tuple[int, int]], cell: int, shared: bool) -> None:
    assert overlaps(strides, cell) == shared

"""The numpy executor beside plain NumPy, dask.array and PyTorch's eager mode, on the CPU.

    python benchmarks/cpu.py                        # all cases: about five minutes
    python benchmarks/cpu.py --only softmax --seconds 10

Every implementation has all cores. A program is compiled, and a graph of dask's is made, once; then
all are called in turns, and a figure is the median of the calls: milliseconds, and of processor
time, which other work on the machine disturbs less. Turns are in a new order each time: cores are
slower to wake after what left one of them idle. Before a call all threads have rested, and what
else runs on the machine has taken the caches; what fits a cache is measured as the mean of calls
one after another, without the first. `peak` is the memory that a call needs beyond
its inputs, in megabytes: how far the resident set of a process that has computed one small thing,
and runs nothing else, rises above what it was before the first call (VmHWM of /proc/self/status,
which Linux lets a process reset). A peer that is not installed is named, and left out. Beside
reductions there is what it takes to read the input once, by one thread and by all: nothing is
faster than that.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time, sleep

import numpy as np
from _cpu_cases import PEERS, Case, cases, chain
from machine import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table

RESULTS = Path(__file__).parent / "results" / "cpu.json"
REST = 0.01
"""Seconds in which threads that do nothing are told from those that spin."""
PATIENCE = 0.5
"""Seconds that are waited for these at most."""


@dataclass(frozen=True)
class Row:
    """One case with one implementation: milliseconds of a call, and megabytes that it needs."""

    case: str
    peer: str
    wall: float
    processor: float
    calls: int
    peak: float


def timed(case: Case, peers: Sequence[str], seconds: float) -> dict[str, tuple[float, float, int]]:
    """Medians of wall-clock and processor time, of calls (or bursts of them) in turns."""
    calls = {peer: case.call(peer) for peer in peers}
    want = calls["numpy"]()
    for peer, call in calls.items():
        for got, expected in zip(_tuple(call()), _tuple(want), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3, err_msg=peer)
    del want
    if case.reads:
        calls |= {f"a read by {count}": case.reading(count) for count in sorted({1, cores()})}
    found: dict[str, list[tuple[float, float]]] = {peer: [] for peer in calls}
    end, order, source = perf_counter() + seconds, [*calls], Random(0)
    while perf_counter() < end or len(found[peers[0]]) < 3:
        source.shuffle(order)
        for peer in order:
            call = calls[peer]
            rest()
            if case.burst > 1:
                call()
            started, used = perf_counter(), process_time()
            for _ in range(case.burst):
                call()
            took = perf_counter() - started, process_time() - used
            found[peer].append((took[0] / case.burst, took[1] / case.burst))
    return {
        peer: (*(1e3 * median(column) for column in zip(*took, strict=True)), len(took))
        for peer, took in found.items()
    }


def rest() -> None:
    """Wait until no thread works: those of BLAS spin for a tenth of a second after a product."""
    end = perf_counter() + PATIENCE
    while perf_counter() < end:
        used = process_time()
        sleep(REST)
        if process_time() - used < REST / 10:
            return


def cores() -> int:
    """How many threads implementations have."""
    return len(os.sched_getaffinity(0))


def _tuple(made: object) -> tuple[object, ...]:
    return made if isinstance(made, tuple) else (made,)


def _memory(field: str) -> int:
    """Bytes of this process, by the name of a line of its status."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith(field))


def peak(peer: str, name: str) -> None:
    """The child process: megabytes that calls of a case need beyond its inputs."""
    warm = np.ones((256, 256), np.float32)
    warm @ warm  # BLAS has buffers of its own
    chain(20).call(peer)()  # and compilers, threads and the like are there once
    (case,) = (case for case in cases() if case.name == name)
    call = case.call(peer)
    for array in case.arrays().values():
        array.sum()
    give_back()
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    call()
    call()
    sys.stdout.write(json.dumps((_memory("VmHWM") - before) / 1e6))


def give_back() -> None:
    """What was freed before goes back to the system: it would look as if a call needed less."""
    gc.collect()
    with suppress(AttributeError):  # a C library that has none
        ctypes.CDLL(None).malloc_trim(0)


def peak_of(peer: str, case: Case) -> float:
    """`peak`, in a process of its own; of two, as the first may fill caches on disk."""
    command = [sys.executable, __file__, "--peak", peer, case.name]
    found: list[float] = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"measuring the memory of {peer} failed:\n{done.stderr}")
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return min(found)


def show(rows: Sequence[Row], console: Console) -> None:
    table = Table(title="a call on the CPU", title_justify="left")
    table.add_column("case")
    table.add_column("with")
    for column in ("ms", "processor ms", "peak MB", "tapestry is"):
        table.add_column(column, justify="right")
    own = {row.case: row for row in rows if row.peer == "tapestry"}
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        first = row.peer == "tapestry"
        faster = "" if first else f"{row.wall / own[row.case].wall:.2f} x as fast"
        table.add_row(
            row.case if first else "",
            row.peer,
            f"{row.wall:.3g}",
            f"{row.processor:.3g}",
            f"{row.peak:.1f}",
            faster,
            end_section=after is not None and after.case != row.case,
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the numpy executor beside its peers.")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name has one of these")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--seconds", type=float, default=6, help="how long to time a case")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=f"the JSON file to write, {RESULTS.name}")
    options = parser.parse_args()
    if options.peak:
        peak(*options.peak)
        return
    console = Console(width=110)
    chosen = [case for case in cases() if any(one in case.name for one in options.only)]
    peers = [peer for peer in options.peers if find_spec(peer) is not None]
    for peer in sorted({*options.peers} - {*peers}):
        console.print(f"[bold red]{peer} is not installed, and left out: pip install {peer}[/]")
    memory = {
        case.name: {peer: peak_of(peer, case) for peer in peers}
        for case in track(chosen, "memory", console=console)
    }
    rows: list[Row] = []
    for case in track(chosen, "time", console=console):
        for peer, took in timed(case, peers, options.seconds).items():
            rows.append(Row(case.name, peer, *took, memory[case.name].get(peer, 0.0)))
    show(rows, console)
    result = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    if options.output or (len(chosen) == len(cases()) and set(peers) == set(PEERS)):
        output = options.output or RESULTS
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

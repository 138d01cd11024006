"""Everything that a machine with a GPU can say of Tapestry, in one call under ten minutes.

    python benchmarks/gpu_check.py                      # tables into $OUT, or benchmarks/results
    python benchmarks/gpu_check.py --only small launch
    python benchmarks/gpu_check.py --seconds 120        # less time for each part

| part | what it does |
|---|---|
| `machine` | the GPU, the driver, the versions; whether this Triton has what is called of it |
| `small` | programs of every kind, whole and in shards, against float64; refused schedules |
| `loader` | a program compiled ahead of time, run from its folder without Tapestry |
| `compiled` | every kernel of `kernels.py` compiled on all cores, beside the parts before it |
| `kernels` | kernels against float64, with ceilings and peers, tuned (`kernels.py --measure`) |
| `models` | PyTorch models compiled by the backend: right, and how fast beside eager and inductor |
| `launch` | what launching costs on the host and on the GPU, with graphs (`launch.py`) |

Each part is a process of its own with a limit of time; one that fails or takes too long is
recorded, with the end of what it said and the rows that it had made, and the rest goes on. Without
a GPU the parts that need one are recorded as skipped. The exit code is 1 if a part failed. Tapestry
need not be installed, but what it needs must be: see `docs/how-to/gpu.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from machine import machine
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
LIMITS = {
    "machine": 25,
    "small": 75,
    "loader": 35,
    "compiled": 60,
    "kernels": 225,
    "models": 80,
    "launch": 40,
}
"""Seconds that each part may take, 540 together."""
BESIDE = "compiled"
"""The part that runs beside those before it, which measure nothing; its limit is what is waited."""
TUNED = 0.25
"""The share of the time of `kernels` that is for tuning."""
ALONE = ("machine", "launch")
"""What says something without a GPU."""
SHOWN = 3000
"""Characters of what a failing part said that are kept."""


@dataclass
class Outcome:
    """What became of a part: its table, or why there is none."""

    part: str
    state: Literal["done", "failed", "too slow", "skipped"]
    seconds: float = 0.0
    table: Any = None
    said: str = ""


def gpu() -> str | None:
    """The GPU's name; None without one."""
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    try:
        asked = [sys.executable, "-c", code]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() or None


def command(part: str, table: Path, limit: float) -> list[str]:
    """What runs a part and writes its table."""
    python = sys.executable
    if part == "launch":
        return [python, str(HERE / "launch.py"), "--json", str(table)]
    if part == "compiled":
        # One core is left to the parts that it runs beside.
        workers = str(max(1, (os.cpu_count() or 1) - 1))
        asked = ("--target", "90", "--workers", workers, "--output", str(table))
        return [python, str(HERE / "kernels.py"), *asked]
    if part == "kernels":
        seconds = max(20.0, limit - 25)
        asked = ("--seconds", f"{seconds:.0f}", "--tune", f"{TUNED * seconds:.0f}")
        return [python, str(HERE / "kernels.py"), "--measure", *asked, "--output", str(table)]
    return [python, str(HERE / "_gpu_parts.py"), part, str(table), f"{limit:.0f}"]


class Running:
    """A part that was started."""

    def __init__(self, part: str, limit: float) -> None:
        self.part, self.began = part, perf_counter()
        self._folder = tempfile.TemporaryDirectory()
        self._table, self._log = (Path(self._folder.name, name) for name in ("table.json", "log"))
        with self._log.open("w") as file:
            self._process = subprocess.Popen(
                command(part, self._table, limit),
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=HERE.parent,
                env=_environment(),
                start_new_session=True,
            )

    def outcome(self, limit: float) -> Outcome:
        """What becomes of it in so many more seconds."""
        try:
            self._process.wait(limit)
            slow = False
        except subprocess.TimeoutExpired:
            slow = True
        self.stop()
        taken = perf_counter() - self.began
        said = self._log.read_text(errors="replace")[-SHOWN:]
        try:
            found = json.loads(self._table.read_text())
        except (OSError, ValueError):
            found = None
        self._folder.cleanup()
        if slow:
            return Outcome(self.part, "too slow", taken, found, said)
        code = self._process.returncode
        if code != 0 or found is None:
            return Outcome(self.part, "failed", taken, found, f"exit code {code}\n{said}")
        return Outcome(self.part, "done", taken, found)

    def stop(self) -> None:
        """End it, and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _environment() -> dict[str, str]:
    """A part's environment: kernels are compiled, and Tapestry is that of this folder."""
    kept = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    known = kept.get("PYTHONPATH", "")
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), known]))}


def main() -> int:
    """Run the parts, write and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--seconds", type=float, default=540.0, help="what all parts may take")
    parser.add_argument("--output", type=Path, help="the folder for the tables")
    options = parser.parse_args()
    folder = options.output or Path(os.environ.get("OUT") or HERE / "results")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    name = gpu()
    console.print(f"GPU: {name or 'none; parts that need one are skipped'}")
    scale = options.seconds / sum(LIMITS.values())
    outcomes: list[Outcome] = []
    beside = Running(BESIDE, LIMITS[BESIDE] * scale) if BESIDE in options.only and name else None
    for part in [one for one in LIMITS if one in options.only]:
        limit = LIMITS[part] * scale
        if name is None and part not in ALONE:
            outcomes.append(Outcome(part, "skipped", said="PyTorch sees no GPU"))
        else:
            console.print(f"{part} ...")
            running = beside if part == BESIDE and beside else Running(part, limit)
            outcomes.append(running.outcome(limit))
        # After each part, so that what was found is there whatever happens next.
        text = {"gpu": name, "machine": machine(), "parts": [asdict(one) for one in outcomes]}
        (folder / "gpu_check.json").write_text(json.dumps(text, indent=1) + "\n")
    table = Table("part", "", "seconds", "what it says")
    for one in outcomes:
        last = one.said.strip().splitlines()[-1] if one.said.strip() else ""
        table.add_row(one.part, one.state, f"{one.seconds:.0f}", _shown(one.table) or last)
    console.print(table)
    console.print(f"written to {folder / 'gpu_check.json'}")
    return int(any(one.state in ("failed", "too slow") for one in outcomes))


def _shown(table: Any) -> str:
    """A table in a few words, where it has some."""
    return str(table.get("summary", "")) if isinstance(table, dict) else ""


if __name__ == "__main__":
    sys.exit(main())

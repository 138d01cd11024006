"""Everything that a machine with a GPU can say of Tapestry, in one call under ten minutes.

    python benchmarks/gpu_check.py                      # tables into $OUT, or benchmarks/results
    python benchmarks/gpu_check.py --only small launch
    python benchmarks/gpu_check.py --seconds 120        # less time for each part
    python benchmarks/gpu_check.py --go-on before.json  # what an earlier call did not reach

| part | what it does |
|---|---|
| `machine` | the GPU, the driver, the versions; whether this Triton has what is called of it |
| `small` | programs of every kind, whole and in shards, against float64; refused schedules |
| `loader` | a program compiled ahead of time, run from its folder without Tapestry |
| `compiled` | every kernel of `kernels.py` compiled on all cores, beside the parts before it |
| `peers` | what `torch.compile` makes of these and of models, compiled beside in the same way |
| `kernels` | kernels against float64, with ceilings and peers, tuned (`kernels.py --measure`) |
| `launch` | what launching costs on the host and on the GPU, with graphs (`launch.py`) |
| `calibrated` | this GPU's own figures for the cost model, also as a file |
| `models` | PyTorch models compiled by the backend: right, and how fast beside eager and inductor |

Last comes whether what was measured is what is aimed at (`aims.py`).

What is worth most comes first. Each part is a process of its own with a limit of time; one that
fails or takes too long is recorded, with the end of what it said and the rows that it had made, and
the rest goes on (what `compiled` and `peers` did not reach is compiled by the parts that need it).
One that dies, or makes no row for long, is started again after the row at which
it did. Without a GPU the parts that need one are recorded as skipped. The exit code is 1 if a part
failed. Tapestry need not be installed, but what it needs must be: see `docs/how-to/gpu.md`.

With `--go-on` what is done is not done again, and rows without problems are kept. With `--small`
sizes are those that an interpreter of kernels takes: that is to try the script itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from time import perf_counter, time
from typing import Any, Literal

from _gpu_rows import RESTARTED, as_json, without_problems
from aims import aims, show, show_models
from machine import machine
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
LIMITS = {
    "machine": 20,
    "small": 40,
    "loader": 25,
    "compiled": 35,
    "peers": 100,
    "kernels": 180,
    "launch": 20,
    "calibrated": 20,
    "models": 100,
}
"""Seconds that each part may take, 540 together; more where parts before it took less."""
BESIDE = ("compiled", "peers")
"""The parts that run beside those before them, which measure nothing; limits are of waiting."""
WITH_ROWS = ("small", "peers", "kernels", "models")
"""The parts whose tables have rows that are kept as they are made."""
AGAIN = ("compiled", "peers", "kernels", "models")
"""The parts that there may be more of, also where they ended well."""
SILENT = 100.0
"""Seconds without a row after which a part hangs, of 540; the longest row takes less."""
LEAST = 5.0
"""Seconds for which no part is started."""
TUNED = 0.15
"""The share of the time of `kernels` that is for tuning."""
ALONE = ("machine", "launch")
"""What says something without a GPU."""
SHOWN = 3000
"""Characters of what a failing part said that are kept."""
LOGGED = 1 << 20
"""Characters of what any part said that are kept in `gpu_check.log`."""


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


def command(part: str, table: Path, limit: float, *, small: bool = False) -> list[str]:
    """What runs a part and writes its table."""
    python, tiny = sys.executable, ["--small"] if small else []
    if part == "launch":
        counts = ["--launches", "1", "20", "--calls", "1"] if small else []
        return [python, str(HERE / "launch.py"), "--json", str(table), *counts]
    if part == "compiled":
        # One core is left to the parts that it runs beside.
        workers = str(max(1, (os.cpu_count() or 1) - 1))
        asked = ["--here", "--workers", workers, "--output", str(table)]
        return [python, str(HERE / "kernels.py"), *asked, *tiny]
    if part == "kernels":
        seconds = max(20.0, limit - 25)
        asked = ["--measure", "--seconds", f"{seconds:.0f}", "--tune", f"{TUNED * seconds:.0f}"]
        return [python, str(HERE / "kernels.py"), *asked, "--output", str(table), *tiny]
    return [python, str(HERE / "_gpu_parts.py"), part, str(table), f"{limit:.0f}", *tiny]


class Running:
    """A part that was started; `before` is its table of an earlier call, to go on with."""

    def __init__(self, part: str, limit: float, before: Any = None, *, small: bool = False) -> None:
        self.part, self.began, self._small = part, perf_counter(), small
        self._folder = tempfile.TemporaryDirectory()
        self._table, self._log = (Path(self._folder.name, name) for name in ("table.json", "log"))
        if before is not None:
            self._table.write_text(json.dumps(without_problems(before)))
        self._start(limit, again=before is not None)

    def _start(self, limit: float, *, again: bool) -> None:
        with self._log.open("a") as file:
            self._process = subprocess.Popen(
                command(self.part, self._table, limit, small=self._small),
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=HERE.parent,
                env=_environment() | ({RESTARTED: "1"} if again else {}),
                start_new_session=True,
            )

    def outcome(self, limit: float, folder: Path, silent: float = SILENT) -> Outcome:
        """What becomes of it in so many more seconds, no more than `silent` of them without a row.

        Files that it made are copied to a folder.
        """
        end = perf_counter() + limit
        while True:
            before = len(self._rows())
            slow = self._over(end, silent)
            self.stop()
            code, more = self._process.returncode, len(self._rows()) > before
            if slow or code >= 0 or not more or end - perf_counter() < LEAST:
                break
            self._start(end - perf_counter(), again=True)
        taken = perf_counter() - self.began
        text = self._log.read_text(errors="replace")
        with (folder / "gpu_check.log").open("a") as file:
            file.write(f"== {self.part}\n{text[-LOGGED:]}\n")
        said = text[-SHOWN:]
        found = self._written()
        for file in Path(self._folder.name).glob("*.yaml"):
            shutil.copy(file, folder)
        self._folder.cleanup()
        if slow:
            return Outcome(self.part, "too slow", taken, found, said)
        if code != 0 or found is None:
            return Outcome(self.part, "failed", taken, found, f"exit code {code}\n{said}")
        return Outcome(self.part, "done", taken, found)

    def _over(self, end: float, silent: float) -> bool:
        """Wait until it ends, or makes no more rows; whether its time was over before."""
        heard = perf_counter()
        while True:
            until = min(end, heard + silent) if self.part in WITH_ROWS else end
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, until - perf_counter()))
                return False
            now = perf_counter()
            if now >= end:
                return True
            with suppress(OSError):
                heard = max(heard, now - max(0.0, time() - self._table.stat().st_mtime))
            if now >= heard + silent:
                return False

    def _written(self) -> Any:
        try:
            return json.loads(self._table.read_text())
        except (OSError, ValueError):
            return None

    def _rows(self) -> list[Any]:
        """The rows that are there."""
        found = self._written()
        return found.get("rows", []) if self.part in WITH_ROWS and found else []

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
    began = perf_counter()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--seconds", type=float, default=540.0, help="what all parts may take")
    parser.add_argument("--output", type=Path, help="the folder for the tables")
    parser.add_argument("--go-on", type=Path, help="gpu_check.json of an earlier call")
    parser.add_argument("--small", action="store_true", help="small sizes: to try the script")
    options = parser.parse_args()
    folder = options.output or Path(os.environ.get("OUT") or HERE / "results")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "gpu_check.log").unlink(missing_ok=True)
    except OSError as error:
        parser.error(f"cannot write to {folder}: {error.strerror}")
    console = Console()
    name = gpu()
    console.print(f"GPU: {name or 'none; parts that need one are skipped'}")
    before = earlier(options.go_on, name)
    done = {part for part, one in before.items() if one.state == "done"} - set(AGAIN)
    wanted = [one for one in LIMITS if one in options.only and one not in done]
    end, scale = began + options.seconds, options.seconds / sum(LIMITS.values())
    rest = dict(zip(wanted, _ends([LIMITS[one] for one in wanted]), strict=True))
    outcomes = {part: one for part, one in before.items() if part not in wanted}

    def write() -> None:
        parts = [asdict(outcomes[one]) for one in LIMITS if one in outcomes]
        tables = {one["part"]: one["table"] for one in parts if isinstance(one["table"], dict)}
        found = [one.as_json() for one in aims(tables)]
        text = {"gpu": name, "machine": machine(), "aims": found, "parts": parts}
        # In one step: whoever lent the machine may end this at any time.
        partial = folder / "gpu_check.json.partial"
        partial.write_text(as_json(text))
        partial.replace(folder / "gpu_check.json")

    def started(part: str, limit: float) -> Running:
        known = before.get(part)
        table = known.table if known is not None and part in WITH_ROWS else None
        return Running(part, limit, table, small=options.small)

    write()
    ready = {part: _end(part, wanted) * scale for part in BESIDE if part in wanted and name}
    beside = {part: started(part, limit) for part, limit in ready.items()}
    for part in wanted:
        # Of the time that is left its share: what others did not need is for those after them.
        limit = (end - perf_counter()) * LIMITS[part] / rest[part]
        if name is None and part not in ALONE:
            outcomes[part] = Outcome(part, "skipped", said="PyTorch sees no GPU")
        elif limit < min(LEAST, LIMITS[part] * scale):
            table = before[part].table if part in before else None
            outcomes[part] = Outcome(part, "too slow", table=table, said="no time was left for it")
        else:
            console.print(f"{part} ...")
            running = beside.get(part) or started(part, limit)
            outcomes[part] = running.outcome(limit, folder, SILENT * max(1.0, scale))
        # After each part, so that what was found is there whatever happens next.
        write()
    table = Table("part", "", "seconds", "what it says")
    for one in [outcomes[part] for part in LIMITS if part in outcomes]:
        last = one.said.strip().splitlines()[-1] if one.said.strip() else ""
        table.add_row(one.part, one.state, f"{one.seconds:.0f}", _shown(one.table) or last)
    console.print(table)
    tables = {part: one.table for part, one in outcomes.items() if isinstance(one.table, dict)}
    show_models(tables.get("models", {}), console)
    show(aims(tables), console)
    console.print(f"written to {folder / 'gpu_check.json'}")
    return int(any(_is_lacking(one) for one in outcomes.values()))


def _is_lacking(one: Outcome) -> bool:
    """Whether something was not found out; what is not ready beside, others make."""
    return one.state == "failed" or (one.state == "too slow" and one.part not in BESIDE)


def _end(part: str, wanted: Sequence[str]) -> float:
    """The seconds after which a part ends that is begun with the first one."""
    return sum(LIMITS[one] for one in wanted[: wanted.index(part) + 1])


def _ends(numbers: Sequence[float]) -> list[float]:
    """The sum of each number and of those after it."""
    return list(accumulate(reversed(numbers)))[::-1]


def earlier(path: Path | None, name: str | None) -> dict[str, Outcome]:
    """What an earlier call on such a GPU found, by part."""
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text())
        parts = {one["part"]: Outcome(**one) for one in found["parts"]}
        of = found["gpu"]
    except OSError as error:
        sys.exit(f"cannot read {path}: {error.strerror}")
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path} is no table of this script's, or a damaged one: {error}")
    if of != name:
        sys.exit(f"{path} is of {of or 'no GPU'}, and here is {name or 'none'}")
    return parts


def _shown(table: Any) -> str:
    """A table in a few words, where it has some."""
    return str(table.get("summary", "")) if isinstance(table, dict) else ""


if __name__ == "__main__":
    sys.exit(main())

"""What image models take to compile and to run on the CPU, beside eager mode and Inductor.

    python benchmarks/models.py                         # Tapestry and eager mode: some minutes
    python benchmarks/models.py --only swin --inductor  # Inductor beside them

Each model (`_architectures`) is compiled by each backend in a process of its own, with nothing
cached, and called without gradients; results have to be those of eager mode. `compile` is the first
call: Dynamo, the compilers, and the call itself. Times are of the processor, all threads and
processes started together, so that what else runs on the machine counts little; a call is the
least of several, on one thread, and its ratio is to eager mode in the same process. Models that are
left out keep the rows that they have in the results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import torch
from _architectures import ARCHITECTURES
from machine import machine
from rich.console import Console
from rich.table import Table
from torch import nn

RESULTS = Path(__file__).parent / "results" / "models.json"
NEAR = 1e-4
"""How far results may be from those of eager mode, beside the largest of these."""


def initialized(model: nn.Module) -> nn.Module:
    """A model whose values neither vanish nor explode, and whose norms know statistics."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return model.eval()


def spent() -> float:
    """Seconds of the processor that this process and those that it started and awaited took."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def child(name: str, backend: str, calls: int) -> None:
    """Compile a model and call it; prints what that took as a line of JSON."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    made, shape = ARCHITECTURES[name]()
    model, x = initialized(made), torch.randn(*shape)
    with torch.no_grad():
        want = model(x)
        run = torch.compile(model, backend=backend)
        began = spent()
        got = run(x)
        compiling = spent() - began
        if not 1e-3 < want.std() < 1e6:
            raise SystemExit(f"{name}: results of {want.std():.1e} show little")
        away = ((got - want).abs().max() / want.abs().max()).item()
        if not away <= NEAR:
            raise SystemExit(f"{name} by {backend}: {away:.1e} from eager mode")
        took: dict[str, list[float]] = {"eager": [], "run": []}
        for _ in range(calls):
            for part, function in (("eager", model), ("run", run)):
                before = process_time()
                function(x)
                took[part].append(process_time() - before)
    least = {part: min(times[1:]) for part, times in took.items()}
    print(json.dumps({"compile": compiling, **least, "away": away}))


def measured(name: str, backend: str, calls: int) -> dict[str, float]:
    """What a child says, of caches that are empty."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TAPESTRY_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        command = [sys.executable, __file__, "--child", backend, "--only", name]
        ran = subprocess.run(
            [*command, "--calls", str(calls)],
            env=os.environ | caches | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        raise SystemExit(ran.stderr[-2000:])
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Time image models, compiled and called.")
    parser.add_argument("--only", default="", help="models whose names have this in them")
    parser.add_argument("--inductor", action="store_true", help="measure Inductor, too")
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write into")
    options = parser.parse_args()
    chosen = [name for name in ARCHITECTURES if options.only in name]
    if not chosen:
        parser.error(f"no model has {options.only!r} in its name: {', '.join(ARCHITECTURES)}")
    if options.child:
        child(options.only, options.child, options.calls)
        return
    backends = ("tapestry", "inductor") if options.inductor else ("tapestry",)
    columns = [f"{backend}: {part}" for backend in backends for part in ("compile", "/ eager")]
    table = Table("model", "eager", *columns, "away")
    rows: list[dict[str, Any]] = []
    for name in chosen:
        found = {backend: measured(name, backend, options.calls) for backend in backends}
        own = found["tapestry"]
        cells = [
            cell
            for one in found.values()
            for cell in (f"{one['compile']:.1f} s", f"{one['run'] / one['eager']:.2f}")
        ]
        table.add_row(name, f"{1e3 * own['eager']:.1f} ms", *cells, f"{own['away']:.0e}")
        rows.append({"model": name, **found})
        Console(width=120).print(name, *cells)
    Console(width=120).print(table)
    known = json.loads(options.output.read_text())["rows"] if options.output.exists() else []
    kept = {row["model"]: row for row in [*known, *rows]}
    ordered = [kept[name] for name in ARCHITECTURES if name in kept]
    result = {"machine": machine(), "threads": 1, "rows": ordered}
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

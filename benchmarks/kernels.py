"""The kernels that Tapestry writes: what they take, and on a GPU how fast they are.

    python benchmarks/kernels.py                            # compile every case for sm_90 and sm_80
    python benchmarks/kernels.py --target 90 --only attention softmax
    python benchmarks/kernels.py --measure                  # on a GPU: check and time everything
    python benchmarks/kernels.py --measure --tune 240       # tune for four minutes of these

Without a GPU every case is compiled, in parallel, with the schedules that the cost model chooses.
A case has problems where a kernel spills registers, takes more shared memory than there is, reads
less than 16 bytes at once of neighbouring cells, or multiplies matrices of 16 bits without wgmma on
sm_90, whichever of its best schedules it has; the script then fails. `floor` is the least time of
an H200 or an A100, for each input read once and each output written once, and for products, the
larger; `predicted` is what the cost model says.

With `--measure` each case is checked against PyTorch in float64, then timed beside PyTorch: eager,
torch.compile, and torch.compile(mode="max-autotune"), which calls cuBLAS and FlashAttention. The
ceilings, a copy and a matrix product, are measured in the same run. Times are medians by events, of
graphs of many calls; inputs rotate, so that they are not all in the L2. `--seconds` bounds the
whole run, tuning included; what was not reached is said. The table is written after every row, and
a run goes on where the file ends: an error after which a GPU is of no use costs one case.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _gpu_rows import as_json
from _kernel_cases import CASES
from _kernel_compiling import DEVICES, compiled, show_compiled
from _kernel_measuring import Gpu, measured
from _kernel_peers import quiet
from machine import machine
from rich.console import Console

from tapestry.devices import find_spec, name_of

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a case has problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=int, nargs="+", default=[90, 80], choices=sorted(DEVICES))
    parser.add_argument("--here", action="store_true", help="compile for the GPU that is there")
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of cases")
    parser.add_argument("--measure", action="store_true", help="time the cases on a GPU")
    parser.add_argument("--seconds", type=float, default=540.0, help="at most, with --measure")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds of these to tune for")
    parser.add_argument("--small", action="store_true", help="sizes of 40: to try the script")
    parser.add_argument("--workers", type=int, help="processes that compile, cores unless given")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    wanted: list[str] = options.only
    cases = [one for one in CASES if not wanted or any(word in one.name for word in wanted)]
    cases = [one.small for one in cases] if options.small else cases
    console = Console(width=int(os.environ.get("COLUMNS", "200")))
    name = "kernels.json" if options.measure else "kernels_compiled.json"
    output: Path = options.output or RESULTS / name
    output.parent.mkdir(parents=True, exist_ok=True)
    devices = {target: DEVICES[target] for target in options.target}
    if options.measure or options.here:
        torch: Any = import_module("torch")
        if not torch.cuda.is_available():
            parser.error("--measure and --here need a GPU that PyTorch sees")
        major, minor = torch.cuda.get_device_capability()
        target = 10 * major + minor
        devices = {target: name_of(torch.cuda.get_device_name(), target) or DEVICES[90]}
    if options.measure:
        quiet()
        spec = find_spec(devices[target])
        gpu = Gpu(torch, spec, options.seconds, options.tune, small=options.small)
        result = measured(cases, gpu, console, output)
        result |= {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    else:
        found = compiled(cases, devices, options.workers)
        show_compiled(found, console)
        result = {"rows": [asdict(row) for row in found]}
    written = {"machine": machine(), "triton": version("triton"), **result}
    output.write_text(as_json(written))
    return int(any(row["problems"] for row in result["rows"]))


if __name__ == "__main__":
    sys.exit(main())

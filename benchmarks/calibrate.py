"""The coefficients of a GPU's cost model, from what `gpu_check.py` or `kernels.py` measured on it.

    python benchmarks/calibrate.py gpu_check.json -o tapestry/devices/h100.yaml
    python benchmarks/calibrate.py kernels.json more.json --base h200 -o mine.yaml

Needs no GPU. Rates and bandwidths are those that the part `calibrated` measured there, or the
base's; the rest is fitted to the kernels that tuning timed (`tapestry.tuning.regression`). Each
figure in the file says where it comes from. What is fitted explains all that was measured at once:
the script says by what factor predictions were off before and are after.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _kernel_case import Case
from _kernel_cases import CASES
from _kernel_compiling import loom_of
from rich.console import Console
from rich.progress import track
from xdsl.context import Context

from tapestry.devices import DeviceSpec, find_spec, name_of
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.loom_to_triton import NO_DEVICE, LoomToTriton
from tapestry.tuning import jobs_of, settled
from tapestry.tuning.calibration import write_spec
from tapestry.tuning.regression import Sample, fitted, works_of

HOPELESS = 2.0
"""Predictions that are still off by more are of something else than these kernels on a GPU."""


def parts_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a file by part; that of `kernels.py` is a part itself."""
    if "parts" not in table:
        return {"kernels": table}
    return {one["part"]: one["table"] for one in table["parts"] if one["table"]}


def base_of(table: Mapping[str, Any], given: str | None) -> tuple[str, DeviceSpec, frozenset[str]]:
    """The device to start from: its name, its figures, and which of them were measured."""
    name = given or name_of(str(table.get("gpu")), 0)
    if name is None:
        sys.exit(f"no device is known that is like {table.get('gpu')}: give one with --base")
    found = parts_of(table).get("calibrated")
    if found is None:
        return name, find_spec(name), frozenset()
    return name, DeviceSpec.model_validate(found["figures"]), frozenset(found["measured"])


def samples_of(rows: Sequence[Mapping[str, Any]], *, small: bool = False) -> Iterator[Sample]:
    """The kernels of a table that were timed, as the cost model sees them."""
    known = {case.name: case.small if small else case for case in CASES}
    for row in track(rows, "lowering", console=Console(stderr=True), transient=True):
        timed = [one for one in row.get("measured", ()) if one["seconds"]]
        if timed and row["case"] in known:
            yield from _samples(known[row["case"]], timed)


def _samples(case: Case, timed: Sequence[Mapping[str, Any]]) -> Iterator[Sample]:
    for device, rows in _by_device(timed):
        lowering = LoomToTriton(device=device)
        jobs = jobs_of(settled(loom_of(case), lowering), lowering)
        known = {job.task.name: job for job in jobs} | {job.place: job for job in jobs}
        for one in rows:
            job = known.get(one.get("place", one["kernel"]))
            if job is not None:
                lowered = job.scheduled(Schedule.parse(one["schedule"]))
                lowering.settled.apply(Context(), lowered)
                yield Sample(works_of(lowered), one["seconds"])


def _by_device(
    timed: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """What was timed, by the device that it was lowered for: none, in tables that do not say it."""
    for device in dict.fromkeys(one.get("device", NO_DEVICE) for one in timed):
        yield device, [one for one in timed if one.get("device", NO_DEVICE) == device]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where there is nothing to fit, or nothing fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--base", help="the device that the GPU is like; its own name else")
    parser.add_argument("--small", action="store_true", help="of a run with --small")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    tables = [json.loads(path.read_text()) for path in options.tables]
    name, base, measured = base_of(tables[0], options.base)
    rows = [row for table in tables for row in parts_of(table).get("kernels", {}).get("rows", [])]
    samples = list(samples_of(rows, small=options.small))
    console = Console()
    if not samples:
        console.print("no kernel was timed: tune some (kernels.py --measure --tune 60)")
        return 1
    found = fitted(samples, base)
    title = str(tables[0].get("gpu") or base.title)
    spec = found.spec.model_copy(update={"title": title})
    console.print(
        f"{len(samples)} kernels: predictions were off by a factor of {found.before:.2f}, "
        f"and are by {found.after:.2f} with {len(found.known)} figures fitted"
    )
    if found.after > HOPELESS:
        console.print("no coefficients explain these times, so nothing is written")
        return 1
    write_spec(options.output, spec, measured, name, found.known)
    console.print(f"written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

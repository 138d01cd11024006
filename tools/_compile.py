"""`tapestry compile`: a program as a folder of compiled kernels, and a table of what they take.

tapestry compile model.mlir --target sm_90 --target sm_80 -o compiled/
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from rich.table import Table

from tapestry.caching import lowered
from tapestry.codegen.aot import MAX_SHARED_BYTES, CompiledKernel
from tapestry.codegen.bundle import compile_bundle
from tapestry.diagnostics import UsageError
from tapestry.frontend import load_module
from tapestry.tools._pipelines import with_metakernels
from tapestry.tools._report import table_console


def compile_file(
    file: Path,
    folder: Path,
    targets: Sequence[str],
    pipeline: str,
    numerics: str,
    workers: int | None,
    metakernels: Path | None,
) -> None:
    """Compile @main of a file and print what each kernel takes on each target."""
    wanted = list(dict.fromkeys(map(_capability, targets)))
    passes = with_metakernels(pipeline, metakernels)
    module = lowered(load_module(file), passes)
    bundle = compile_bundle(module, folder, targets=wanted, numerics=numerics, workers=workers)
    console = table_console()
    console.print(_table(bundle.kernels))
    line = f"{bundle.cubins} cubins in {folder}; load.py in it runs them"
    console.print(line, highlight=False, markup=False, soft_wrap=True)
    arena, apart = bundle.plan.arena, bundle.plan.temporaries
    line = f"temporaries take {arena} bytes in one arena; they are {apart} bytes"
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _capability(target: str) -> int:
    """The number of `sm_90`."""
    found = re.fullmatch(r"sm_(\d+)", target)
    if found is None or int(found[1]) not in MAX_SHARED_BYTES:
        known = [f"sm_{number}" for number in sorted(MAX_SHARED_BYTES)]
        near = get_close_matches(target, known, n=1, cutoff=0.8)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
        raise UsageError(f"there is no target {target!r}", hint=hint)
    return int(found[1])


def _table(kernels: Sequence[CompiledKernel]) -> Table:
    table = Table("kernel", "target", "registers", "spilled", "shared", "tensor cores")
    for column in table.columns[2:5]:
        column.justify = "right"
    for kernel in kernels:
        table.add_row(
            kernel.name,
            f"sm_{kernel.target}",
            str(kernel.registers),
            f"{kernel.spills} B",
            f"{kernel.shared / 1024:.0f} KiB",
            kernel.tensor_cores,
        )
    return table

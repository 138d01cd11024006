"""What metakernels cost: loading the library, and applying templates.

    python benchmarks/weft.py                       # the library, and 10,000 applications
    python benchmarks/weft.py --applications 1000

The library is loaded in processes of their own, the best of some: importing what reads templates,
finding the names, reading the first template (which builds the grammar's tables), and reading all.
Then a program is expanded by `weft-apply`, without parsing or verifying it: linear, relu, add,
transpose and sum in turn, all of the same sizes (which are expanded once) or each of its own. Last,
the library's examples are applied to symbols. Seconds of wall-clock and processor time; the goals
are 0.3 s for reading the library, and 3 s for 10,000 applications.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time

from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text
from tapestry.metakernels import load_library
from tapestry.metakernels.errors import WeftError
from tapestry.metakernels.symbolic import expand_symbolically
from tapestry.passes.weft.apply import apply_metakernels
from tapestry.tools._applications import example_application

RESULTS = Path(__file__).parent / "results" / "weft.json"

LOADING = """
from time import perf_counter, process_time
def lap(last=[perf_counter(), process_time()]):
    now = [perf_counter(), process_time()]
    print(now[0] - last[0], now[1] - last[1])
    last[:] = now
from tapestry.metakernels import load_library
lap()
library = load_library()
lap()
library.get("relu")
lap()
library.check(library.names)
lap()
"""


@dataclass(frozen=True)
class Row:
    """One measurement: what was done, how often, and the seconds of all of it."""

    what: str
    count: int
    seconds: float
    processor: float


def loading(repetitions: int) -> list[Row]:
    """What it costs to read the library, each time in a fresh process."""
    names = ("import", "find the templates", "read the first one", "read all others")
    runs: list[list[list[float]]] = []
    for _ in range(repetitions):
        done = subprocess.run(
            [sys.executable, "-c", LOADING], capture_output=True, text=True, check=True
        )
        runs.append([[float(x) for x in line.split()] for line in done.stdout.splitlines()])
    best = min(runs, key=lambda run: sum(lap[1] for lap in run))
    size = len(load_library().names)
    return [
        Row(name, size if "templates" in name or "all" in name else 1, *lap)
        for name, lap in zip(names, best, strict=True)
    ]


def tensor(*sizes: int) -> str:
    return f"!loom.tensor<{[0] * len(sizes)} : {list(sizes)}, f32>"


def program(applications: int, *, distinct: bool) -> ModuleOp:
    """A function of that many applications, of equal or of random sizes."""
    lines: list[str] = []
    arguments: list[str] = []
    draw = random.Random(0)
    for i in range(applications // 5):
        a, b, c = (draw.randint(2, 4000) for _ in range(3)) if distinct else (64, 128, 256)
        arguments += [f"%x{i}: {tensor(a, b)}", f"%w{i}: {tensor(b, c)}", f"%b{i}: {tensor(c)}"]
        xwb = f"{tensor(a, b)}, {tensor(b, c)}, {tensor(c)}"
        ac, ca = tensor(a, c), tensor(c, a)
        lines += [
            f"%y{i} = weft.apply @linear(%x{i}, %w{i}, %b{i}) : ({xwb}) -> {ac}",
            f"%r{i} = weft.apply @relu(%y{i}) : ({ac}) -> {ac}",
            f"%a{i} = weft.apply @add(%y{i}, %r{i}) : ({ac}, {ac}) -> {ac}",
            f"%t{i} = weft.apply @transpose(%a{i}) {{perm = [1, 0]}} : ({ac}) -> {ca}",
            f"%s{i} = weft.apply @sum(%t{i}) {{axis = 0}} : ({ca}) -> {tensor(a)}",
        ]
    body = "\n".join(lines)
    return parse_text(f"func.func @main({', '.join(arguments)}) {{\n{body}\nfunc.return }}")


def timed(what: str, count: int, run: Callable[[], object]) -> Row:
    start, used = perf_counter(), process_time()
    run()
    return Row(what, count, perf_counter() - start, process_time() - used)


def applying(applications: int) -> list[Row]:
    library = load_library()
    library.check(library.names)
    rows: list[Row] = []
    for distinct in (False, True):
        module = program(applications, distinct=distinct)
        name = "apply, each of its own sizes" if distinct else "apply, all of the same sizes"
        rows.append(timed(name, applications, lambda: apply_metakernels(module, library)))  # noqa: B023
    return rows


def symbolic() -> Row:
    """The examples of the library with a symbol for every size that is not 1."""
    library = load_library()
    count = 0

    def run() -> None:
        nonlocal count
        for name in library.names:
            template = library.get(name)
            for example in template.examples:
                given = example_application(template, example, library).expansion
                specs = [one.spec for one in given.inputs]
                shapes = [[f"N{n}" if n > 1 else n for n in spec.shape] for spec in specs]
                tensors = [(s, spec.dtype) for s, spec in zip(shapes, specs, strict=True)]
                try:
                    expand_symbolically(template, tensors, dict(example.parameters), library)
                    count += 1
                except WeftError:
                    pass  # a size that equals a parameter cannot be a symbol

    row = timed("apply to symbols", 0, run)
    return Row(row.what, count, row.seconds, row.processor)


def show(rows: list[Row], console: Console) -> None:
    table = Table(title="metakernels", title_justify="left")
    table.add_column("what")
    for column in ("count", "seconds", "processor seconds", "ms of processor each"):
        table.add_column(column, justify="right")
    for row in rows:
        each = 1e3 * row.processor / row.count if row.count else 0.0
        table.add_row(
            row.what, f"{row.count:,}", f"{row.seconds:.3f}", f"{row.processor:.3f}", f"{each:.3f}"
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what metakernels cost.")
    parser.add_argument("--applications", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=3, help="processes that load")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    rows = [*loading(options.repetitions), *applying(options.applications), symbolic()]
    show(rows, Console(width=120))
    result = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

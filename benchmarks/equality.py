"""What it costs to compare a 12-layer transformer with its sharded and fused forms.

    python benchmarks/equality.py                    # 12 layers, d = 768, 12 heads, 512 positions
    python benchmarks/equality.py --layers 2

The program is written in library metakernels: layer norm by mean and variance, three projections,
attention per head by matmul and softmax, an MLP with gelu, residuals. Each other form is made of it
by a pipeline, and compared with it by `compare_programs`, which is what `tapestry equal` and
`tapestry-opt --equal-each` call. The last rows compare it with programs that are wrong in one place
of the last layer. Wall-clock seconds of one comparison each; memory is the most the process has
held so far. The goal is 60 s on two cores, and 2 GiB.
"""

import argparse
import json
import resource
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.proving.equality import compare_programs
from tapestry.proving.stages import work_of

RESULTS = Path(__file__).parent / "results" / "equality.json"

Shape = tuple[int, ...]


def tensor(shape: Shape) -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, f32>"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a transformer."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    positions: int = 512


class Writer:
    """Writes a weft program, an application at a time."""

    def __init__(self) -> None:
        self.shapes: dict[str, Shape] = {}
        self.arguments: list[str] = []
        self.lines: list[str] = []

    def argument(self, name: str, *shape: int) -> str:
        self.shapes[name] = shape
        self.arguments.append(name)
        return name

    def apply(self, kernel: str, *operands: str, shape: Shape, parameters: str = "") -> str:
        name = f"v{len(self.lines)}"
        values = ", ".join(f"%{x}" for x in operands)
        types = ", ".join(tensor(self.shapes[x]) for x in operands)
        self.shapes[name] = shape
        self.lines.append(
            f"%{name} = weft.apply @{kernel}({values}) {parameters} : ({types}) -> {tensor(shape)}"
        )
        return name

    def module(self, result: str) -> ModuleOp:
        taken = ", ".join(f"%{x}: {tensor(self.shapes[x])}" for x in self.arguments)
        kind = tensor(self.shapes[result])
        body = "\n  ".join(self.lines)
        end = f"func.return %{result} : {kind}"
        module = parse_module(f"func.func @main({taken}) -> {kind} {{\n  {body}\n  {end}\n}}")
        run_pipeline(module, "weft-apply")
        return module


def norm(w: Writer, x: str, gain: str, bias: str) -> str:
    """Layer norm along the last axis."""
    shape = w.shapes[x]
    row = (*shape[:-1], 1)
    keep = "{axis = 1 : i64, keepdim = true}"
    centered = w.apply("sub", x, w.apply("mean", x, shape=row, parameters=keep), shape=shape)
    squared = w.apply("mul", centered, centered, shape=shape)
    spread = w.apply("sqrt", w.apply("mean", squared, shape=row, parameters=keep), shape=row)
    scaled = w.apply("mul", w.apply("div", centered, spread, shape=shape), gain, shape=shape)
    return w.apply("add", scaled, bias, shape=shape)


def attention(w: Writer, x: str, weights: dict[str, str], sizes: Sizes) -> str:
    """Every position of every head attends to all positions."""
    n, heads, each = sizes.positions, sizes.heads, sizes.width // sizes.heads

    def split(name: str, order: str, shape: Shape) -> str:
        matrix, bias = weights[f"w{name}"], weights[f"b{name}"]
        projected = w.apply("linear", x, matrix, bias, shape=(n, sizes.width))
        parts = f"{{shape = [{n}, {heads}, {each}]}}"
        apart = w.apply("reshape", projected, shape=(n, heads, each), parameters=parts)
        return w.apply("transpose", apart, shape=shape, parameters=f"{{perm = {order}}}")

    queries = split("q", "[1, 0, 2]", (heads, n, each))
    keys = split("k", "[1, 2, 0]", (heads, each, n))
    values = split("v", "[1, 0, 2]", (heads, n, each))
    scores = w.apply("matmul", queries, keys, shape=(heads, n, n))
    scaled = w.apply("mul", scores, "scale", shape=(heads, n, n))
    shares = w.apply("softmax", scaled, shape=(heads, n, n), parameters="{axis = 2 : i64}")
    mixed = w.apply("matmul", shares, values, shape=(heads, n, each))
    back = w.apply("transpose", mixed, shape=(n, heads, each), parameters="{perm = [1, 0, 2]}")
    flat = f"{{shape = [{n}, {sizes.width}]}}"
    joined = w.apply("reshape", back, shape=(n, sizes.width), parameters=flat)
    return w.apply("linear", joined, weights["wo"], weights["bo"], shape=(n, sizes.width))


def transformer(sizes: Sizes) -> ModuleOp:
    """The program, in loom."""
    w = Writer()
    shape, width, hidden = (sizes.positions, sizes.width), sizes.width, 4 * sizes.width
    x = w.argument("x", *shape)
    w.argument("scale", 1)
    for layer in range(sizes.layers):
        weights: dict[str, str] = {}
        for name in "qkvo":
            weights[f"w{name}"] = w.argument(f"l{layer}_w{name}", width, width)
            weights[f"b{name}"] = w.argument(f"l{layer}_b{name}", width)
        gains = [w.argument(f"l{layer}_g{n}", width) for n in range(4)]
        up = w.argument(f"l{layer}_up", width, hidden), w.argument(f"l{layer}_bu", hidden)
        down = w.argument(f"l{layer}_down", hidden, width), w.argument(f"l{layer}_bd", width)
        attended = attention(w, norm(w, x, gains[0], gains[1]), weights, sizes)
        x = w.apply("add", x, attended, shape=shape)
        inner = w.apply("linear", norm(w, x, gains[2], gains[3]), *up, shape=(shape[0], hidden))
        inner = w.apply("gelu", inner, shape=(shape[0], hidden))
        x = w.apply("add", x, w.apply("linear", inner, *down, shape=shape), shape=shape)
    return w.module(x)


FORMS = {
    "itself": "",
    "simplified": "loom-simplify",
    "fused": "loom-simplify,loom-fuse",
    "sharded": "loom-shard{shards=8}",
    "fused and sharded": "loom-simplify,loom-fuse,loom-shard{shards=8}",
    "spelled out by shards": "loom-simplify,loom-fuse,loom-shard{shards=8},loom-expand-shards",
}


def _last_body(module: ModuleOp, kind: type) -> object:
    return [
        op
        for outer in module.walk()
        if isinstance(outer, loom.OperationOp)
        for region in outer.regions
        for block in region.blocks
        for op in block.ops
        if isinstance(op, kind)
    ][-1]


def without_exp(module: ModuleOp) -> None:
    """The softmax of the last layer forgets its exponential."""
    op = _last_body(module, math.ExpOp)
    assert isinstance(op, math.ExpOp)
    op.result.replace_all_uses_with(op.operand)


def swapped(module: ModuleOp) -> None:
    """The last layer norm subtracts the other way round."""
    op = _last_body(module, arith.SubfOp)
    assert isinstance(op, arith.SubfOp)
    op.operands[0], op.operands[1] = op.operands[1], op.operands[0]


MISTAKES: dict[str, Callable[[ModuleOp], None]] = {
    "wrong: no exp in the last softmax": without_exp,
    "wrong: subtraction swapped in the last norm": swapped,
}


@dataclass(frozen=True)
class Row:
    """One comparison."""

    form: str
    answer: str
    reason: str
    operations: int
    points: int
    seconds: float
    peak_mib: float


def measure(sizes: Sizes, forms: tuple[str, ...], console: Console) -> list[Row]:
    """Compare the program with each of its forms."""
    rows: list[Row] = []
    whole = transformer(sizes)
    for form in forms:
        other = whole.clone()
        if FORMS.get(form):
            run_pipeline(other, FORMS[form])
        elif form in MISTAKES:
            MISTAKES[form](other)
        operations = sum(1 for op in other.walk() if op.name.startswith("loom."))
        with console.status(form):
            start = perf_counter()
            verdict = compare_programs(whole, other)
            seconds = perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            Row(form, verdict.answer, verdict.reason, operations, work_of(other), seconds, peak)
        )
        console.print(rows[-1])
    return rows


def show(rows: list[Row], console: Console) -> None:
    table = Table(title="one comparison each", title_justify="left")
    for column in ("form", "answer", "operations", "points at full size", "seconds", "peak MiB"):
        table.add_column(column, justify="left" if column in ("form", "answer") else "right")
    for row in rows:
        table.add_row(
            row.form,
            row.answer,
            f"{row.operations:,}",
            f"{row.points:.1e}",
            f"{row.seconds:.1f}",
            f"{row.peak_mib:.0f}",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what comparing programs costs.")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--forms", nargs="+", default=[*FORMS, *MISTAKES])
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    console = Console(width=120)
    sizes = Sizes(layers=options.layers)
    rows = measure(sizes, tuple(options.forms), console)
    show(rows, console)
    result = {
        "machine": machine(),
        "sizes": asdict(sizes),
        "rows": [asdict(row) for row in rows],
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""What compiling costs, per application, and whether it stays flat as graphs grow.

    python benchmarks/passes.py                     # 1k, 10k and 50k applications, a few minutes
    python benchmarks/passes.py --sizes 1000 5000

The graph is a chain of residual blocks, `x + linear(gelu(linear(x)))`, four applications of library
metakernels each, on 64 x 64 tensors of f32. Every stage is timed by itself, in one process, with
Python's garbage collector on: building the weft module through the API, printing and parsing it,
verifying it, each pass, verifying and printing what comes out. A stage's time is the best of some
repetitions, each from a fresh module.

The peer is bare xDSL in the same run: parse, verify and print a function of `arith` operations, as
many of them as the program has operations once weft-apply has run (bodies counted), because that is
the IR our pipeline works on. `pipeline` is parse, verify, weft-apply, loom-simplify, loom-fuse,
loom-shard, verify and print: what `tapestry-opt` does. The table also compares the pipeline
with bare xDSL on as many operations as the graph has applications, a far smaller IR.
"""

import argparse
import gc
import io
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import Builtin, ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tapestry.dialects import weft
from tapestry.dialects.loom import TensorType
from tapestry.frontend import make_context, parse_passes, parse_text, verify_module
from tapestry.zspace import Range

SIZES = (1_000, 10_000, 50_000)
PASSES = ("weft-apply", "loom-simplify", "loom-fuse", "loom-shard{shards=4}")
PIPELINE = ("parse", "verify", *PASSES, "verify the result", "print the result")
STAGES = ("build", "print", *PIPELINE)
BARE = ("parse", "verify", "print")
RESULTS = Path(__file__).parent / "results" / "passes.json"

Times = dict[str, float]


def build(applications: int) -> ModuleOp:
    """A chain of residual blocks of `applications` applications, a multiple of four."""
    matrix = TensorType.of(Range.of((64, 64)), f32)
    vector = TensorType.of(Range.of((64,)), f32)
    function = func.FuncOp("main", ((matrix, matrix, vector, matrix, vector), (matrix,)))
    x, w1, b1, w2, b2 = function.body.block.args
    ops: list[weft.ApplyOp | func.ReturnOp] = []

    def apply(name: str, *operands: SSAValue) -> SSAValue:
        op = weft.ApplyOp(name, operands, (matrix,))
        ops.append(op)
        return op.results[0]

    for _ in range(applications // 4):
        hidden = apply("gelu", apply("linear", x, w1, b1))
        x = apply("add", x, apply("linear", hidden, w2, b2))
    function.body.block.add_ops([*ops, func.ReturnOp(x)])
    return ModuleOp([function])


def text_of(module: ModuleOp) -> str:
    """The module as text."""
    stream = io.StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def timed(times: Times, stage: str, work: Callable[[], object]) -> object:
    """Do some work and note the best time it has taken so far, in seconds."""
    gc.collect()
    start = perf_counter()
    result = work()
    seconds = perf_counter() - start
    times[stage] = min(seconds, times.get(stage, seconds))
    return result


def measure(applications: int, repeats: int) -> tuple[Times, int]:
    """Seconds of each stage, and how many operations there are after weft-apply."""
    times: Times = {}
    operations = 0
    passes = dict(zip(PASSES, parse_passes(",".join(PASSES)), strict=True))
    for _ in range(repeats):
        built = build(applications)
        timed(times, "build", lambda: build(applications))
        timed(times, "print", lambda built=built: text_of(built))
        text = text_of(built)
        del built
        ctx = make_context()
        module = timed(times, "parse", lambda text=text, ctx=ctx: parse_text(text, ctx=ctx))
        assert isinstance(module, ModuleOp)
        timed(times, "verify", lambda module=module: verify_module(module))
        for name, one in passes.items():
            timed(times, name, lambda one=one, ctx=ctx, module=module: one.apply(ctx, module))
            if name == PASSES[0]:
                operations = sum(1 for _ in module.walk())
        timed(times, "verify the result", lambda module=module: verify_module(module))
        timed(times, "print the result", lambda module=module: text_of(module))
    return times, operations


def measure_bare(operations: int, repeats: int) -> Times:
    """Seconds that bare xDSL takes to parse, verify and print that many `arith` operations."""
    lines = ["func.func @main(%x : f32, %y : f32) -> f32 {"]
    name = "%x"
    for i in range(operations):
        lines.append(f"  %v{i} = arith.{'addf' if i % 2 else 'mulf'} {name}, %y : f32")
        name = f"%v{i}"
    lines += [f"  func.return {name} : f32", "}"]
    text = "\n".join(lines)
    times: Times = {}
    for _ in range(repeats):
        ctx = Context()
        for dialect in (Builtin, arith.Arith, func.Func):
            ctx.load_dialect(dialect)
        module = timed(times, "parse", lambda ctx=ctx: Parser(ctx, text).parse_module())
        assert isinstance(module, ModuleOp)
        timed(times, "verify", module.verify)
        timed(times, "print", lambda module=module: text_of(module))
    return times


def run(sizes: tuple[int, ...], repeats: int, console: Console) -> dict[str, object]:
    """Measure every size beside bare xDSL; the figures, in seconds."""
    measure(8, 1)  # imports and the library of metakernels stay outside the clock
    measure_bare(8, 1)
    figures: list[dict[str, object]] = []
    for size in sizes:
        with console.status(f"{size:,} applications"):
            ours, operations = measure(size, repeats)
        with console.status(f"bare xDSL, {operations:,} operations"):
            same_size = measure_bare(operations, repeats)
            same_count = measure_bare(size, repeats)
        pipeline = sum(ours[stage] for stage in PIPELINE)
        figures.append(
            {
                "applications": size,
                "operations_after_weft_apply": operations,
                "seconds": ours,
                "pipeline_seconds": pipeline,
                "bare_xdsl_seconds": same_size,
                "ratio_to_bare_xdsl": pipeline / sum(same_size.values()),
                "ratio_to_bare_xdsl_of_as_many_operations_as_applications": pipeline
                / sum(same_count.values()),
            }
        )
    return {"machine": machine(), "repeats": repeats, "figures": figures}


def show(result: dict[str, object], console: Console) -> None:
    """Print microseconds per application for each stage and size, growth, and the ratios."""
    figures = result["figures"]
    sizes = [figure["applications"] for figure in figures]
    table = Table(title="microseconds per application", title_justify="left")
    table.add_column("stage")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    table.add_column(f"{sizes[-1]:,} / {sizes[0]:,}", justify="right")

    def row(title: str, seconds: list[float]) -> None:
        costs = [1e6 * s / size for s, size in zip(seconds, sizes, strict=True)]
        table.add_row(title, *(f"{cost:,.1f}" for cost in costs), f"{costs[-1] / costs[0]:.2f}x")

    for stage in STAGES:
        row(stage, [figure["seconds"][stage] for figure in figures])
        if stage == "print":
            table.add_section()
    table.add_section()
    row("pipeline", [figure["pipeline_seconds"] for figure in figures])
    table.add_section()
    for stage in BARE:
        row(f"bare xDSL: {stage}", [figure["bare_xdsl_seconds"][stage] for figure in figures])
    row("bare xDSL", [sum(figure["bare_xdsl_seconds"].values()) for figure in figures])
    table.add_section()
    for title, key in (
        ("pipeline / bare xDSL, same number of operations", "ratio_to_bare_xdsl"),
        (
            "pipeline / bare xDSL, an operation per application",
            "ratio_to_bare_xdsl_of_as_many_operations_as_applications",
        ),
    ):
        table.add_row(title, *(f"{figure[key]:.2f}x" for figure in figures), "")
    console.print(table)
    operations = ", ".join(f"{figure['operations_after_weft_apply']:,}" for figure in figures)
    console.print(f"operations after weft-apply, bodies counted: {operations}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what compiling costs.")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    console = Console(width=120)
    result = run(tuple(options.sizes), options.repeats, console)
    show(result, console)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

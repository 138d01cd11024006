"""`tapestry inspect`: what a program computes, moves and stores, without running it.

$ tapestry inspect model.mlir
@main
operation  over               shards  reads  writes  moves  float operations
linear     [0, 0] : [64, 32]  1       ...
at most 217.1 kB of tensors are stored at once, while @linear runs
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table
from xdsl.dialects import func
from xdsl.ir import Operation

from tapestry.dialects import loom
from tapestry.frontend import load_module, run_pipeline
from tapestry.graph import (
    flops,
    live_bytes,
    operations,
    scalar_operations,
    shard_count,
    traffic,
)
from tapestry.halos import halos
from tapestry.movement import (
    Reader,
    Splittable,
    assembled_bytes,
    edges,
    merged_bytes,
    moved_bytes,
)
from tapestry.tools._pipelines import require_loom, with_metakernels
from tapestry.tools._report import table_console


def inspect_file(program: Path, pipeline: str, metakernels: Path | None = None) -> None:
    """Print a table per function of the program that the pipeline makes."""
    pipeline = with_metakernels(pipeline, metakernels)
    module = load_module(program)
    run_pipeline(module, pipeline)
    require_loom(module)
    console = table_console()
    for function in module.walk():
        if isinstance(function, func.FuncOp) and not function.is_declaration:
            console.print(f"@{function.sym_name.data}", highlight=False, markup=False)
            _show(function, console)


def _show(function: func.FuncOp, console: Console) -> None:
    works = operations(function)
    costs = [traffic(op) for op in works]
    moves = [_moves(op) for op in works]
    floats = [flops(op) for op in works]
    table = Table(show_footer=len(works) > 1)
    table.add_column("operation", "total", overflow="fold")
    table.add_column("over", overflow="fold")
    footers = (
        str(sum(map(shard_count, works))),
        decimal(sum(cost.read for cost in costs)),
        decimal(sum(cost.written for cost in costs)),
        decimal(sum(moves)),
        f"{sum(floats):,}",
    )
    titles = ("shards", "reads", "writes", "moves", "float operations")
    for title, footer in zip(titles, footers, strict=True):
        table.add_column(title, footer, justify="right")
    for op, cost, moved, computed in zip(works, costs, moves, floats, strict=True):
        table.add_row(
            escape(_name(op)),
            escape(str(op.index)),
            str(shard_count(op)),
            decimal(cost.read),
            decimal(cost.written),
            decimal(moved),
            f"{computed:,}",
        )
    console.print(table)
    counts = sum((scalar_operations(op) for op in works), Counter[str]())
    kinds = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
    stored = max(live_bytes(function), key=lambda at: at[1])
    lines = (
        f"scalar operations: {kinds or 'none'}",
        f"at most {decimal(stored[1])} of tensors are stored at once, at {_name(stored[0])}",
    )
    reached = [(op, halo) for op in works if isinstance(op, Splittable) for halo in halos(op)]
    halo_lines = [f"a shard of {_name(op)} reads {halo}" for op, halo in reached]
    for line in (*lines, *halo_lines):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _moves(op: Operation) -> int:
    """Bytes that shards need from other shards, or that move to be merged."""
    moved = 0
    if isinstance(op, Splittable):
        moved += sum(map(moved_bytes, edges(op)))
    if isinstance(op, Splittable | loom.MergeOp):
        moved += merged_bytes(op)
    if isinstance(op, Reader):
        moved += assembled_bytes(op)
    return moved


def _name(op: Operation) -> str:
    if isinstance(op, loom.OperationOp | loom.ExternalOp):
        return op.subject
    return f"@{op.kernel_name}" if isinstance(op, loom.Dispatch) else op.name

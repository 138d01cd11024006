"""What rewriting a large model costs: 12 to 96 of GPT-3's layers, from weft to sharded groups.

    python benchmarks/rewrites.py                     # 12, 48 and 96 layers, a few minutes
    python benchmarks/rewrites.py --layers 2 4

A layer has the shapes of GPT-3 175B (2048 tokens, width 12288, 96 heads): layer norm, attention
with a causal mask, a residual, layer norm, a perceptron with gelu, a residual. Nothing is run; only
shapes matter. The pipeline is the recommended one (`default`), then `loom-shard{shards=8}` and
`loom-propagate`; then the Triton module as text. It is measured twice: with `loom-outline` first
and `loom-inline` before `loom-propagate`, so that most passes see one layer, and on all layers one
by one. Every pass is timed by itself, and the verification after it that `tapestry-opt` does.

Beside it, in the same run: xDSL's own `canonicalize` and `cse` on the same IR (after weft-apply).
A microsecond per operation counts what is in bodies and groups too.
"""

import argparse
import gc
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, bf16
from xdsl.ir import SSAValue

from tapestry.attributes import attribute_of
from tapestry.codegen.module_printer import print_module
from tapestry.dialects import weft
from tapestry.dialects.loom import TensorType
from tapestry.frontend import make_context, parse_passes, verify_module
from tapestry.zspace import Range

LAYERS = (12, 48, 96)
TOKENS, WIDTH, HEADS = 2048, 12288, 96
SHARDED = "default,loom-shard{shards=8},loom-propagate"
ONCE = "loom-outline,default,loom-shard{shards=8},loom-inline,loom-propagate"
PEERS = ("canonicalize", "cse")
AIM = 60.0
"""Seconds for the largest."""

RESULTS = Path(__file__).parent / "results" / "rewrites.json"

Times = dict[str, float]


def tensor(*shape: int) -> TensorType:
    """A tensor of bf16 that starts at zero."""
    return TensorType.of(Range.of(shape), bf16)


def build(layers: int) -> ModuleOp:
    """The module of that many layers, in weft."""
    d, inner, state = WIDTH, 4 * WIDTH, tensor(TOKENS, WIDTH)
    square, vector, wide = tensor(d, d), tensor(d), tensor(TOKENS, inner)
    weights = [vector, vector, *[square, vector] * 4]
    weights += [vector, vector, tensor(d, inner), tensor(inner), tensor(inner, d), vector]
    function = func.FuncOp("main", ((state, *(weights * layers)), (state,)))
    arguments = iter(function.body.block.args)
    ops: list[weft.ApplyOp | func.ReturnOp] = []

    def apply(name: str, out: TensorType, *operands: SSAValue, **parameters: object) -> SSAValue:
        given = {key: attribute_of(value) for key, value in parameters.items()}
        op = weft.ApplyOp(name, operands, (out,), given)
        ops.append(op)
        return op.results[0]

    heads = tensor(HEADS, TOKENS, d // HEADS)
    x: SSAValue = next(arguments)
    for _ in range(layers):
        normal = apply("layer_norm", state, x, next(arguments), next(arguments))
        parts = [
            apply("split_heads", heads, one, heads=HEADS)
            for one in [
                apply("linear", state, normal, next(arguments), next(arguments)) for _ in range(3)
            ]
        ]
        mixed = apply("scaled_dot_product_attention", heads, *parts, causal=True)
        joined = apply("merge_heads", state, mixed)
        x = apply("add", state, x, apply("linear", state, joined, next(arguments), next(arguments)))
        normal = apply("layer_norm", state, x, next(arguments), next(arguments))
        hidden = apply("linear", wide, normal, next(arguments), next(arguments))
        hidden = apply("gelu", wide, hidden)
        x = apply("add", state, x, apply("linear", state, hidden, next(arguments), next(arguments)))
    function.body.block.add_ops([*ops, func.ReturnOp(x)])
    return ModuleOp([function])


def size(module: ModuleOp) -> int:
    """How many operations a module has, in bodies and groups too."""
    return sum(1 for _ in module.walk())


def timed(work: Callable[[], object]) -> float:
    """The seconds that some work takes."""
    gc.collect()
    start = perf_counter()
    work()
    return perf_counter() - start


def measure(layers: int, pipeline: str, *, text: bool) -> dict[str, object]:
    """Seconds of each pass on a fresh module, of verifying after it, and of the text of kernels."""
    module, ctx = build(layers), make_context()
    passes: Times = {}
    verifying = 0.0
    applied = 0
    for one in parse_passes(pipeline):
        seconds = timed(lambda one=one: one.apply(ctx, module))
        passes[one.name] = passes.get(one.name, 0.0) + seconds
        verifying += timed(lambda: verify_module(module))
        if one.name == "weft-apply":
            applied = size(module)
    found: dict[str, object] = {
        "passes": passes,
        "seconds": sum(passes.values()),
        "verifying_seconds": verifying,
        "operations_after_weft_apply": applied,
        "operations": size(module),
        "kernels": sum(1 for op in functions_of(module) for _ in op.body.block.ops) - 1,
    }
    if text:
        (lower,) = parse_passes("loom-to-triton")
        found["lowering_seconds"] = timed(lambda: lower.apply(ctx, module))
        found["printing_seconds"] = timed(lambda: print_module(module))
    return found


def functions_of(module: ModuleOp) -> list[func.FuncOp]:
    """The functions of a module."""
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]


def measure_peers(layers: int) -> dict[str, object]:
    """Seconds of xDSL's passes on what weft-apply makes, and how many operations that is."""
    seconds: Times = {}
    operations = 0
    for name in PEERS:
        module, ctx = build(layers), make_context()
        apply, peer = parse_passes(f"weft-apply,{name}")
        apply.apply(ctx, module)
        operations = size(module)
        seconds[name] = timed(lambda peer=peer, ctx=ctx, module=module: peer.apply(ctx, module))
    return {"seconds": seconds, "operations": operations}


def run(layers: tuple[int, ...], console: Console, *, text: bool) -> dict[str, object]:
    """Measure every size; the figures, in seconds."""
    measure(1, SHARDED, text=text)  # imports, the library and derivations stay outside the clock
    figures: list[dict[str, object]] = []
    for count in layers:
        with console.status(f"{count} layers"):
            figures.append(
                {
                    "layers": count,
                    "rewritten_once": measure(count, ONCE, text=text),
                    "one_by_one": measure(count, SHARDED, text=False),
                    "xdsl": measure_peers(count),
                }
            )
    return {"machine": machine(), "aim_seconds": AIM, "figures": figures}


def show(result: dict[str, object], console: Console) -> None:
    """Print seconds per pass for each size, and microseconds per operation."""
    figures = result["figures"]
    table = Table(title="seconds", title_justify="left")
    table.add_column("")
    for figure in figures:
        table.add_column(f"{figure['layers']} layers", justify="right")
    first, last = figures[0], figures[-1]
    table.add_column(f"{last['layers']} / {first['layers']}", justify="right")

    def row(title: str, numbers: list[float], digits: int = 2) -> None:
        growth = f"{numbers[-1] / numbers[0]:.1f}x" if numbers[0] else ""
        table.add_row(title, *(f"{number:,.{digits}f}" for number in numbers), growth)

    def total(figure: dict[str, object], which: str) -> float:
        return figure[which]["seconds"] + figure[which]["verifying_seconds"]

    for which, title in (("rewritten_once", "each layer once"), ("one_by_one", "one by one")):
        for name in first[which]["passes"]:
            row(f"{title}: {name}", [figure[which]["passes"][name] for figure in figures])
        row(f"{title}: verifying", [figure[which]["verifying_seconds"] for figure in figures])
        row(f"{title}: all", [total(figure, which) for figure in figures])
        for stage in ("lowering", "printing"):
            key = f"{stage}_seconds"
            if key in first[which]:
                row(f"{title}: {stage} to triton", [figure[which][key] for figure in figures])
        table.add_section()
    for name in PEERS:
        row(f"xDSL's {name}", [figure["xdsl"]["seconds"][name] for figure in figures])
    table.add_section()
    for which, title in (("rewritten_once", "each layer once"), ("one_by_one", "one by one")):
        per = [
            1e6 * total(f, which) / f["one_by_one"]["operations_after_weft_apply"] for f in figures
        ]
        row(f"us per operation, {title}", per, 1)
    for name in PEERS:
        per = [1e6 * f["xdsl"]["seconds"][name] / f["xdsl"]["operations"] for f in figures]
        row(f"us per operation, xDSL's {name}", per, 1)
    console.print(table)
    many = ", ".join(f"{f['one_by_one']['operations_after_weft_apply']:,}" for f in figures)
    console.print(f"operations after weft-apply, bodies counted: {many}")
    seconds = total(last, "one_by_one")
    console.print(
        f"{last['layers']} layers one by one take {seconds:.1f} s; the aim is {AIM:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what rewriting a large model costs.")
    parser.add_argument("--layers", type=int, nargs="+", default=list(LAYERS))
    parser.add_argument("--no-text", action="store_true", help="leave the Triton module out")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    console = Console(width=120)
    result = run(tuple(options.layers), console, text=not options.no_text)
    show(result, console)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""How many kernels a block of a network becomes, and why it does not become fewer.

    python benchmarks/block_kernels.py                    # the table
    python benchmarks/block_kernels.py gpt2 --explain     # and what stands between them
    python benchmarks/block_kernels.py --pipeline weft-apply,loom-simplify,loom-fuse
    python benchmarks/block_kernels.py --json benchmarks/results/block_kernels.json

A kernel is an operation, a group or an external kernel that is left at the end; views move nothing.
*Launches* are what the lowered program runs: copies of what no reader could take count there, and
members of a group that is not one kernel. *Stored* is the largest tensor that one kernel leaves
for another, in cells: with no scores among them, it does not grow as the square of the rows.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from _blocks import gpt2, llama, resnet_basic, resnet_bottleneck
from _gradient_blocks import jax_attention, torch_attention, torch_gpt2, torch_llama
from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tapestry import explain
from tapestry.dialects import loom, triton
from tapestry.dialects.loom import tensor_type
from tapestry.frontend import parse_text, run_pipeline
from tapestry.movement import splittables
from tapestry.pipelines import DEFAULT_PIPELINE

BLOCKS: dict[str, Callable[[], str | ModuleOp]] = {
    "gpt2": gpt2,
    "gpt2-packed": lambda: gpt2(packed=True),
    "gpt2-gradients-torch": torch_gpt2,
    "llama": llama,
    "llama-packed": lambda: llama(packed=True),
    "llama-attention-torch": torch_llama,
    "resnet-basic": resnet_basic,
    "resnet-basic-strided": lambda: resnet_basic(stride=2),
    "resnet-bottleneck": resnet_bottleneck,
    "resnet-bottleneck-strided": lambda: resnet_bottleneck(stride=2, inner=128),
    "attention-gradients-torch": lambda: torch_attention(causal=False),
    "attention-gradients-torch-causal": lambda: torch_attention(causal=True),
    "attention-gradients-torch-grouped": lambda: torch_attention(causal=True, heads=4),
    "attention-gradients-jax": lambda: jax_attention(causal=False),
    "attention-gradients-jax-causal": lambda: jax_attention(causal=True),
}
"""Each as text or as a module; those of PyTorch and JAX need these."""

VIEWS = (loom.ViewOp, loom.ReshapeOp, loom.AssembleOp)


def figures(module: ModuleOp) -> dict[str, int]:
    """The figures of a program after its passes, which is then lowered."""
    left = splittables(module)
    views = sum(isinstance(op, VIEWS) for op in module.walk())
    between = [out for op in left for out in op.results if _is_read(out)]
    stored = max((tensor_type(out).box.size for out in between), default=0)
    run_pipeline(module, "loom-to-triton")
    launches = sum(isinstance(op, triton.LaunchOp | triton.ExternalOp) for op in module.walk())
    return {"kernels": len(left), "launches": launches, "views": views, "stored": stored}


def _is_read(out: SSAValue) -> bool:
    return any(use.operation.name != "func.return" for use in out.uses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blocks", nargs="*", default=list(BLOCKS))
    parser.add_argument("--pipeline", default=DEFAULT_PIPELINE)
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = Table("block", "kernels", "launches", "views left", "stored")
    found: dict[str, dict[str, int]] = {}
    for name in options.blocks:
        try:
            made = BLOCKS[name]()
        except ModuleNotFoundError as missing:
            print(f"{name} is left out: {missing}")
            continue
        module = parse_text(made) if isinstance(made, str) else made
        run_pipeline(module, options.pipeline)
        if options.explain:
            print(explain(module))
        found[name] = figures(module)
        table.add_row(name, *(f"{n:,}" for n in found[name].values()))
    Console().print(table)
    if options.json is not None:
        text = json.dumps({"machine": machine(), "figures": found}, indent=2)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()

"""How many kernels a block of a network becomes, and why it does not become fewer.

    python benchmarks/block_kernels.py                    # the table
    python benchmarks/block_kernels.py gpt2 --explain     # and what stands between them
    python benchmarks/block_kernels.py --pipeline weft-apply,loom-simplify,loom-fuse

A kernel is an operation, a group or an external kernel that is left at the end; views move nothing.
"""

import argparse

from _blocks import gpt2, llama, resnet_basic, resnet_bottleneck
from rich.console import Console
from rich.table import Table

from tapestry import explain
from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline
from tapestry.movement import splittables
from tapestry.pipelines import DEFAULT_PIPELINE

BLOCKS = {
    "gpt2": gpt2,
    "gpt2-packed": lambda: gpt2(packed=True),
    "llama": llama,
    "llama-packed": lambda: llama(packed=True),
    "resnet-basic": resnet_basic,
    "resnet-basic-strided": lambda: resnet_basic(stride=2),
    "resnet-bottleneck": resnet_bottleneck,
    "resnet-bottleneck-strided": lambda: resnet_bottleneck(stride=2, inner=128),
}
VIEWS = (loom.ViewOp, loom.ReshapeOp, loom.AssembleOp)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blocks", nargs="*", default=list(BLOCKS))
    parser.add_argument("--pipeline", default=DEFAULT_PIPELINE)
    parser.add_argument("--explain", action="store_true")
    options = parser.parse_args()
    table = Table("block", "applications", "kernels", "views left")
    console = Console()
    for name in options.blocks:
        text = BLOCKS[name]()
        module = parse_text(text)
        run_pipeline(module, options.pipeline)
        left = splittables(module)
        views = sum(isinstance(op, VIEWS) for op in module.walk())
        table.add_row(name, str(text.count("weft.apply")), str(len(left)), str(views))
        if options.explain:
            print("\n".join(explain(module)))
    console.print(table)


if __name__ == "__main__":
    main()

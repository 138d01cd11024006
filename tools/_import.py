"""`tapestry import ...`: programs of other frameworks as modules that every command takes.

tapestry import stablehlo model.stablehlo.mlir -o model.mlir
tapestry import torch models.mlp:make -o model.mlir
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tapestry.tools._exits import exits

commands = typer.Typer(
    name="import",
    help="Import programs of other frameworks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", help="The .mlir file to write; weights go to an .npz file beside it."
    ),
]


@commands.command()
@exits
def torch(
    factory: Annotated[
        str,
        typer.Argument(
            help="package.module:function; called without arguments, it returns a model and a "
            "tuple of example inputs. Modules are looked for in the working directory first."
        ),
    ],
    output: Output,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a model with operators that are not native.")
    ] = False,
) -> None:
    """Import a PyTorch model: what its forward computes for inputs of those shapes.

    Says which operators are native. Others stay calls of PyTorch, and run where it is installed.
    """
    from tapestry.tools._import_torch import import_model

    import_model(factory, output, strict=strict)


@commands.command()
@exits
def stablehlo(
    file: Annotated[
        Path, typer.Argument(help="A StableHLO program: text, or a portable artifact.")
    ],
    output: Output,
) -> None:
    """Import a StableHLO program, as `jax.export` writes it."""
    from tapestry.files import check_writable
    from tapestry.importers.stablehlo import load
    from tapestry.saving import save_module

    check_writable(output, file)
    save_module(load(file), output)

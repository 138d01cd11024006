"""`tapestry metakernel ...`: commands for those who write metakernels.

tapestry metakernel check mine/
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tapestry.tools._exits import exits

commands = typer.Typer(
    name="metakernel",
    help="Check and show metakernels (templates of operators).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Metakernels = Annotated[
    Path | None,
    typer.Option(help="A folder of metakernel templates (*.yaml) beside the library's."),
]
"""The option that every command which applies metakernels has."""


@commands.command()
@exits
def check(
    paths: Annotated[list[Path], typer.Argument(help="Files of templates, or folders of them.")],
    metakernels: Metakernels = None,
    partitions: Annotated[
        int, typer.Option(min=0, help="Random partitions that each example is run under.")
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, help="What the partitions are drawn with.")] = 0,
    points: Annotated[
        int,
        typer.Option(min=0, help="Examples of at most this many points run as Triton kernels too."),
    ] = 1 << 16,
    print_kernels: Annotated[
        bool, typer.Option("--print-kernels", help="Print the Triton kernels of each example.")
    ] = False,
    issues_json: Annotated[
        bool,
        typer.Option(
            "--issues-json", help="Print what is wrong on stderr as a JSON list of issues."
        ),
    ] = False,
) -> None:
    """Read templates, run their examples whole, split and as Triton kernels, and report.

    Exits with 1 where a template is wrong or an example does not hold.
    """
    from tapestry.tools._check_examples import Depth
    from tapestry.tools._check_metakernels import Request, check_files

    depth = Depth(partitions, points, seed)
    request = Request(tuple(paths), metakernels, depth, print_kernels, issues_json)
    if not check_files(request):
        raise typer.Exit(1)


@commands.command()
@exits
def show(
    name: Annotated[str, typer.Argument(help="The metakernel.")],
    shapes: Annotated[
        str | None,
        typer.Option(help="The shapes of its inputs; names are symbols: x=[2, N],w=[N, 4 * N]."),
    ] = None,
    dtypes: Annotated[
        str | None, typer.Option(help="Their dtypes, f32 unless given: x=f16,w=f16.")
    ] = None,
    params: Annotated[
        str | None, typer.Option(help="Its parameters: axis=1,keepdim=true,perm=[1, 0].")
    ] = None,
    metakernels: Metakernels = None,
) -> None:
    """Say what a metakernel is, and for shapes its index space, projections and bodies."""
    from tapestry.tools._show_metakernel import Request, show_metakernel

    show_metakernel(Request(name, shapes, dtypes, params, metakernels))


@commands.command()
@exits
def schema() -> None:
    """Print the JSON schema of template files, which editors check and complete them with."""
    import json

    from tapestry.metakernels.schema import file_schema

    typer.echo(json.dumps(file_schema(), indent=2))


@commands.command()
@exits
def to_ir(
    files: Annotated[list[Path], typer.Argument(help="YAML files of templates.")],
) -> None:
    """Print templates as a module of weft.metakernel operations."""
    from tapestry.tools._convert_metakernels import templates_to_ir

    typer.echo(templates_to_ir(files))


@commands.command()
@exits
def to_yaml(
    file: Annotated[Path, typer.Argument(help="A program with weft.metakernel operations.")],
) -> None:
    """Print the weft.metakernel operations of a program as YAML."""
    from tapestry.tools._convert_metakernels import templates_to_yaml

    typer.echo(templates_to_yaml(file), nl=False)

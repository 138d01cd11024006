"""`tapestry metakernel check`: read templates, run their examples, and report on all of them.

mine/rows.yaml:19:5: error: template peak: example 1: the reference gives another result: ...

metakernel  example  operations  partitions  kernels
peak        1        1           4           1, ran
scale_rows  none
2 metakernels, 1 example, 1 error
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tapestry.diagnostics import TapestryError, UsageError
from tapestry.issues import issues_of
from tapestry.metakernels import Library, Template, load_library
from tapestry.metakernels.composition import check_steps
from tapestry.metakernels.documents import Node, read_file
from tapestry.metakernels.libraries import read_folder
from tapestry.tools._check_examples import Depth, Report, check_example
from tapestry.tools._report import ProgressBar, table_console


@dataclass(frozen=True)
class Request:
    """What `tapestry metakernel check` was asked."""

    paths: tuple[Path, ...]
    metakernels: Path | None = None
    depth: Depth = field(default_factory=Depth)
    print_kernels: bool = False
    issues_json: bool = False


@dataclass(frozen=True)
class Finding:
    """A template, the number of its example (None when it has none), and how that went."""

    name: str
    example: int | None
    result: Report | TapestryError | None


def check_files(request: Request) -> bool:
    """Check the templates of all files and folders, print the report; whether all holds."""
    documents: dict[str, Node] = {}
    for path in request.paths:
        documents.update(_documents(path))
    folders = () if request.metakernels is None else (request.metakernels,)
    library = load_library(folders).extended(documents)
    with ProgressBar(Console(stderr=True)) as watch:
        watch.total(len(documents))
        findings: list[Finding] = []
        for name in documents:
            findings += _check(name, library, request.depth)
            watch.step(name)
    errors = [one.result for one in findings if isinstance(one.result, TapestryError)]
    _print_errors(errors, as_json=request.issues_json)
    console = table_console()
    if request.print_kernels:
        _print_kernels(findings, console)
    console.print(_table(findings))
    examples = sum(one.example is not None for one in findings)
    counts = ((len(documents), "metakernel"), (examples, "example"), (len(errors), "error"))
    console.print(", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts))
    return not errors


def _documents(path: Path) -> Mapping[str, Node]:
    if path.is_dir():
        found = read_folder(path)
        if not found:
            files = any(path.glob("**/*.yaml"))
            raise UsageError(f"{path} holds no {'metakernel' if files else '*.yaml file'}")
        return found
    if not path.is_file():
        raise UsageError(f"there is no file or folder {path}")
    found = {str(key.value): node for key, node in read_file(path).entries}
    if not found:
        raise UsageError(f"{path} holds no metakernel")
    return found


def _check(name: str, library: Library, depth: Depth) -> list[Finding]:
    try:
        template = library.get(name)
        check_steps(template, library)
    except TapestryError as error:
        return [Finding(name, None, error)]
    if not template.examples:
        return [Finding(name, None, None)]
    return [
        Finding(name, position + 1, _result(template, position, library, depth))
        for position in range(len(template.examples))
    ]


def _result(
    template: Template, position: int, library: Library, depth: Depth
) -> Report | TapestryError:
    try:
        return check_example(template, position, library, depth)
    except TapestryError as error:
        return error


def _print_errors(errors: Iterable[TapestryError], *, as_json: bool) -> None:
    console = Console(stderr=True)
    if as_json:
        issues = [issue.to_json() for error in errors for issue in issues_of(error)]
        console.print(json.dumps(issues, indent=2), highlight=False, markup=False, soft_wrap=True)
        return
    for error in errors:
        console.print(str(error), highlight=False, markup=False, soft_wrap=True)


def _print_kernels(findings: Iterable[Finding], console: Console) -> None:
    for one in findings:
        if isinstance(one.result, Report):
            heading = f"# {one.name}, example {one.example}"
            text = f"{heading}\n{one.result.source}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)


def _table(findings: Iterable[Finding]) -> Table:
    table = Table()
    table.add_column("metakernel", overflow="fold")
    for title in ("example", "operations", "partitions", "shards", "kernels"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in findings:
        example = "none" if one.example is None else str(one.example)
        table.add_row(escape(one.name), example, *_cells(one.result))
    return table


def _cells(result: Report | TapestryError | None) -> tuple[str, ...]:
    if result is None:
        return ()
    if isinstance(result, TapestryError):
        return ("error",)
    kernels = f"{result.kernels}{', ran' if result.ran and result.kernels else ''}"
    return str(result.operations), str(result.partitions), f"<= {result.shards}", kernels

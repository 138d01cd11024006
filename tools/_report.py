"""What the `tapestry` command shows: a bar while a program runs, a table when it has run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Timer
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tapestry.runtime.executor import Record
from tapestry.tools._compare import Agreement

_WIDE: Final = 200
"""Columns of what is written to a file or a pipe: nobody's window cuts it."""


def table_console() -> Console:
    """Where tables are printed: as wide as the terminal, or as `COLUMNS` says, else wide."""
    console = Console()
    free = not console.is_terminal and "COLUMNS" not in os.environ
    return Console(width=_WIDE) if free else console


class ProgressBar:
    """A `Watch` that draws a bar on a terminal once a run has taken `patience` seconds.

        with ProgressBar(Console(stderr=True)) as watch:
            executor.run(module, inputs, watch)

    The bar is gone when the run ends. Nothing is drawn when the console is no terminal.
    """

    def __init__(self, console: Console, patience: float = 0.5) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=None)
        self._start = Timer(patience, self._progress.start)

    def __enter__(self) -> Self:
        self._start.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._start.cancel()
        self._start.join()
        self._progress.stop()

    def total(self, steps: int) -> None:
        """Say how many steps there will be."""
        self._progress.update(self._task, total=steps)

    def step(self, name: str) -> None:
        """Count one shard or launch of the operation or kernel `name`."""
        self._progress.update(self._task, advance=1, description=name)


def records_table(records: Sequence[Record], what: str) -> Table:
    """What ran, in order, with a last row of totals; `what` heads the names."""
    table = Table(show_footer=len(records) > 1)
    table.add_column(what, "total", overflow="fold")
    totals = (
        str(sum(record.shards for record in records)),
        decimal(sum(record.bytes_read for record in records)),
        decimal(sum(record.bytes_written for record in records)),
        _milliseconds(sum(record.seconds for record in records)),
    )
    for title, footer in zip(("shards", "read", "written", "time"), totals, strict=True):
        table.add_column(title, footer, justify="right", no_wrap=True)
    for record in records:
        table.add_row(
            escape(record.name),
            str(record.shards),
            decimal(record.bytes_read),
            decimal(record.bytes_written),
            _milliseconds(record.seconds),
        )
    return table


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms"


def agreement_line(agreement: Agreement) -> str:
    """One line that says how an output compares with what was expected."""
    if agreement.mismatch is not None:
        return f"{agreement.name}: differs: {agreement.mismatch}"
    verdict = "agrees" if agreement.agrees else "differs"
    if agreement.exact and agreement.agrees:
        return f"{agreement.name}: agrees: all {agreement.cells} cells are equal"
    errors = f"max abs error {agreement.max_absolute:.3g}"
    if agreement.exact:
        return f"{agreement.name}: {verdict}: {_beyond(agreement)} not equal, {errors}"
    errors += f", max rel error {agreement.max_relative:.3g}"
    if agreement.agrees:
        return f"{agreement.name}: {verdict}: {errors}"
    return f"{agreement.name}: {verdict}: {_beyond(agreement)} beyond tolerance, {errors}"


def _beyond(agreement: Agreement) -> str:
    return f"{agreement.beyond} of {agreement.cells} cells"

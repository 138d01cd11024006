import io
import time

import pytest
from rich.console import Console

from tapestry.runtime.executor import Record
from tapestry.tools._compare import Agreement
from tapestry.tools._report import ProgressBar, agreement_line, records_table, table_console


def watched(*, terminal: bool, patience: float, wait: float) -> str:
    stream = io.StringIO()
    with ProgressBar(Console(file=stream, force_terminal=terminal), patience) as watch:
        watch.total(3)
        watch.step("linear")
        time.sleep(wait)
        watch.step("gelu")
    return stream.getvalue()


def test_a_long_run_shows_a_bar():
    shown = watched(terminal=True, patience=0.05, wait=0.4)
    assert "linear" in shown
    assert "1/3" in shown


def test_a_short_run_shows_none():
    assert "linear" not in watched(terminal=True, patience=60.0, wait=0.0)


def test_a_file_gets_no_bar():
    assert watched(terminal=False, patience=0.0, wait=0.2) == ""


def rendered(*records: Record) -> list[list[str]]:
    stream = io.StringIO()
    Console(file=stream, width=100).print(records_table(records, "kernel"))
    lines = [line.replace("┃", "│") for line in stream.getvalue().splitlines() if "━" not in line]
    return [
        [cell.strip() for cell in line.strip("│").split("│")] for line in lines if "─" not in line
    ]


def test_the_table_adds_up():
    assert rendered(Record("a", 4, 1000, 20, 0.0015), Record("b", 1, 500, 8, 2.0)) == [
        ["kernel", "shards", "read", "written", "time"],
        ["a", "4", "1.0 kB", "20 bytes", "1.50 ms"],
        ["b", "1", "500 bytes", "8 bytes", "2,000.00 ms"],
        ["total", "5", "1.5 kB", "28 bytes", "2,001.50 ms"],
    ]


def test_one_row_needs_no_total():
    assert rendered(Record("a", 4, 1000, 20, 0.0015))[-1][0] == "a"


@pytest.mark.parametrize(
    ("agreement", "line"),
    [
        (Agreement("out0", exact=True, cells=6), "out0: agrees: all 6 cells are equal"),
        (
            Agreement("out0", exact=True, cells=6, beyond=2, max_absolute=3.0),
            "out0: differs: 2 of 6 cells not equal, max abs error 3",
        ),
        (
            Agreement("out0", exact=False, cells=6, max_absolute=0.5, max_relative=0.25),
            "out0: agrees: max abs error 0.5, max rel error 0.25",
        ),
        (
            Agreement("out0", exact=False, cells=6, beyond=1, max_absolute=0.5, max_relative=0.25),
            "out0: differs: 1 of 6 cells beyond tolerance, max abs error 0.5, max rel error 0.25",
        ),
        (Agreement("out0", exact=True, mismatch="a, not b"), "out0: differs: a, not b"),
    ],
)
def test_agreement_is_one_line(agreement: Agreement, line: str):
    assert agreement_line(agreement) == line


def test_a_pipe_gets_wide_tables_and_a_user_those_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert table_console().width == 200
    monkeypatch.setenv("COLUMNS", "90")
    assert table_console().width == 90

"""Rows of a table that are kept as they are made, whatever becomes of the process.

    rows = Rows(Path("table.json"))
    for name in names:
        if not rows.has(case=name):
            rows.add({"case": name, **measured(name)})
            rows.restart_if_lost(torch)

After some errors (an address that is not there, an assertion) a process can do nothing more with
its GPU. `restart_if_lost` then starts the script again in its place; rows that are there are not
made again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

RESTARTED = "TAPESTRY_RESTARTED"
"""Set in the environment of a script that was started again: it goes on with the rows there are."""


class Rows:
    """The rows of a table in a file; `rest` is what else the table says."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rest: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = []
        if path is not None and path.exists() and RESTARTED in os.environ:
            self.rest = json.loads(path.read_text())
            self.rows = self.rest.pop("rows", [])

    def has(self, **key: Any) -> bool:
        """Whether there is a row with these values."""
        return any(all(row.get(k) == v for k, v in key.items()) for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep another row."""
        self.rows.append(row)
        self.write()

    def write(self) -> None:
        """Write the table as it is now, in one step."""
        if self.path is not None:
            partial = self.path.with_suffix(".partial")
            partial.write_text(as_json(self.rest | {"rows": self.rows}))
            partial.replace(self.path)

    def restart_if_lost(self, torch: Any) -> None:
        """Start the script again if this process can do nothing more with its GPU."""
        if self.path is not None and lost(torch):
            self.write()
            sys.stdout.flush()
            os.environ[RESTARTED] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])


def as_json(table: Any) -> str:
    """A table as JSON, which has no number for what is infinite or none: `null` says it."""
    return json.dumps(_finite(table), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def without_problems(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table to go on with another time: the clock starts anew, and so do rows with problems."""
    rows = [
        row
        for row in table.get("rows", [])
        if row.get("right", True) and not row.get("problem") and not row.get("problems")
    ]
    own = {"rows", "until", "summary", "ok"}
    return {name: value for name, value in table.items() if name not in own} | {"rows": rows}


def lost(torch: Any) -> bool:
    """Whether this process can do nothing more with its GPU."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes longer, also where that makes another error of it."""
    late: list[TimeoutError] = []

    def stop(*_: object) -> None:
        late.append(TimeoutError(f"it took more than {seconds:.0f} s"))
        raise late[0]

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    except Exception as error:
        if late and error is not late[0]:
            raise late[0] from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)

"""What Tapestry says while it works, on stderr, if asked: `TAPESTRY_LOGS=passes,kernels,plan`.

    $ TAPESTRY_LOGS=passes tapestry run model.mlir --inputs in.npz
    tapestry.passes: weft-apply: 5 -> 9 operations in 4.1 ms
    ...

Channels are loggers of the standard library (`tapestry.passes`, ...), silent unless the variable
names them, or a program sets their level.

    >>> channel("passes").name
    'tapestry.passes'
"""

from __future__ import annotations

import logging
import os
import sys
from difflib import get_close_matches
from typing import Final

CHANNELS: Final = {
    "passes": "each pass: operations before and after, and how long it took",
    "plan": "each operation of the program that runs: its shards, and what moves",
    "kernels": "each kernel: where it is from, and whether it was compiled or found",
    "tuning": "each schedule that is measured: how long it takes, or why it failed",
    "cache": "what was found in the cache, what was not, and why",
    "coverage": "operators of an imported program that Tapestry computes, and that it does not",
    "recompiles": "why a program was compiled again",
    "fallbacks": "what runs otherwise than asked, and why (said without being asked for)",
}
"""The channels, and what each says."""

VARIABLE: Final = "TAPESTRY_LOGS"


def channel(name: str) -> logging.Logger:
    """The logger of a channel; KeyError for one that does not exist."""
    if name not in CHANNELS:
        raise KeyError(name)
    return logging.getLogger(f"tapestry.{name}")


def configure(wanted: str) -> None:
    """Switch on the channels that `wanted` lists (`all` for every one), and no others."""
    names = [name.strip().lower() for name in wanted.split(",") if name.strip()]
    if "all" in names:
        names = list(CHANNELS)
    for name in names:
        if name not in CHANNELS:
            close = get_close_matches(name, CHANNELS, n=1)
            known = f"there is {', '.join(CHANNELS)}, and all"
            hint = f"did you mean {close[0]}?" if close else known
            sys.stderr.write(f"{VARIABLE}: there is no channel {name!r}; {hint}\n")
    for name in CHANNELS:
        logger = channel(name)
        logger.handlers = [one for one in logger.handlers if not isinstance(one, _ToStderr)]
        logger.setLevel(logging.INFO if name in names else logging.NOTSET)
        if name in names:
            logger.addHandler(_ToStderr())


class _ToStderr(logging.Handler):
    """Writes to what is stderr at the time, without time stamps."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{record.name}: {record.getMessage()}\n")


configure(os.environ.get(VARIABLE, ""))

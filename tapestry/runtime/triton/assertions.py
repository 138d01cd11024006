"""Assertions of kernels that failed, as errors of the program.

    tl.device_assert(inside, "model.mlir:10:7: an index is out of range: ...")

The interpreter raises an `InterpreterError` around the message; a GPU prints it and reports a
device-side assertion with the next call, after which its context is of no more use.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from tapestry.diagnostics import Location
from tapestry.runtime.arrays.blocks import ELSE_HINT, BlockIndexError

_LOCATED = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)", re.DOTALL)


@contextmanager
def block_errors() -> Generator[None]:
    """Raise BlockIndexError for a failed assertion of a kernel, whose only ones are of blocks."""
    try:
        yield
    except Exception as error:
        failed = _failed_assertion(error)
        if failed is not None:
            raise failed from error
        raise


def _failed_assertion(error: BaseException | None) -> BlockIndexError | None:
    """The assertion that an error is about, if it is about one."""
    while error is not None:
        if isinstance(error, AssertionError) and "index is out of range" in str(error):
            return _located(str(error))
        if "device-side assert" in str(error):
            message = "an index is out of range; the GPU printed where"
            return BlockIndexError(message, hint=ELSE_HINT)
        error = error.__cause__
    return None


def _located(text: str) -> BlockIndexError:
    match = _LOCATED.fullmatch(text)
    if match is None:
        return BlockIndexError(text, hint=ELSE_HINT)
    place = Location(match["file"], int(match["line"]), int(match["column"]))
    return BlockIndexError(match["message"], location=place, hint=ELSE_HINT)

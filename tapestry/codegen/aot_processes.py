"""Processes that compile kernels: started before there is a kernel, and kept for the next one.

    prepare(2)                                  # returns at once; they import Triton meanwhile
    with compiler() as process:                 # one of them, or a new one
        answer = process.ask(request)           # see `aot_worker.py`

Importing Triton takes as long as compiling a kernel, and lowering a program takes longer than that:
processes that are started first are ready when kernels are. They end by themselves when nothing is
asked of them for a while, and with the process that started them.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final

PATIENCE: Final = 30.0
"""Seconds without a request after which a process ends."""

MARK: Final = "answers: "
"""What an answer begins with: Python may say other things as it starts."""


class CompilerDiedError(Exception):
    """A process that ended before it answered: its status, and the last line that it said."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


class Compiler:
    """A process that compiles kernels, one after another; OSError where none can be started."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self._used = monotonic()
        self._owner = os.getpid()
        # Triton writes to its cache what it reads there no more, wherever that may be.
        self._folder = Path(tempfile.mkdtemp(prefix="tapestry-"))
        try:
            with (self._folder / "stderr").open("wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tapestry.codegen.aot_worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    errors="replace",
                    env={**environment, "TRITON_CACHE_DIR": str(self._folder)},
                )
        except OSError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request; CompilerDiedError where the process ends instead."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        # A process that has ended reads nothing: what it said last is the answer.
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            if line.startswith(MARK):
                self._used = monotonic()
                return json.loads(line[len(MARK) :])
        raise CompilerDiedError(process.wait(), self._said())

    def may_be_asked(self, environment: Mapping[str, str]) -> bool:
        """Whether it is there, and one that would be started now would be the same.

        Where the process that started it was forked, it stays the first one's: answers to both
        would come through one pipe.
        """
        waited = monotonic() - self._used
        return (
            os.getpid() == self._owner
            # It ends later than that: not while it is being asked.
            and waited < PATIENCE / 2
            and self.environment == environment
            and self._process.poll() is None
        )

    def end(self) -> None:
        """End the process; where it was forked from its owner, only forget it."""
        if os.getpid() != self._owner:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            # What a process that has died was not told may still be in there.
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _said(self) -> str:
        with suppress(OSError):
            text = (self._folder / "stderr").read_text(errors="replace")
            lines = [line for line in text.splitlines() if line.strip()]
            return lines[-1] if lines else "no message"
        return "no message"


_idle: list[Compiler] = []
_asked: set[Compiler] = set()
"""Those that work on a kernel."""

_lock = Lock()


def prepare(count: int) -> None:
    """Have so many processes started, if they can be; whoever needs one then takes it."""
    environment = _environment()
    with _lock:
        _drop_stale(environment)
        with suppress(OSError):  # said by who needs it
            while len(_idle) < count:
                _idle.append(Compiler(environment))


@contextmanager
def compiler() -> Generator[Compiler]:
    """A process that compiles; it is kept afterwards, unless an error left it in the middle."""
    environment = _environment()
    with _lock:
        _drop_stale(environment)
        found = _idle.pop(0) if _idle else None
    found = Compiler(environment) if found is None else found
    _asked.add(found)
    try:
        yield found
    except BaseException:
        found.end()
        raise
    finally:
        _asked.discard(found)
    with _lock:
        _idle.append(found)


def _drop_stale(environment: Mapping[str, str]) -> None:
    """End what was started in another environment, or long ago."""
    stale = [one for one in _idle if not one.may_be_asked(environment)]
    _idle[:] = [one for one in _idle if one not in stale]
    for one in stale:
        one.end()


@atexit.register
def _end_asked() -> None:
    """End the processes that nobody waits for any more, as the interpreter ends."""
    for one in list(_asked):
        one.end()


@atexit.register
def end_all() -> None:
    """End the processes that nothing is asked of."""
    with _lock:
        for one in _idle:
            one.end()
        _idle.clear()


def _environment() -> dict[str, str]:
    """What processes start with."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    # A kernel from Triton's cache would come without what the assembler says of it.
    environment |= {"TRITON_ALWAYS_COMPILE": "1", "TRITON_DUMP_PTXAS_LOG": "1"}
    # The process has to find Tapestry where this one has.
    found = [str(Path(__file__).parents[2]), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, found))}

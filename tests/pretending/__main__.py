"""Runs a script, and what it starts, on a GPU that is pretended.

    python -m tests.pretending FOLDER benchmarks/gpu_check.py --small --output out

`sys.executable` is there a program that runs what it is given in the same way, so processes that a
script starts have the same GPU; those that compile kernels run as they are. Kernels that one
process compiled are known in FOLDER to the others. Times mean nothing, so next to nothing is timed.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLAIN = ("pytest", "tapestry.codegen.aot_worker")
"""Modules that are run without a GPU."""


def main(folder: Path, *given: str) -> None:
    """Run what Python is given: `-c` and code, `-m` and a module, or a script."""
    first, *rest = given
    if first == "-m" and rest[0] in PLAIN:
        os.execv(sys.executable, [sys.executable, *given])

    from tests.pretending.compiling import compiling
    from tests.pretending.cuda import pretended
    from tests.pretending.driver import PretendDriver

    folder.mkdir(parents=True, exist_ok=True)
    driver = PretendDriver.built(folder)
    with pretended(folder, driver) as driver, compiling(folder, driver):
        sys.executable = str(_python(folder))
        _time_little()
        try:
            if first == "-c":
                sys.argv = [first, *rest[1:]]
                _forget()
                code = compile(rest[0], "<string>", "exec")
                exec(code, {"__name__": "__main__"})  # noqa: S102 - what Python would do
            else:
                sys.argv = [first, *rest]
                sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
                runpy.run_path(first, run_name="__main__")
        finally:
            for problem in driver.problems:
                sys.stderr.write(f"the driver refused: {problem}\n")


def _python(folder: Path) -> Path:
    """A program that is called as Python is, and runs this file."""
    path = folder / "python"
    if not path.exists():
        own = f'exec "{sys.executable}" -m tests.pretending "{folder}" "$@"'
        partial = folder / f"python.{os.getpid()}"
        partial.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}:$PYTHONPATH"\n{own}\n')
        partial.chmod(0o755)
        partial.replace(path)
    return path


def _forget() -> None:
    """Make what was imported to pretend look as if it was not: code may say that it needs none."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("tapestry", "xdsl"):
            del sys.modules[name]


def _time_little() -> None:
    """Have timing run what it times as seldom as it can."""
    from tapestry.tuning import cuda

    few: dict[str, Any] = {"PAST_L2": 0, "LEAST": 1, "ENOUGH": 0.0, "WARM": 0.0}
    for name, value in {**few, "TOGETHER": 0.0, "MOST_CALLS": 1}.items():
        assert hasattr(cuda, name), name
        setattr(cuda, name, value)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])

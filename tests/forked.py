"""The tools of the textual tests, started as copies of a process that has imported them.

    loaded(subprocess)      # the module, but that `Popen` forks where it would start a tool

Importing what `tapestry-opt` needs takes longer than most tests do after it. So `lit` imports the
tools once; where it would start one, the child of the fork runs the tool's `main`, with the
arguments, folder, environment, standard input, output and exit code of a command of its own. All
else is started as ever, and so is everything where `lit` makes its workers otherwise.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any

TOOLS = {
    "tapestry-opt": "tapestry.tools.opt",
    "tapestry": "tapestry.tools.tapestry",
    "filecheck": "filecheck.main",
}
"""What is run by `main` of which module."""

PACKAGES = ("algebra", "dialects", "metakernels", "passes", "proving", "zspace")
"""What passes import when they run."""

_NOT_FLUSHED = 120
"""What interpreters exit with where what was printed goes nowhere."""

_FILES = 3
"""Standard input, output and errors; a child closes what else its parent has open."""


def loaded(subprocess: ModuleType) -> SimpleNamespace:
    """What stands for a module `subprocess`.

    A warning that xDSL will drop something is a failure of ours now, not of the next release.
    """
    warnings.filterwarnings("error", category=DeprecationWarning, module=r"tapestry\b")
    mains: dict[str, Callable[[], object]] = {
        str(Path(sys.executable).with_name(tool)): importlib.import_module(module).main
        for tool, module in TOOLS.items()
    }

    for package in PACKAGES:
        root = importlib.import_module(f"tapestry.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            importlib.import_module(module.name)

    def started(args: Sequence[str], **options: Any) -> Any:
        main = mains.get(str(options.get("executable")))
        if main is not None:
            # In the child, when its files and its folder are set; it never returns.
            options["preexec_fn"] = partial(_run, main, args, options["env"])
        return subprocess.Popen(args, **options)

    return SimpleNamespace(**{**vars(subprocess), "Popen": started})


def _run(main: Callable[[], object], args: Sequence[str], environment: Mapping[str, str]) -> None:
    """Be a tool, to the end of this process."""
    code = 1
    try:
        # One of them is what the parent waits at, until there is another program.
        os.closerange(_FILES, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as interpreters do when they start
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = list(args)
        sys.stdin, sys.stdout, sys.stderr = map(_opened, range(_FILES), "rww")
        code = _code(main)
        for file in (sys.stdout, sys.stderr):
            try:
                file.flush()
            except OSError as error:
                print(f"Exception ignored in {file.name}: {error!r}", file=sys.stderr, flush=True)
                code = _NOT_FLUSHED
    finally:
        os._exit(code)


def _code(main: Callable[[], object]) -> int:
    """What a tool exits with, as an interpreter says."""
    try:
        main()
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as an interpreter does with what nobody caught
        traceback.print_exc()
        return 1
    return 0


def _opened(file: int, mode: str) -> IO[str]:
    return open(file, mode, encoding="utf-8", closefd=False)

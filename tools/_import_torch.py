"""`tapestry import torch package.module:function`: find the function, call it, import the model.

    def make():
        return MLP().eval(), (torch.zeros(8, 64),)      # and {"mask": ...}, if it takes one by name

What goes wrong in the user's module is said with its file and line.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, cast

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.files import check_writable
from tapestry.saving import save_module


def import_model(factory: str, output: Path, *, strict: bool) -> None:
    """Write the program of the model that `factory` makes, and say what of it is native."""
    check_writable(output)
    try:
        from tapestry.importers.torch.exporting import exported_program
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UsageError("PyTorch is not installed", hint="pip install 'tapestry[torch]'") from None
    made = _called(_found(factory), factory)
    model, inputs, keywords = _call_of(made, factory)
    with warnings.catch_warnings(), _without_logs_of_torch(), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")  # PyTorch's, about itself
        program = exported_program(model, inputs, keywords, strict=strict)
    save_module(program.module, output)
    sys.stdout.write(f"{program.coverage}\n")


@contextmanager
def _without_logs_of_torch() -> Generator[None]:
    """Nothing but the error is said of what PyTorch cannot export: not its traceback and graph."""
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict]
    ours = [one for one in loggers if one.name.split(".")[0] == "torch"]
    handlers = {handler for one in ours for handler in one.handlers}
    for handler in handlers:
        handler.addFilter(_nothing)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


def _call_of(made: object, factory: str) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    """The model, its inputs, and those that are given by name."""
    parts: list[Any] = list(cast("tuple[object, ...]", made)) if isinstance(made, tuple) else []
    kinds = [tuple | list, dict][: len(parts) - 1]
    if len(parts) not in (2, 3) or not all(map(isinstance, parts[1:], kinds)):
        raise UsageError(
            f"{factory} returns {type(cast(object, made)).__name__}",
            hint="it has to return a model and a tuple of example inputs, "
            "and a dictionary of those that are given by name, if there are some",
        )
    return parts[0], parts[1], parts[2] if len(parts) == 3 else {}


def _found(factory: str) -> Callable[[], object]:
    """The function that `package.module:function` names."""
    name, colon, attribute = factory.partition(":")
    if not colon or not name or not attribute.isidentifier():
        raise UsageError(
            f"{factory!r} is no function", hint="it is written package.module:function"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.split(".")[0] == error.name.split(".")[0]:
            raise UsageError(f"there is no module {error.name}", hint=f"looked in {here}") from None
        raise _failed(error, f"importing {name}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's module may raise anything
        raise _failed(error, f"importing {name}") from None
    function = getattr(module, attribute, None)
    if not callable(function):
        raise UsageError(f"{name} has no function {attribute}")
    return cast("Callable[[], object]", function)


def _called(function: Callable[[], object], factory: str) -> object:
    try:
        return function()
    except (Exception, SystemExit) as error:  # noqa: BLE001
        raise _failed(error, f"calling {factory}") from None


def _failed(error: BaseException, doing: str) -> InvalidProgramError:
    """What the user's own code raised, at the innermost line of it that is not a library's.

    Without such a line there is no place: the call itself is wrong.
    """
    from tapestry.importers.torch.exporting import raised_at

    place = raised_at(error)
    text = (str(error).splitlines() or [""])[0]
    message = f"{doing} raised {type(error).__name__}{text and f': {text}'}"
    hint = None if place else "it is called without arguments, and returns a model and its inputs"
    return InvalidProgramError(message, location=place, hint=hint)

"""How the commands of `tapestry` end: with one message on stderr, and an exit code."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

import typer

if TYPE_CHECKING:
    from tapestry.diagnostics import TapestryError

P = ParamSpec("P")


def exits(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the errors of a command into one message on stderr and an exit code."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            from xdsl.utils.exceptions import DiagnosticException, ParseError

            from tapestry.diagnostics import TapestryError, UsageError
            from tapestry.frontend import describe_error, issues_json_text

            try:
                try:
                    command(*args, **kwargs)
                except (MemoryError, OSError) as error:
                    raise of_machine(error) from None
            except (TapestryError, ParseError, DiagnosticException) as error:
                describe = issues_json_text if kwargs.get("issues_json") else describe_error
                typer.echo(describe(error), err=True)
                raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None

    return guarded


def of_machine(error: MemoryError | OSError) -> TapestryError:
    """What the machine does not do, as an error to show: a file, or too little memory.

    A reader of stdout that has left is raised again: that is no mistake of anyone's.
    """
    from tapestry.diagnostics import TapestryError, UsageError

    said = (str(error).splitlines() or [""])[0]
    if isinstance(error, MemoryError):
        return TapestryError(
            f"there is not enough memory{f': {said}' if said else ''}",
            hint="`tapestry inspect` says what a program stores",
        )
    if error.errno == errno.EPIPE:
        raise error
    if error.filename is None:
        return TapestryError(f"the output cannot be written: {error.strerror or said}")
    return UsageError(f"cannot open {error.filename}: {error.strerror or said}")

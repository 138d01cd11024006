"""How the commands of `tapestry` end: with one message on stderr, and an exit code."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

P = ParamSpec("P")


def exits(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the errors of a command into one message on stderr and an exit code."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        from xdsl.utils.exceptions import DiagnosticException, ParseError

        from tapestry.diagnostics import TapestryError, UsageError
        from tapestry.frontend import describe_error, issues_json_text

        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None
        except (TapestryError, ParseError, DiagnosticException) as error:
            describe = issues_json_text if kwargs.get("issues_json") else describe_error
            typer.echo(describe(error), err=True)
            raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None

    return guarded

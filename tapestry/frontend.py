"""Reading, checking and transforming programs, with errors that say where.

    module = load_module(Path("model.mlir"))
    run_pipeline(module, "weft-apply,loom-simplify,loom-shard{shards=4}")

Whatever is wrong with the text, the program or the pipeline is raised as a `TapestryError` with
file, line and column; `describe_error` makes the one message that a tool prints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from logging import INFO, Logger
from pathlib import Path
from time import perf_counter
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ModuleOp,
)
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.exceptions import (
    DiagnosticException,
    ParseError,
)
from xdsl.utils.lexer import Input

from tapestry.diagnostics import InvalidProgramError, Location, TapestryError, UsageError
from tapestry.issues import BrokenRulesError, Issue, issues_of
from tapestry.logs import channel
from tapestry.parsing import SourceParser
from tapestry.pipelines import make_pass, nearest, pass_specs
from tapestry.syntax_errors import explained
from tapestry.verification import UNREADABLE, check_module, find_issues
from tapestry.zspace import ZSpaceError


class ProgramSyntaxError(TapestryError):
    """Text that is not a program."""

    kind = "syntax"


def make_context() -> Context:
    """A context that knows xDSL's dialects and Tapestry's."""
    ctx = Context()
    for name, dialect in installed_universe().all_dialects.items():
        ctx.register_dialect(name, dialect)
    return ctx


def installed_universe() -> Universe:
    """All that is installed, and Tapestry itself when it runs from a checkout."""
    from tapestry.universe import TAPESTRY_UNIVERSE

    found = Universe.get_multiverse()
    if "loom" in found.all_dialects:
        return found
    return Universe(
        all_dialects=found.all_dialects | TAPESTRY_UNIVERSE.all_dialects,
        all_passes=found.all_passes | TAPESTRY_UNIVERSE.all_passes,
        all_targets=found.all_targets | TAPESTRY_UNIVERSE.all_targets,
    )


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass by name, loaded when called."""
    return installed_universe().all_passes


def parse_text(
    text: str,
    name: str = "<text>",
    *,
    ctx: Context | None = None,
    line_offset: int = 0,
    implicit_module: bool = True,
) -> ModuleOp:
    """The module that `text` says; it is not verified yet.

    Raises xDSL's `ParseError`, which knows the span, for text that is not a program.
    """
    parser = SourceParser(ctx or make_context(), text, name, line_offset)
    try:
        return parser.parse_module(implicit_module)
    except ParseError:
        raise
    except RecursionError:
        message = "the program nests too deeply; regions may nest about 100 deep"
        raise ProgramSyntaxError(message, location=Location(name, 1, 1)) from None
    except (DiagnosticException, ArithmeticError, *UNREADABLE) as error:
        # xDSL raises these from inside constructors and for odd tokens; the text is at fault.
        position = parser.pos
        content: Input[str] = parser.lexer.input
        line = content.content.count("\n", 0, position) + 1 + line_offset
        column = position - content.content.rfind("\n", 0, position)
        detail = str(error) or type(error).__name__
        raise ProgramSyntaxError(detail, location=Location(name, line, column)) from error


def read_source(path: Path) -> str:
    """The text of a program file, or one clear error."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path} is not text: byte {error.start} is not UTF-8"
        raise ProgramSyntaxError(message, location=Location(str(path), 1, 1)) from None


def read_bytes(path: Path) -> bytes:
    """What is in a file; UsageError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def parse_module(text: str, name: str = "<text>", *, ctx: Context | None = None) -> ModuleOp:
    """The verified module that `text` says; `name` stands for a file in its locations."""
    module = parse_text(text, name, ctx=ctx)
    verify_module(module)
    return module


def load_module(path: Path | str) -> ModuleOp:
    """The verified module in a file: IR of Tapestry, or StableHLO, which is imported."""
    imported = import_bytes(read_bytes(Path(path)), str(path))
    return parse_module(read_source(Path(path)), str(path)) if imported is None else imported


def import_bytes(raw: bytes, name: str) -> ModuleOp | None:
    """The module of a program that is not Tapestry's own IR but can be imported; None of others."""
    from tapestry.importers.stablehlo import is_stablehlo, load

    return load(raw, name) if is_stablehlo(raw) else None


def verify_module(module: ModuleOp) -> None:
    """Check every rule of every dialect; BrokenRulesError lists all that is wrong, with places."""
    with located_errors(module):
        check_module(module)


@contextmanager
def located_errors(module: ModuleOp) -> Generator[None]:
    """Give errors of verification and of passes the place of the operation at fault."""
    try:
        yield
    except TapestryError:
        raise
    except RecursionError:
        message = "the program nests too deeply; regions may nest about 100 deep"
        raise InvalidProgramError(message) from None
    except (DiagnosticException, ZSpaceError) as error:
        raise _locate(module, error) from error


def _locate(module: ModuleOp, error: Exception) -> TapestryError:
    issues = find_issues(module)
    return BrokenRulesError(issues) if issues else InvalidProgramError(_first_message(error))


def syntax_error(error: ParseError) -> ProgramSyntaxError:
    """An error of xDSL's parser as one of ours."""
    said = explained(error, _operations)
    return ProgramSyntaxError(said.message, location=said.location, hint=said.hint)


def _operations(dialect: str) -> list[str]:
    """The names of a dialect's operations; those of other dialects where there is none."""
    known = installed_universe().all_dialects
    names = [dialect] if dialect in known else ["func", "arith", "math", "loom", "weft", "triton"]
    return [op.name for name in names for op in known[name]().operations]


def _first_message(error: BaseException) -> str:
    """The message without xDSL's preamble, which repeats the operation's name and text."""
    text = str(error)
    marker = "Operation does not verify: "
    return text.split(marker, 1)[1] if marker in text else text


def parse_passes(spec: str) -> tuple[ModulePass, ...]:
    """The passes that a pipeline text names, with their options.

    `default` stands for the passes of `tapestry.pipelines.DEFAULT_PIPELINE`. Raises UsageError for
    an unknown pass or option and for a value of the wrong type.
    """
    known = available_passes()
    passes: list[ModulePass] = []
    for entry in pass_specs(spec):
        if entry.name not in known:
            raise UsageError(
                f"there is no pass {entry.name!r}",
                hint=nearest(entry.name, ["default", *known])
                or "`tapestry-opt --help` lists the passes",
            )
        passes.append(make_pass(known[entry.name](), entry))
    return tuple(passes)


class Steps(Protocol):
    """Is shown a module before the first pass of a pipeline, and after each."""

    def module(self, name: str, module: ModuleOp) -> None: ...


def run_pipeline(
    module: ModuleOp,
    spec: str,
    *,
    ctx: Context | None = None,
    dump: Steps | None = None,
    verify_each: bool = True,
) -> None:
    """Apply a pipeline to a verified module, verifying after each pass, or after the last alone.

    `dump` is shown every step; the channel `passes` of `tapestry.logs` says what each pass did.
    """
    passes = parse_passes(spec)
    ctx = ctx or make_context()
    log = channel("passes")
    with located_errors(module):
        if dump is not None:
            dump.module("program", module)
        for one in passes:
            before, started = _count(module, log), perf_counter()
            one.apply(ctx, module)
            if verify_each or one is passes[-1]:
                verify_module(module)
            log.info(
                "%s: %d -> %d operations in %.1f ms",
                one.name,
                before,
                _count(module, log),
                1000 * (perf_counter() - started),
            )
            if dump is not None:
                dump.module(one.name, module)


def _count(module: ModuleOp, log: Logger) -> int:
    """The operations at the top of functions, where somebody wants to know."""
    if not log.isEnabledFor(INFO):
        return 0
    functions = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    return sum(1 for function in functions for block in function.body.blocks for _ in block.ops)


def issues_json_text(*errors: BaseException) -> str:
    """The JSON list that a tool prints for tools, where `describe_error` is for people."""
    issues = [issue for error in errors for issue in _issues_in(error)]
    return json.dumps([issue.to_json() for issue in issues], indent=2)


def _issues_in(error: BaseException) -> tuple[Issue, ...]:
    match error:
        case ParseError():
            said = explained(error, _operations)
            message = f"{said.message} ({said.hint})" if said.hint else said.message
            return (Issue("syntax", message, None, said.location, {}),)
        case TapestryError():
            return issues_of(error)
        case _:
            return (Issue("invalid_program", _first_message(error), None, None, {}),)


def describe_error(error: BaseException) -> str:
    """The one message that a tool prints for an error a user can act on."""
    match error:
        case ParseError():
            said = explained(error, _operations)
            hint = "" if said.hint is None else f"\n  hint: {said.hint}"
            return f"{said.location}: error: {said.message}\n{said.shown}".rstrip() + hint
        case TapestryError():
            return str(error)
        case _:
            return f"error: {_first_message(error)}"

"""Whatever text is given to `tapestry-opt`, it ends with a program or with a message.

Programs of this repository, in both forms, are mutated and then parsed, verified, rewritten and
printed. No mutant may end in a traceback or run for long. A failure names the seed that makes it.
"""

from __future__ import annotations

import io
import json
import random
import re
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType

import pytest
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException, ParseError

from tapestry.frontend import (
    describe_error,
    issues_json_text,
    make_context,
    parse_text,
    run_pipeline,
    verify_module,
)
from tests.fuzzing.mutations import TOKEN, mutate

ROOT = Path(__file__).parents[2]
SECONDS = 10
PIPELINES = (
    "loom-simplify",
    "weft-apply,loom-simplify,loom-fuse",
    "loom-shard{shards=3},loom-expand-shards",
)
CHUNK = 50


class TooLongError(BaseException):
    """A mutant that ran for longer than `SECONDS`."""


@contextmanager
def limited() -> Generator[None]:
    """Raise TooLongError where the body computes for longer than `SECONDS`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(text: str, pipeline: str) -> str | None:
    """What `tapestry-opt -p pipeline` says about a text; None when it is a right program."""
    try:
        module = parse_text(text, "mutant.mlir", ctx=make_context())
        verify_module(module)
        run_pipeline(module, pipeline)
        Printer(stream=io.StringIO()).print_op(module)
    except (ParseError, DiagnosticException) as error:
        return describe_error(error) if json.loads(issues_json_text(error)) else ""
    return None


@lru_cache
def programs() -> tuple[str, ...]:
    """Every textual program of the repository, in its own form and the generic one."""
    found: list[str] = []
    for folder in ("lit_tests", "examples"):
        for path in sorted((ROOT / folder).rglob("*.mlir")):
            for case in path.read_text().split("// -----"):
                text = re.sub(r"^\s*//.*\n", "", case, flags=re.MULTILINE)
                if len(text) < 6000:
                    found.append(text)
                    found += generic(text)
    return tuple(found)


def generic(text: str) -> list[str]:
    """The generic form of a right program."""
    try:
        module = parse_text(text)
        verify_module(module)
    except (ParseError, DiagnosticException):
        return []
    stream = io.StringIO()
    Printer(stream=stream, print_generic_format=True).print_op(module)
    return [stream.getvalue()]


@lru_cache
def pool() -> tuple[str, ...]:
    """Tokens of all programs."""
    return tuple(sorted({token for text in programs() for token in TOKEN.findall(text)}))


def check(seed: int) -> None:
    """One mutant ends with a program or a message."""
    rng = random.Random(seed)
    text = mutate(rng, rng.choice(programs()), pool())
    pipeline = rng.choice(PIPELINES)
    try:
        with limited():
            message = run(text, pipeline)
    except BaseException as error:
        error.add_note(f"seed {seed}, -p {pipeline}:\n{text}")
        raise
    assert message is None or message.strip(), seed


@pytest.mark.parametrize("chunk", range(6))
def test_mutants_end_with_a_program_or_a_message(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(6, 400))
def test_many_mutants(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(seed)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "func.func @f() {" * 2000,
        '"builtin.module"() ({' * 300 + "}) : () -> ()" * 300,
        "func.func @f() attributes {a = " + "[" * 3000 + "]" * 3000 + "} { func.return }",
        "!a = " + "tuple<" * 500 + "f32" + ">" * 500,
    ],
    ids=["parentheses", "functions", "modules", "lists", "types"],
)
def test_deep_nesting_is_one_message(text: str) -> None:
    with limited():
        message = run(text, "loom-simplify")
    assert message is None or "error" in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            """func.func @main(%x: !loom.tensor<[0] : [4], i64>) -> !loom.tensor<[0] : [4], i1> {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%a: i64) {
      %p = "arith.cmpi"(%a, %a) <{predicate = NUMBER : i64}> : (i64, i64) -> i1
      loom.yield %p : i1
    } : (!loom.tensor<[0] : [4], i64>) -> !loom.tensor<[0] : [4], i1>
  func.return %y : !loom.tensor<[0] : [4], i1>
}""".replace("NUMBER", number),
            f"wrap compares by predicate {number}; those of arith.cmpi are 0 to 9",
        )
        for number in ("10", "-1")
    ]
    + [('"test.op"() {a = array<i323>} : () -> ()', "Format not implemented for i323")],
    ids=["predicate", "negative predicate", "width"],
)
def test_what_mutants_found(text: str, says: str) -> None:
    message = run(text, "loom-simplify")
    assert message is not None
    assert says in message

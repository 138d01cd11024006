"""Programs changed in one place: what `tapestry equal` calls equal must give equal numbers.

    >>> change(Random(3), "%2 = arith.addf %0, %1 : f32").what
    'addf is subf'

Random graphs, small and at sizes that are reduced to be compared, are changed as text: a number, a
name, an operation, a predicate, an iterator, a monoid. What no longer verifies is drawn again. What
is said to be equal runs at full size on inputs of several scales.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from tapestry.diagnostics import TapestryError
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.proving.equality import compare_programs
from tapestry.proving.pair import Options
from tapestry.proving.report import describe
from tapestry.proving.stages import work_of
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tests.passes.graphs import ROUNDING, Graph, Value
from tests.passes.random_graphs import random_graph

ALIKE = (
    "arith.addf arith.subf arith.mulf arith.divf arith.maximumf arith.minimumf arith.maxnumf",
    "arith.addi arith.subi arith.muli arith.maxsi arith.minsi arith.andi arith.ori arith.xori",
    "math.exp math.exp2 math.log math.tanh math.erf math.sqrt math.absf arith.negf math.floor",
    "arith.divsi arith.floordivsi arith.remsi arith.ceildivsi",
    "oeq one olt ole ogt oge ult uge",
    "eq ne slt sle sgt sge ult uge",
    "map fold scan",
    "@add @mul @max @min @and @or",
    "@argmax @argmin",
)
"""Words that may stand for one another."""

PIPELINES = ("", "", "loom-simplify", "loom-simplify,loom-fuse", "default", "loom-shard{shards=3}")

_LARGEST = 60_000
"""Points up to which the reference executor runs both programs; the numpy executor above."""

_TRIES = 60

_TYPE = r"!loom\.\w+<[^>]*>"
_NUMBER = r"(?<![\w.%@#])-?\d+(?:\.\d+(?:e[+-]?\d+)?)?(?![\w.])"
_WORDS = {word: group.split() for group in ALIKE for word in group.split()}
_PLACES = {
    "number": re.compile(f"(?P<skip>{_TYPE})|(?P<token>{_NUMBER})"),
    "name": re.compile(rf"(?P<skip>{_TYPE})|(?P<token>(?<=[\s(])%[\w.]+(?! =)\b)"),
    "dimension": re.compile(rf"(?P<skip>{_TYPE})|(?P<token>\bd\d\b)"),
    "word": re.compile(rf"(?<![\w.])(?P<token>{'|'.join(map(re.escape, _WORDS))})(?![\w.])"),
}


class Change(NamedTuple):
    """A text with a change, and what it was."""

    text: str
    what: str


def change(rng: Random, text: str) -> Change:
    """Change a text in one place, whatever it then means."""
    found: list[re.Match[str]] = []
    while not found:
        kind = rng.choice(["number", "number", "name", "name", "dimension", "word", "word"])
        found = [m for m in _PLACES[kind].finditer(text) if m["token"]]
    place = rng.choice(found)
    old = place["token"]
    match kind:
        case "number":
            value = float(old) if "." in old else int(old)
            new = str(rng.choice([value + 1, value - 1, -value, value * 2]))
        case "word":
            new = rng.choice([word for word in _WORDS[old] if word != old])
        case _:
            near = text[max(0, place.start() - 600) : place.end() + 200]
            new = rng.choice([m["token"] for m in _PLACES[kind].finditer(near) if m["token"]])
    changed = f"{text[: place.start()]}{new}{text[place.end() :]}"
    start = max(text.rfind("\n", 0, place.start()), place.start() - 80)
    return Change(changed, f"{old} is {new} in {text[start : place.end() + 40].strip()!r}")


def check(seed: int) -> str:
    """How the mistake was seen; raises where it was called equal, and is not."""
    random = Random(seed)
    graph = random_graph(random, 4, random.choice([1, 1, 3, 6, 12]))
    right = parse_text(graph.text)
    run_pipeline(right, "weft-apply")
    base = right.clone()
    run_pipeline(base, random.choice(PIPELINES))
    text = str(base)
    head = text.index("func.func @main")
    for _ in range(_TRIES):
        mutant = change(random, text)
        if mutant.text == text or mutant.text[head : head + 15] != text[head : head + 15]:
            continue
        wrong = _verified(mutant.text)
        if wrong is not None:
            break
    else:
        return "nothing to change"
    verdict = compare_programs(right, wrong, Options(seeds=1, shrinking=0))
    if verdict.answer == "differs":
        return "seen"
    if verdict.answer == "undecided":
        return f"undecided: {verdict.reason[:80]}"
    parted = _parted(graph, right, wrong, random)
    if parted is None:
        return "no mistake"
    if any(note.startswith("not sampled") for note in verdict.notes):
        return "missed, but said that it was not sampled"
    report = "\n".join([mutant.what, parted, *describe(verdict), "", text, "", mutant.text])
    raise AssertionError(f"missed: {report}")


def _verified(text: str) -> ModuleOp | None:
    try:
        module = parse_text(text)
        verify_module(module)
    except (ParseError, DiagnosticException):
        return None
    return module


def _parted(graph: Graph, right: ModuleOp, wrong: ModuleOp, random: Random) -> str | None:
    """The first output that is another at full size; None where all are the same."""
    large = max(work_of(right), work_of(wrong)) > _LARGEST
    run = find_executor("numpy" if large else "reference").run
    for scale in (None, 1.0, 4.0, 0.1):
        given = _inputs(graph, scale, random)
        try:
            want, got = (run(m, given, NoWatch()).outputs for m in (right, wrong))
        except TapestryError as error:
            return f"on inputs of scale {scale}: {error.message}"
        for value, x, y in zip(graph.outputs, want, got, strict=True):
            if not _agree(value, x, y):
                where = np.argwhere(~np.isclose(x.astype(float), y.astype(float), equal_nan=True))
                cell = tuple(where[0]) if len(where) else ()
                return f"%{value.name}{list(cell)}: {x[cell]} is {y[cell]}, inputs of scale {scale}"
    return None


def _inputs(graph: Graph, scale: float | None, random: Random) -> Mapping[str, Array]:
    """The graph's own inputs, or floats of another size and integers in the range of its own."""
    if scale is None:
        return graph.inputs
    rng = np.random.default_rng(random.randrange(1 << 30))
    made: dict[str, Array] = {}
    for name, own in graph.inputs.items():
        if own.dtype.kind in "iub":
            low, high = int(own.min(initial=0)), int(own.max(initial=0))
            made[name] = rng.integers(low, high + 1, own.shape).astype(own.dtype)
        else:
            made[name] = (rng.normal(size=own.shape) * scale).astype(own.dtype)
    return made


def _agree(value: Value, x: Array, y: Array) -> bool:
    if not value.is_float:
        return np.array_equal(x, y)
    x, y = x.astype(np.float64), y.astype(np.float64)
    if not (np.isfinite(x) == np.isfinite(y)).all():
        return True  # it overflows in its own type, which says nothing of the reals
    size = float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0))
    near = 8 * value.error + 100 * ROUNDING[value.dtype] * size
    return np.allclose(x, y, rtol=0, atol=near, equal_nan=True)

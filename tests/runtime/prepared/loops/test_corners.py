"""Programs of loops on what is hard: special values, inputs that lie anywhere or on each other.

Operations are those whose result does not depend on an order, so that every bit counts, NaN aside:
a wrong one is memory that was written too early, or read at the wrong place. Inputs stay as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tests.runtime.prepared.loops.test_loops import _placed

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

DTYPES = {"f32": "f4", "f64": "f8", "i32": "i4", "i8": "i1", "i1": "?"}

MAPS = {
    "f": ("addf", "subf", "mulf", "maximumf", "minimumf", "maxnumf", "divf"),
    "i": ("addi", "subi", "muli", "maxsi", "minsi", "andi", "xori", "divsi", "shli"),
    "b": ("andi", "ori", "xori"),
}

FOLDS = {
    "f": {"maximumf": "0xFF800000", "minimumf": "0x7F800000"},
    "i": {"addi": "0", "muli": "1", "xori": "0", "andi": "-1"},
    "b": {"andi": "true", "ori": "false", "xori": "false"},
}

_POWER = """%low = arith.constant -8.0 : {kind}
%high = arith.constant 8.0 : {kind}
%up = arith.maximumf {made}, %low : {kind}
%within = arith.minimumf %up, %high : {kind}
%whole = math.floor %within : {kind}
%power = math.exp2 %whole : {kind}"""


@dataclass
class Corner:
    """A program under construction: values are whole `(n, m)`, rows `(m)`, or columns `(n)`."""

    random: Random
    kind: str
    n: int
    m: int
    lines: list[str] = field(default_factory=list[str])
    values: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Names and forms."""

    def type(self, form: str) -> str:
        extents = {"whole": f"{self.n}, {self.m}", "row": f"{self.m}", "column": f"{self.n}"}[form]
        starts = "0, 0" if form == "whole" else "0"
        return f"!loom.tensor<[{starts}] : [{extents}], {self.kind}>"

    @property
    def group(self) -> str:
        return "b" if self.kind == "i1" else self.kind[0]

    def read(self, form: str) -> str:
        """Where a value is read, at (i, j): along, or backwards."""
        i = self.random.choice(["i", "i", "i", f"-i + {self.n - 1}"])
        j = self.random.choice(["j", "j", "j", f"-j + {self.m - 1}"])
        return {"whole": f"{i}, {j}", "row": j, "column": i}[form]

    def operation(self, number: int) -> None:
        """A map or a fold over all points, or a map of rows or columns; of late values most."""
        random, kind = self.random, self.kind
        late = self.values[-2:] if random.random() < 0.7 else self.values
        given = [random.choice(some) for some in (late, self.values)][: random.randint(1, 2)]
        style = random.choice(["whole", "whole", "row", "column"])
        forms = {form for _, form in given}
        if len(forms) == 1 and "whole" not in forms and random.random() < 0.7:
            # Along what it is the same: a map of lines, or a fold that gives what lies like them.
            style = random.choice(["line", *forms])
        form = forms.pop() if style == "line" else style
        over, names, kinds = {
            "whole": (f"[0, 0] : [{self.n}, {self.m}]", "i, j", "map, map"),
            "row": (f"[0, 0] : [{self.n}, {self.m}]", "i, j", "fold, map"),
            "column": (f"[0, 0] : [{self.n}, {self.m}]", "i, j", "map, fold"),
            "line": (f"[0] : [{self.m if form == 'row' else self.n}]", "k", "map"),
        }[style]
        reads = [self.read(f) if style != "line" else "k" for _, f in given]
        ins = ", ".join(
            f"%{v} : ({names}) -> ({r})" for (v, _), r in zip(given, reads, strict=True)
        )
        cells = [f"%a{k}" for k in range(len(given))]
        first, second = random.sample(MAPS[self.group], 2)
        body = [
            f"%b0 = arith.{first} {cells[0]}, {cells[-1]} : {kind}",
            f"%b1 = arith.{second} %b0, {cells[0]} : {kind}",
        ]
        made = random.choice([cells[0], "%b0", "%b1"])
        if self.group == "f" and random.random() < 0.5:
            # No loop does this, and it is exact: what follows is on memory that others know of.
            body += _POWER.format(made=made, kind=kind).split("\n")
            made = "%power"
        by = f" by @{random.choice(list(FOLDS[self.group]))}" if "fold" in kinds else ""
        arguments = ", ".join(f"{cell}: {kind}" for cell in cells)
        types = ", ".join(self.type(f) for _, f in given)
        self.lines.append(
            f"  %v{number} = loom.operation @op{number} over <{over}> [{kinds}]{by}\n"
            f"    ins({ins}) outs({'(i, j) -> (i, j)' if style == 'whole' else '(i) -> (i)'})\n"
            f"    wrap ({arguments}) {{ {'  '.join(body)}  loom.yield {made} : {kind} }}"
            f" : ({types}) -> {self.type(form)}"
        )
        self.values.append((f"v{number}", form))

    def text(self) -> str:
        monoids = [self.monoid(name) for name in FOLDS[self.group]]
        forms = [("x0", "whole"), ("x1", "whole"), ("x2", "row"), ("x3", "column")]
        self.values += forms
        for number in range(self.random.randint(2, 7)):
            self.operation(number)
        results = self.values[len(forms) :][-3:]
        types = ", ".join(self.type(form) for _, form in results)
        given = ", ".join(f"%{name}: {self.type(form)}" for name, form in forms)
        returned = ", ".join(f"%{name}" for name, _ in results)
        head = f"func.func @main({given}) -> ({types}) {{"
        end = f"  func.return {returned} : {types}"
        return "\n".join([*monoids, head, *self.lines, end, "}"])

    def monoid(self, name: str) -> str:
        zero, kind = FOLDS[self.group][name], self.kind
        if kind == "f64":  # written by its bits
            zero = {"0xF": "0xFFF", "0x7": "0x7FF"}[zero[:3]] + 13 * "0"
        typed = zero if kind == "i1" else f"{zero} : {kind}"
        merge = f"%c = arith.{name} %a, %b : {kind}  loom.yield %c : {kind}"
        head = f"loom.monoid @{name} commutative zero [{typed}]"
        return f"{head} merge (%a: {kind}, %b: {kind}) {{ {merge} }}"


def _cells(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    dtype = np.dtype(DTYPES[kind])
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        some = [0, 1, -1, 2, 7, limits.min, limits.max, 8 * dtype.itemsize]
        return random.choice(np.array(some, dtype), shape)
    some = [0.0, -0.0, 1.0, -1.0, 1.5, 3e38, 1e-40, np.inf, -np.inf, np.nan]
    odds = np.array([4, 4, 9, 9, 9, 2, 2, 1, 1, random.integers(2)], float)
    return random.choice(np.array(some, dtype), shape, p=odds / odds.sum())


def _inputs(corner: Corner, how: int, random: np.random.Generator) -> list[Array]:
    """Arrays of any strides; some are the same memory, wholly or in part, and none may be written.

    7 is one base for all: windows of it that overlap, and one number all along an axis.
    """
    n, m = corner.n, corner.m
    shapes = [(n, m), (n, m), (m,), (n,)]
    if how == 7:
        base = _cells(corner.kind, (n + 1, m + 1), random)
        found: Sequence[Array] = [
            base[:n, :m],
            base[1:, 1:],
            base[0, :m],
            np.broadcast_to(base[1, :1], (n,)),
        ]
    elif how == 6:
        row = _cells(corner.kind, (m,), random)
        rows = np.broadcast_to(row, (n, m))
        found = [rows, rows[::-1, ::-1], row, _cells(corner.kind, (n,), random)]
    elif how == 5:
        one = _cells(corner.kind, (n, m), random)
        found = [one, one, one[0] if n else _cells(corner.kind, (m,), random), one[:, 0]]
    else:
        found = [_placed(_cells(corner.kind, shape, random), how) for shape in shapes]
    for array in found:
        array.flags.writeable = False
    return list(found)


_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=30, deadline=None, suppress_health_check=_CHECKS)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(DTYPES)),
    extents=st.tuples(st.sampled_from([1, 2, 5, 34]), st.sampled_from([1, 3, 32, 37, 70])),
    how=st.integers(0, 7),
    pipeline=st.sampled_from(["", "loom-simplify,loom-fuse,loom-group"]),
    cache=st.sampled_from([1, 300, 4096]),
    threads=st.integers(0, 2),
)
def test_any_corner(
    seed: int,
    kind: str,
    extents: tuple[int, int],
    how: int,
    pipeline: str,
    cache: int,
    threads: int,
) -> None:
    corner = Corner(Random(seed), kind, *extents)
    text = corner.text()
    inputs = _inputs(corner, how, np.random.default_rng(seed))
    before = [array.tobytes() for array in inputs]
    naive, module = parse_text(text), parse_text(text)
    named = {f"x{k}": array.copy() for k, array in enumerate(inputs)}
    wants = find_executor("reference").run(naive, named, NoWatch()).outputs
    if pipeline:
        run_pipeline(module, pipeline)
    parts = partial(in_parts, small=0, threads=threads, cache=cache, loops=Loops(0))
    library = Library(loops=Loops(0))
    prepared = PreparedProgram(module, library, parts if threads else None)
    for _ in range(2):
        for got, want in zip(prepared(inputs), wants, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got, want)
            if want.dtype.kind == "f":
                missing = np.isnan(want)
                np.testing.assert_array_equal(np.signbit(got) | missing, np.signbit(want) | missing)
        assert [array.tobytes() for array in inputs] == before

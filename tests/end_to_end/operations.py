"""Random programs of raw loom operations: what no metakernel would write, all features mixed.

Maps, folds and scans read through random affine projections, some past the edges of their tensors
(clip), some points outside a domain; between them stand views, reshapes, assemblies, constants and
random numbers. Values are small whole numbers, so that float sums are exact in any order and every
executor must give the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from math import prod
from random import Random

import numpy as np

Shape = tuple[int, ...]

LIMIT = 8
"""Bodies clamp what they read to +-LIMIT."""

_MONOIDS = ("add", "max", "min")

_ONLINE = """
loom.monoid @online commutative zero [0xFF800000 : f32, 0.0 : f32]
  merge (%m0: f32, %o0: f32, %m1: f32, %o1: f32) {
    %m = arith.maximumf %m0, %m1 : f32
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.cmpf oeq, %m, %low : f32
    %ref = arith.select %none, %zero, %m : f32
    %d0 = arith.subf %m0, %ref : f32
    %d1 = arith.subf %m1, %ref : f32
    %a0 = math.exp2 %d0 : f32
    %a1 = math.exp2 %d1 : f32
    %x0 = arith.mulf %o0, %a0 : f32
    %x1 = arith.mulf %o1, %a1 : f32
    %o = arith.addf %x0, %x1 : f32
    loom.yield %m, %o : f32, f32
  }
"""
"""The greatest exponent, and a sum scaled by it: parts that vary along different dimensions."""


@dataclass(frozen=True)
class Value:
    """A tensor of f32 on a box."""

    name: str
    start: Shape
    shape: Shape

    @property
    def end(self) -> Shape:
        return tuple(s + n for s, n in zip(self.start, self.shape, strict=True))

    @property
    def type(self) -> str:
        return f"!loom.tensor<{list(self.start)} : {list(self.end)}, f32>"


@dataclass
class Program:
    """Text under construction."""

    random: Random
    values: list[Value] = field(default_factory=list[Value])
    arguments: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    names: count[int] = field(default_factory=count)

    def box(self, rank: int) -> tuple[Shape, Shape]:
        start = tuple(self.random.randint(-2, 3) for _ in range(rank))
        return start, tuple(self.random.randint(1, 5) for _ in range(rank))

    def add(self, start: Shape, shape: Shape, text: str) -> Value:
        (value,) = self.add_all([(start, shape)], text.replace("RESULT", "RESULTS"))
        return value

    def add_all(self, boxes: Sequence[tuple[Shape, Shape]], text: str) -> list[Value]:
        """An operation of several results, on boxes of starts and shapes."""
        values = [Value(f"%v{next(self.names)}", start, shape) for start, shape in boxes]
        kinds = ", ".join(value.type for value in values)
        names = ", ".join(value.name for value in values)
        results = f"({kinds})" if len(values) > 1 else kinds
        self.lines.append(f"  {names} = {text.replace('RESULTS', results)}")
        self.values += values
        return values

    @property
    def text(self) -> str:
        results = self.values[-2:]
        kinds = ", ".join(value.type for value in results)
        arguments = ", ".join(f"{value.name}: {value.type}" for value in self.arguments)
        returned = ", ".join(value.name for value in results)
        head = f"{_ONLINE}func.func @main({arguments}) -> ({kinds}) {{"
        return "\n".join([head, *self.lines, f"  func.return {returned} : {kinds}", "}"])

    def inputs(self) -> dict[str, np.ndarray]:
        seed = np.random.default_rng(self.random.randrange(1 << 30))
        return {
            value.name[1:]: seed.integers(-4, 5, value.shape).astype(np.float32)
            for value in self.arguments
        }


def random_program(seed: int, steps: int = 4) -> Program:
    """The program of a seed."""
    program = Program(Random(seed))
    for _ in range(2):
        start, shape = program.box(program.random.randint(1, 3))
        value = Value(f"%x{next(program.names)}", start, shape)
        program.arguments.append(value)
        program.values.append(value)
    for _ in range(steps):
        program.random.choice(_STEPS)(program)
    _operation(program)
    return program


def _constant(program: Program) -> None:
    start, shape = program.box(2)
    if program.random.random() < 0.5:
        program.add(start, shape, f"loom.constant {program.random.randint(-3, 3)} : RESULT")
        return
    rows = [
        [float(program.random.randint(-3, 3)) for _ in range(shape[1])] for _ in range(shape[0])
    ]
    program.add(start, shape, f"loom.constant {rows} : RESULT")


def _view(program: Program) -> None:
    source = program.random.choice(program.values)
    start, shape = program.box(program.random.randint(1, 3))
    rows = [_row(program, source, d, start, shape)[0] for d in range(len(source.shape))]
    dims = ", ".join(f"d{d}" for d in range(len(shape)))
    text = f"loom.view {source.name} : ({dims}) -> ({', '.join(rows)}) : {source.type} -> RESULT"
    program.add(start, shape, text)


def _reshape(program: Program) -> None:
    source = program.random.choice(program.values)
    cells = prod(source.shape)
    first = program.random.choice([n for n in range(1, cells + 1) if cells % n == 0])
    start = (program.random.randint(-2, 2), program.random.randint(-2, 2))
    program.add(
        start, (first, cells // first), f"loom.reshape {source.name} : {source.type} -> RESULT"
    )


def _assemble(program: Program) -> None:
    """A tensor and a piece of itself, one after the other."""
    source = program.random.choice([value for value in program.values if value.shape])
    axis = program.random.randrange(len(source.shape))
    start = list(source.start)
    start[axis] += source.shape[axis]
    dims = ", ".join(f"d{d}" for d in range(len(source.shape)))
    rows = [f"d{d}" for d in range(len(source.shape))]
    rows[axis] = f"d{axis} - {source.shape[axis]}"
    piece = program.add(
        tuple(start),
        source.shape,
        f"loom.view {source.name} : ({dims}) -> ({', '.join(rows)}) : {source.type} -> RESULT",
    )
    shape = list(source.shape)
    shape[axis] *= 2
    program.add(
        source.start,
        tuple(shape),
        f"loom.assemble {source.name}, {piece.name} : {source.type}, {piece.type} -> RESULT",
    )


def _row(
    program: Program, source: Value, dim: int, start: Shape, shape: Shape, *, clip: bool = False
) -> tuple[str, bool]:
    """A row that reads one dimension of `source`, and whether it may leave it."""
    low, high = source.start[dim], source.end[dim]
    fitting = [d for d in range(len(shape)) if shape[d] <= source.shape[dim]]
    if clip and program.random.random() < 0.6:
        d = program.random.randrange(len(shape))
        sign = program.random.choice(["", "-"])
        offset = program.random.randint(-3, 3) + (low if not sign else high)
        return f"{sign}d{d} + {offset}".replace("+ -", "- "), True
    if not fitting or program.random.random() < 0.2:
        return str(program.random.randrange(low, high)), False
    d = program.random.choice(fitting)
    room = source.shape[dim] - shape[d]
    place = program.random.randint(0, room)
    if program.random.random() < 0.3:
        # Backwards: the greatest coordinate reads `low + place`.
        offset = low + place + start[d] + shape[d] - 1
        return f"-d{d} + {offset}".replace("+ -", "- "), False
    offset = low + place - start[d]
    return f"d{d} + {offset}".replace("+ -", "- "), False


def _operation(program: Program) -> None:
    """A map, a fold or a scan of one to three tensors."""
    random = program.random
    rank = random.randint(1, 3)
    start, shape = program.box(rank)
    kinds = ["map"] * rank
    style = random.choice(["map", "fold", "fold", "scan"])
    if style == "scan":
        kinds[random.randrange(rank)] = "scan"
    elif style == "fold":
        for d in random.sample(range(rank), random.randint(1, rank)):
            kinds[d] = "fold"
    every = ", ".join(f"d{d}" for d in range(rank))
    reads: list[tuple[Value, str]] = []
    for source in random.choices(program.values, k=random.randint(1, 3)):
        rows = [_row(program, source, d, start, shape, clip=True) for d in range(len(source.shape))]
        text = f"{source.name} : ({every}) -> ({', '.join(row for row, _ in rows)})"
        if any(leaves for _, leaves in rows):
            text += f" clip {random.randint(-2, 2)}.0 : f32"
        reads.append((source, text))
    kept = [d for d in range(rank) if kinds[d] != "fold"]
    order = random.sample(range(len(kept)), len(kept))
    out_start: list[int] = []
    written: list[str] = []
    for k in order:
        shift = random.randint(-2, 2)
        out_start.append(start[kept[k]] + shift)
        written.append(f"d{k} + {shift}".replace("+ -", "- "))
    out_shape = tuple(shape[kept[k]] for k in order)
    end = [s + n for s, n in zip(start, shape, strict=True)]
    lines = [f"loom.operation @{style} over <{list(start)} : {end}> [{', '.join(kinds)}]"]
    if style != "map":
        lines[0] += f" by @{random.choice(_MONOIDS)}"
    lines.append(f"    ins({', '.join(text for _, text in reads)})")
    lines.append(
        f"    outs(({', '.join(f'd{k}' for k in range(len(kept)))}) -> ({', '.join(written)}))"
    )
    if style != "map" and rank > 1 and random.random() < 0.4:
        a, b = random.sample(range(rank), 2)
        lines.append(f"    domain(d{a} - d{b} + {random.randint(-2, 3)} >= 0)".replace("+ -", "- "))
    lines.append(_wrap(random, len(reads), rank))
    if style != "map" and random.random() < 0.5:
        lines.append(
            "    unwrap (%acc: f32) {\n      %n = arith.negf %acc : f32\n      "
            "loom.yield %n : f32\n    }"
        )
    kinds_text = ", ".join(value.type for value, _ in reads)
    lines.append(f"    : ({kinds_text}) -> RESULT")
    program.add(tuple(out_start), out_shape, "\n  ".join(lines))


def _states(program: Program) -> None:
    """A fold whose state has two parts, the first perhaps an output over its own dimensions."""
    random = program.random
    rank = random.randint(2, 4)
    start, shape = program.box(rank)
    kinds = ["map"] * rank
    for d in random.sample(range(rank), random.randint(1, rank - 1)):
        kinds[d] = "fold"
    every = ", ".join(f"d{d}" for d in range(rank))
    sources = random.choices(program.values, k=2)
    reads: list[str] = []
    for source in sources:
        rows = [_row(program, source, d, start, shape, clip=True) for d in range(len(source.shape))]
        text = f"({every}) -> ({', '.join(row for row, _ in rows)})"
        reads.append(text + (" clip 1.0 : f32" if any(leaves for _, leaves in rows) else ""))
    domain = ""
    if random.random() < 0.4:
        a, b = random.sample(range(rank), 2)
        domain = f"domain(d{a} - d{b} + {random.randint(-2, 3)} >= 0)".replace("+ -", "- ")
    kept = [d for d in range(rank) if kinds[d] != "fold"]
    moving = {int(d) for d in re.findall(r"d(\d)", reads[0].partition("->")[2] + domain)}
    outs = [kept] if random.random() < 0.5 else [kept, [d for d in kept if d in moving]]
    names = ", ".join(f"d{n}" for n in range(len(kept)))
    maps = [f"({names}) -> ({', '.join(f'd{kept.index(d)}' for d in out)})" for out in outs]
    end = [s + n for s, n in zip(start, shape, strict=True)]
    ins = ", ".join(f"{source.name} : {read}" for source, read in zip(sources, reads, strict=True))
    text = f"""loom.operation @online over <{list(start)} : {end}> [{", ".join(kinds)}] by @online
    ins({ins}) outs({", ".join(maps)}) {domain}
    wrap (%a: f32, %b: f32) {{
        %low = arith.constant -3.0 : f32
        %high = arith.constant 3.0 : f32
        %least = arith.constant -{LIMIT}.0 : f32
        %most = arith.constant {LIMIT}.0 : f32
        %up = arith.maximumf %a, %low : f32
        %m = arith.minimumf %up, %high : f32
        %more = arith.maximumf %b, %least : f32
        %o = arith.minimumf %more, %most : f32
        loom.yield %m, %o : f32, f32
    }}
    unwrap (%m: f32, %o: f32) {{
        %least = arith.constant -{LIMIT}.0 : f32
        %r = math.floor %o : f32
        %n = arith.maximumf %m, %least : f32
        loom.yield {"%r, %n : f32, f32" if len(outs) > 1 else "%r : f32"}
    }}
    : ({", ".join(source.type for source in sources)}) -> RESULTS"""
    boxes = [(tuple(start[d] for d in out), tuple(shape[d] for d in out)) for out in outs]
    program.add_all(boxes, text)


def _wrap(random: Random, reads: int, rank: int) -> str:
    """A body that combines what it reads, the point's coordinate and a random number."""
    arguments = ", ".join(f"%a{n}: f32" for n in range(reads))
    body = [f"%low = arith.constant -{LIMIT}.0 : f32", f"%high = arith.constant {LIMIT}.0 : f32"]
    value = "%a0"
    for n in range(1, reads):
        op = random.choice(["addf", "subf", "maximumf", "minimumf"])
        body.append(f"%c{n} = arith.{op} {value}, %a{n} : f32")
        value = f"%c{n}"
    if random.random() < 0.4:
        dim = random.randrange(rank)
        body += [
            f"%i = loom.index {dim} : i64",
            "%f = arith.sitofp %i : i64 to f32",
            f"%s = arith.addf {value}, %f : f32",
        ]
        value = "%s"
        if random.random() < 0.5:
            body += [
                "%bits = loom.random word 2 of %i, %i : i32",
                "%m = arith.constant 3 : i32",
                "%two = arith.andi %bits, %m : i32",
                "%r = arith.sitofp %two : i32 to f32",
                f"%d = arith.subf {value}, %r : f32",
            ]
            value = "%d"
    body += [
        f"%up = arith.maximumf {value}, %low : f32",
        "%y = arith.minimumf %up, %high : f32",
        "loom.yield %y : f32",
    ]
    inside = "\n        ".join(body)
    return f"    wrap ({arguments}) {{\n        {inside}\n    }}"


_STEPS = (_operation, _operation, _operation, _states, _view, _reshape, _assemble, _constant)

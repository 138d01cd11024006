"""Steps of random graphs that no metakernel would write: loom operations, views and assemblies.

Maps, folds and scans of one to three tensors read through random affine projections, some past the
edges of their tensors (clip), some points outside a domain; states of two parts; blocks read at
computed places; outputs over shifted and transposed dimensions. Some bodies clamp what they make to
+-LIMIT, so that values stay small.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.passes.graphs import ROUNDING, Graph, Shape, Value, reshapes

LIMIT = 8

RAW = ("f32", "f64", "i32", "i64")
"""Dtypes of these operations."""

_ONLINE = """
loom.monoid @online_T commutative zero [LOW : T, 0.0 : T]
  merge (%m0: T, %o0: T, %m1: T, %o1: T) {
    %m = arith.maximumf %m0, %m1 : T
    %low = arith.constant LOW : T
    %zero = arith.constant 0.0 : T
    %none = arith.cmpf oeq, %m, %low : T
    %ref = arith.select %none, %zero, %m : T
    %d0 = arith.subf %m0, %ref : T
    %d1 = arith.subf %m1, %ref : T
    %a0 = math.exp %d0 : T
    %a1 = math.exp %d1 : T
    %x0 = arith.mulf %o0, %a0 : T
    %x1 = arith.mulf %o1, %a1 : T
    %o = arith.addf %x0, %x1 : T
    loom.yield %m, %o : T, T
  }
"""
"""The greatest exponent, and a sum scaled by it: parts that vary along different dimensions."""

_LOWEST = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}


def _dims(rank: int) -> str:
    return ", ".join(f"d{d}" for d in range(rank))


def _end(start: Shape, shape: Shape) -> list[int]:
    return [s + n for s, n in zip(start, shape, strict=True)]


def _row(
    random: Random, source: Value, dim: int, start: Shape, shape: Shape, *, clip: bool
) -> tuple[str, bool]:
    """A row that reads one dimension of `source`, and whether it may leave it."""
    low, high = source.start[dim], source.start[dim] + source.shape[dim]
    if clip and shape and random.random() < 0.3:
        if len(shape) > 1 and random.random() < 0.5:  # a window
            a, b = random.sample(range(len(shape)), 2)
            factor = random.choice(["", "2 * "])
            offset = low - start[a] * (2 if factor else 1) - start[b] - random.randint(0, 2)
            return _signed(f"{factor}d{a} + d{b}", offset), True
        d = random.randrange(len(shape))
        sign = random.choice(["", "-"])
        offset = random.randint(-3, 3) + (low if not sign else high)
        return _signed(f"{sign}d{d}", offset), True
    fitting = [d for d in range(len(shape)) if shape[d] <= source.shape[dim]]
    if not fitting or random.random() < 0.2:
        return str(random.randrange(low, high)), False
    d = random.choice(fitting)
    place = random.randint(0, source.shape[dim] - shape[d])
    if random.random() < 0.2:
        return _signed(f"-d{d}", low + place + start[d] + shape[d] - 1), False
    return _signed(f"d{d}", low + place - start[d]), False


def _signed(text: str, offset: int) -> str:
    return f"{text} + {offset}".replace("+ -", "- ")


def _read(
    random: Random, source: Value, start: Shape, shape: Shape, *, clip: bool = True
) -> tuple[str, str]:
    """A read of a tensor from an index space, and its rows."""
    rows = [_row(random, source, d, start, shape, clip=clip) for d in range(source.rank)]
    text = f"%{source.name} : ({_dims(len(shape))}) -> ({', '.join(row for row, _ in rows)})"
    if any(leaves for _, leaves in rows):
        number = random.randint(-2, 2)
        text += f" clip {number}{'.0' if source.is_float else ''} : {source.dtype}"
    return text, " ".join(row for row, _ in rows)


def _sources(graph: Graph, count: int) -> list[Value]:
    """Values of one dtype; bodies clamp them, whatever their bounds."""
    first = graph.pick(lambda v: v.dtype in RAW)
    if first is None:
        first = graph.argument(graph.shape(2), graph.random.choice(RAW))
    found = [first]
    for _ in range(count - 1):
        other = graph.pick(lambda v: v.dtype == first.dtype, newest=0.2)
        found.append(other or first)
    return found


def _domain(random: Random, rank: int) -> str:
    if rank < 2 or random.random() < 0.6:
        return ""
    a, b = random.sample(range(rank), 2)
    return f"domain({_signed(f'd{a} - d{b}', random.randint(-2, 3))} >= 0)"


def operation(graph: Graph) -> None:
    """A map, a fold or a scan of one to three tensors, with one or two outputs."""
    random = graph.random
    rank = random.randint(1, 4)
    start, shape = graph.start(rank), graph.shape(rank, 5)
    if _points(shape) > graph.most_points // 4:
        return
    kinds = ["map"] * rank
    style = random.choice(["map", "fold", "fold", "scan"])
    if style == "scan":
        kinds[random.randrange(rank)] = "scan"
    elif style == "fold":
        for d in random.sample(range(rank), random.randint(1, rank)):
            kinds[d] = "fold"
    sources = _sources(graph, random.randint(1, 3))
    kind = sources[0].dtype
    reads = [_read(random, source, start, shape)[0] for source in sources]
    kept = [d for d in range(rank) if kinds[d] != "fold"]
    kept_start, kept_shape = tuple(start[d] for d in kept), tuple(shape[d] for d in kept)
    monoid = random.choice(["add", "max", "min"])
    outs = [_out(random, kept_start, kept_shape) for _ in range(random.choice([1, 1, 1, 2]))]
    two = len(outs) == 2
    wrong = sum(source.error for source in sources)
    limit = _limit(random, sources)
    bound = _bound(limit, sources)
    if style != "map" and monoid == "add":
        n = _points(tuple(shape[d] for d in range(rank) if kinds[d] != "map"))
        bound, wrong = bound * n, n * (wrong + n * ROUNDING.get(kind, 0.0) * bound)
    lines = [f"loom.operation @{style} over <{list(start)} : {_end(start, shape)}>"]
    lines[0] += f" [{', '.join(kinds)}]" + (f" by @{monoid}" if style != "map" else "")
    lines.append(f"ins({', '.join(reads)})")
    extra = ""
    if style != "map" and random.random() < 0.3:
        (more,) = [graph.pick(lambda v: v.dtype == kind, newest=0.2) or sources[0]]
        extra, _ = _read(random, more, kept_start, kept_shape)
        lines.append(f"extra({extra})")
        sources, bound, wrong = [*sources, more], bound + more.bound, wrong + more.error
    lines.append(f"outs({', '.join(text for text, _, _ in outs)})")
    if style != "map":
        lines.append(_domain(random, rank))
    both = two and style == "map"
    lines.append(_wrap(random, kind, len(reads), rank, limit=limit, both=both))
    if style != "map":
        lines.append(_unwrap(kind, extra=bool(extra), two=two))
    lines.append(f": ({', '.join(source.type for source in sources)}) -> RESULTS")
    results = [(where, size, kind) for _, where, size in outs]
    graph.add("\n    ".join(filter(None, lines)), results, bound, wrong)


def _points(shape: Shape) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _out(random: Random, start: Shape, shape: Shape) -> tuple[str, Shape, Shape]:
    """A projection that writes every kept point, shifted and transposed; where it writes."""
    order = random.sample(range(len(shape)), len(shape))
    shifts = [random.randint(-2, 2) if random.random() < 0.3 else 0 for _ in order]
    rows = [_signed(f"d{k}", s) for k, s in zip(order, shifts, strict=True)]
    text = f"({_dims(len(shape))}) -> ({', '.join(rows)})"
    where = tuple(start[k] + s for k, s in zip(order, shifts, strict=True))
    return text, where, tuple(shape[k] for k in order)


def _binary(random: Random, kind: str) -> str:
    if kind in ROUNDING:
        return random.choice(["addf", "subf", "maximumf", "minimumf"])
    return random.choice(["addi", "subi", "maxsi", "minsi", "muli", "xori"])


def _clamp(kind: str, value: str, name: str) -> list[str]:
    low, high = ("maximumf", "minimumf") if kind in ROUNDING else ("maxsi", "minsi")
    number = f"{LIMIT}.0" if kind in ROUNDING else str(LIMIT)
    return [
        f"%low{name} = arith.constant -{number} : {kind}",
        f"%high{name} = arith.constant {number} : {kind}",
        f"%up{name} = arith.{low} {value}, %low{name} : {kind}",
        f"%{name} = arith.{high} %up{name}, %high{name} : {kind}",
    ]


def _limit(random: Random, sources: Sequence[Value]) -> float | None:
    """How large what bodies yield may be: LIMIT, where they clamp it; None where they do not."""
    large = sum(source.bound for source in sources) > 1e4
    return LIMIT if large or random.random() < 0.3 else None


def _bound(limit: float | None, sources: Sequence[Value]) -> float:
    """How large what a body yields is: coordinates and random numbers add little."""
    if limit is None and not sources[0].is_float:
        return float(1 << 31)
    return limit or sum(source.bound for source in sources) + 16.0


def _wrap(
    random: Random,
    kind: str,
    reads: int,
    rank: int,
    *,
    limit: float | None = LIMIT,
    both: bool = False,
) -> str:
    """A body that combines what it reads, the point's coordinate and a random number."""
    body: list[str] = []
    value = "%a0"
    for n in range(1, reads):
        body.append(f"%c{n} = arith.{_binary(random, kind)} {value}, %a{n} : {kind}")
        value = f"%c{n}"
    if random.random() < 0.6:
        dim = random.randrange(rank)
        body.append(f"%i = loom.index {dim} : i64")
        body += _from_integer("%i", "i64", kind, "f")
        body.append(f"%s = arith.{'addf' if kind in ROUNDING else 'addi'} {value}, %f : {kind}")
        value = "%s"
        if random.random() < 0.4:
            body += [
                "%bits = loom.random word 2 of %i, %i : i32",
                "%m = arith.constant 3 : i32",
                "%two = arith.andi %bits, %m : i32",
                *_from_integer("%two", "i32", kind, "r"),
                f"%d = arith.{'subf' if kind in ROUNDING else 'subi'} {value}, %r : {kind}",
            ]
            value = "%d"
    yields = value
    if limit is not None:
        body += _clamp(kind, value, "y")
        yields = "%y"
    if both:
        yields += ", %a0"
    body.append(f"loom.yield {yields} : {', '.join([kind] * (1 + both))}")
    arguments = ", ".join(f"%a{n}: {kind}" for n in range(reads))
    return f"wrap ({arguments}) {{ {'  '.join(body)} }}"


def _from_integer(value: str, integer: str, kind: str, name: str) -> list[str]:
    if kind in ROUNDING:
        return [f"%{name} = arith.sitofp {value} : {integer} to {kind}"]
    if integer == kind:
        return [f"%zero{name} = arith.constant 0 : {kind}",
                f"%{name} = arith.addi {value}, %zero{name} : {kind}"]  # fmt: skip
    change = "trunci" if kind < integer else "extsi"
    return [f"%{name} = arith.{change} {value} : {integer} to {kind}"]


def _unwrap(kind: str, *, extra: bool, two: bool) -> str:
    """Negated, plus the extra input; the second output is the state itself."""
    is_float = kind in ROUNDING
    zero = f"%zero = arith.constant {'0.0' if is_float else '0'} : {kind}"
    minus, plus = ("subf", "addf") if is_float else ("subi", "addi")
    body = [zero, f"%n = arith.{minus} %zero, %acc : {kind}"]
    value = "%n"
    if extra:
        body.append(f"%e = arith.{plus} %n, %more : {kind}")
        value = "%e"
    values, kinds = (f"{value}, %acc", f"{kind}, {kind}") if two else (value, kind)
    more = f", %more: {kind}" if extra else ""
    return f"unwrap (%acc: {kind}{more}) {{ {'  '.join(body)}  loom.yield {values} : {kinds} }}"


def states(graph: Graph) -> None:
    """A fold whose state has two parts, the first perhaps an output over its own dimensions."""
    random = graph.random
    rank = random.randint(2, 4)
    start, shape = graph.start(rank), graph.shape(rank, 5)
    if _points(shape) > graph.most_points // 8:
        return
    kind = random.choice(["f32", "f64"])
    kinds = ["map"] * rank
    for d in random.sample(range(rank), random.randint(1, rank - 1)):
        kinds[d] = "fold"
    sources = [
        graph.pick(lambda v: v.dtype == kind, newest=0.3) or graph.argument(graph.shape(2), kind)
        for _ in range(2)
    ]
    reads = [_read(random, source, start, shape) for source in sources]
    domain = _domain(random, rank)
    kept = [d for d in range(rank) if kinds[d] != "fold"]
    moving = {d for d in range(rank) if f"d{d}" in reads[0][1] + domain}
    outs = [kept] if random.random() < 0.5 else [kept, [d for d in kept if d in moving]]
    names = _dims(len(kept))
    maps = [f"({names}) -> ({', '.join(f'd{kept.index(d)}' for d in out)})" for out in outs]
    body = [*_clamp(kind, "%a", "m"), *_clamp(kind, "%b", "o")]
    two = len(outs) == 2
    graph.monoids[kind] = _ONLINE.replace("LOW", _LOWEST[kind]).replace("T", kind)
    text = f"""loom.operation @online over <{list(start)} : {_end(start, shape)}>
      [{", ".join(kinds)}] by @online_{kind}
      ins({", ".join(text for text, _ in reads)}) outs({", ".join(maps)}) {domain}
      wrap (%a: {kind}, %b: {kind}) {{ {"  ".join(body)}  loom.yield %m, %o : {kind}, {kind} }}
      unwrap (%m: {kind}, %o: {kind}) {{
        {"  ".join(_clamp(kind, "%m", "n"))}
        loom.yield {f"%o, %n : {kind}, {kind}" if two else f"%o : {kind}"} }}
      : ({", ".join(source.type for source in sources)}) -> RESULTS"""
    n = _points(tuple(shape[d] for d in range(rank) if kinds[d] == "fold"))
    bound = float(LIMIT * n)
    wrong = sum(s.error for s in sources) * (1 + LIMIT) * n
    wrong += ROUNDING[kind] * bound * (n + 20 * LIMIT)
    where = [(tuple(start[d] for d in out), tuple(shape[d] for d in out), kind) for out in outs]
    graph.add(text, where, bound, wrong)


def view(graph: Graph) -> None:
    """Cells named by an affine map."""
    source = graph.pick()
    if source is None:
        return
    rank = graph.random.randint(1, 3)
    start, shape = graph.start(rank), graph.shape(rank, 5)
    read, _ = _read(graph.random, source, start, shape, clip=False)
    text = f"loom.view {read} : {source.type} -> RESULTS"
    graph.add(text, [(start, shape, source.dtype)], source.bound, source.error)


def constant(graph: Graph) -> None:
    """Cells that are written down."""
    random = graph.random
    kind = random.choice(RAW)
    start, shape = graph.start(2), graph.shape(2, 4)
    dot = ".0" if kind in ROUNDING else ""
    if random.random() < 0.5:
        cells = f"{random.randint(-3, 3)}{dot}"
    else:
        rows = [[f"{random.randint(-3, 3)}{dot}" for _ in range(shape[1])] for _ in range(shape[0])]
        cells = "[" + ", ".join(f"[{', '.join(row)}]" for row in rows) + "]"
    graph.add(f"loom.constant {cells} : RESULTS", [(start, shape, kind)], 3.0, 0.0)


def assemble(graph: Graph) -> None:
    """A tensor beside a view of itself."""
    source = graph.pick(lambda v: v.rank > 0 and v.cells <= 100 * graph.scale**2)
    if source is None:
        return
    axis = graph.random.randrange(source.rank)
    n = source.shape[axis]
    start = tuple(s + n * (d == axis) for d, s in enumerate(source.start))
    rows = [f"d{d}" + f" - {n}" * (d == axis) for d in range(source.rank)]
    text = f"loom.view %{source.name} : ({_dims(source.rank)}) -> ({', '.join(rows)})"
    known = source.bound, source.error
    (piece,) = graph.add(
        f"{text} : {source.type} -> RESULTS", [(start, source.shape, source.dtype)], *known
    )
    shape = tuple(size * (1 + (d == axis)) for d, size in enumerate(source.shape))
    text = f"loom.assemble %{source.name}, %{piece.name} : {source.type}, {piece.type} -> RESULTS"
    graph.add(text, [(source.start, shape, source.dtype)], *known)


def _reshaped(graph: Graph, source: Value) -> Value:
    """The same cells under another shape."""
    shape = graph.random.choice([s for s in reshapes(source.shape) if len(s) < 5])
    kinds = [(graph.start(len(shape)), shape, source.dtype)]
    text = f"loom.reshape %{source.name} : {source.type} -> RESULTS"
    return graph.add(text, kinds, source.bound, source.error)[0]


def follow(graph: Graph) -> None:
    """A map, a fold or a scan of every cell of the newest tensor: what fuses, groups and derives.

    Its index space is the tensor's, moved, permuted or turned round; another tensor of the same
    rank may be read beside it.
    """
    random = graph.random
    source = graph.pick(lambda v: v.dtype in RAW and 0 < v.rank < 5, newest=0.9)
    if source is None:
        return
    if random.random() < 0.4:
        source = _reshaped(graph, source)
    rank, kind = source.rank, source.dtype
    order = random.sample(range(rank), rank) if random.random() < 0.5 else list(range(rank))
    start = tuple(random.choice([0, 0, 1, -2]) for _ in range(rank))
    shape = tuple(source.shape[d] for d in order)
    rows = [""] * rank
    for place, d in enumerate(order):
        low = source.start[d]
        turned = random.random() < 0.15
        offset = low + shape[place] - 1 + start[place] if turned else low - start[place]
        rows[d] = _signed(f"{'-' * turned}d{place}", offset)
    reads = [f"%{source.name} : ({_dims(rank)}) -> ({', '.join(rows)})"]
    sources = [source]
    if random.random() < 0.5:
        (more,) = _sources(graph, 1) if random.random() < 0.5 else (source,)
        if more.dtype == kind:
            reads.append(_read(random, more, start, shape)[0])
            sources.append(more)
    style = random.choice(["map", "map", "map", "fold", "scan"])
    kinds = ["map"] * rank
    if style != "map":
        kinds[random.randrange(rank)] = style
    monoid = random.choice(["add", "max", "min"])
    kept = [d for d in range(rank) if kinds[d] != "fold"]
    out, where, size = _out(random, tuple(start[d] for d in kept), tuple(shape[d] for d in kept))
    n = _points(tuple(shape[d] for d in range(rank) if kinds[d] != "map"))
    limit = _limit(random, sources)
    bound, wrong = _bound(limit, sources), sum(one.error for one in sources)
    if style != "map" and monoid == "add":
        bound, wrong = bound * n, n * (wrong + n * ROUNDING.get(kind, 0.0) * bound)
    lines = [
        f"loom.operation @next over <{list(start)} : {_end(start, shape)}> [{', '.join(kinds)}]"
        + (f" by @{monoid}" if style != "map" else ""),
        f"ins({', '.join(reads)})",
        f"outs({out})",
        _domain(random, rank) if style != "map" else "",
        _wrap(random, kind, len(reads), rank, limit=limit),
        _unwrap(kind, extra=False, two=False) if style != "map" and random.random() < 0.5 else "",
        f": ({', '.join(one.type for one in sources)}) -> RESULTS",
    ]
    graph.add("\n    ".join(filter(None, lines)), [(where, size, kind)], bound, wrong)


STEPS = (
    operation, operation, operation, follow, follow, follow, states, view, constant, assemble
)  # fmt: skip

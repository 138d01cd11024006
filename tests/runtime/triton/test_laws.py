"""Any operation, any partition: Triton's kernels give what the reference executor gives."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.program import arguments
from tapestry.runtime.reference import ReferenceExecutor
from tapestry.runtime.triton.executor import TritonExecutor
from tests.amounts import drawn

SETTINGS = settings(
    max_examples=drawn(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i64", "i8")


def box_text(start, shape):
    return f"{list(start)} : {[s + n for s, n in zip(start, shape, strict=True)]}"


def tensor(start, shape, element):
    return f"!loom.tensor<{box_text(start, shape)}, {element}>"


@dataclass(frozen=True)
class Access:
    """Which index dimensions a tensor's dimensions are, and where the tensor starts."""

    dims: tuple[int, ...]
    start: tuple[int, ...]

    def projection(self, over, index_start):
        names = ", ".join(f"d{n}" for n in range(len(over)))
        rows = []
        for dim, start in zip(self.dims, self.start, strict=True):
            shift = start - index_start[dim]
            sign = f" {'+' if shift > 0 else '-'} {abs(shift)}" if shift else ""
            rows.append(f"d{over.index(dim)}{sign}")
        return f"({names}) -> ({', '.join(rows)})"

    def type(self, extents, element):
        return tensor(self.start, [extents[d] for d in self.dims], element)


@st.composite
def accesses(draw, dims):
    chosen = draw(st.permutations(dims))[: draw(st.integers(0, len(dims)))]
    return Access(tuple(chosen), tuple(draw(st.integers(-3, 5)) for _ in chosen))


@st.composite
def partitions(draw, start, shape):
    """A grid, or a grid with one more cut inside one of its parts (no longer a grid)."""
    cuts = []
    for low, extent in zip(start, shape, strict=True):
        inner = draw(st.sets(st.integers(1, max(1, extent - 1)), max_size=2)) if extent > 1 else ()
        cuts.append([low, *(low + c for c in sorted(inner)), low + extent])
    if draw(st.booleans()):
        return f"grid [{', '.join(map(str, cuts))}]"
    parts = [
        ([a for a, _ in pairs], [b for _, b in pairs])
        for pairs in product(*(list(pairwise(c)) for c in cuts))
    ]
    lows, highs = parts[draw(st.integers(0, len(parts) - 1))]
    for dim, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if high - low > 1:
            parts.remove((lows, highs))
            middle = low + (high - low) // 2
            parts.append((lows, [*highs[:dim], middle, *highs[dim + 1 :]]))
            parts.append(([*lows[:dim], middle, *lows[dim + 1 :]], highs))
            break
    return "ranges [" + ", ".join(f"{a} : {b}" for a, b in parts) + "]"


BODIES = {
    "f": ["arith.addf %a, %b", "arith.mulf %a, %b", "arith.maximumf %a, %b", "arith.subf %a, %b"],
    "i": [
        "arith.addi %a, %b",
        "arith.muli %a, %b",
        "arith.maxsi %a, %b",
        "arith.xori %a, %b",
        "arith.subi %a, %b",
    ],
}


@st.composite
def operations(draw, elements=(*FLOATS, *INTEGERS)):
    """A program of one operation with two inputs, whole or cut into shards."""
    element = draw(st.sampled_from(elements))
    kind = "i" if element.startswith("i") else "f"
    rank = draw(st.integers(1, 4))
    extents = [draw(st.sampled_from([1, 2, 3, 5, 8, 17])) for _ in range(rank)]
    start = [draw(st.integers(-4, 4)) for _ in range(rank)]
    folds = draw(st.sets(st.integers(0, rank - 1)))
    mapped = [d for d in range(rank) if d not in folds]
    a, b = draw(accesses(range(rank))), draw(accesses(range(rank)))
    out = Access(
        tuple(draw(st.permutations(mapped))), tuple(draw(st.integers(-2, 2)) for _ in mapped)
    )
    body = draw(st.sampled_from(BODIES[kind]))
    fold = unwrap = extra = ""
    types = [a.type(extents, element), b.type(extents, element)]
    names = ["%x: " + types[0], "%y: " + types[1]]
    if folds:
        # Sums of 16-bit floats depend on how they accumulate: see test_triton_executor.py.
        choices = ["max", "min"] if element in ("f16", "bf16") else ["add", "max", "min", "mul"]
        choices += ["and", "or"] if kind == "i" else []
        fold = f"by @{draw(st.sampled_from(choices))}"
        if draw(st.booleans()):
            e = draw(accesses(mapped))
            extra = f"extra(%e : {e.projection(mapped, start)})"
            types.append(e.type(extents, element))
            names.append("%e: " + types[2])
            add = "arith.addf" if kind == "f" else "arith.addi"
            unwrap = (
                f"unwrap (%acc: {element}, %ee: {element}) {{ %s = {add} %acc, %ee : {element} "
                f"loom.yield %s : {element} }}"
            )
    shards = ""
    if draw(st.booleans()):
        shards = f"shards <{draw(partitions(start, extents))}>"
    iterators = ", ".join("fold" if d in folds else "map" for d in range(rank))
    every = list(range(rank))
    result = out.type(extents, element)
    return f"""
func.func @main({", ".join(names)}) -> {result} {{
  %r = loom.operation @op over <{box_text(start, extents)}> [{iterators}] {fold}
    ins(%x : {a.projection(every, start)}, %y : {b.projection(every, start)}) {extra}
    outs({out.projection(mapped, start)})
    {shards}
    wrap (%a: {element}, %b: {element}) {{ %v = {body} : {element} loom.yield %v : {element} }}
    {unwrap}
    : ({", ".join(types)}) -> {result}
  func.return %r : {result}
}}
"""


TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-2, "bf16": 1e-1}


def run_both(text, seed=0, tile=None, pipeline=""):
    module = parse_text(text)
    verify_module(module)
    lowered = module.clone()
    run_pipeline(lowered, pipeline)
    rng = np.random.default_rng(seed)
    inputs = {}
    for argument in arguments(module):
        dtype = numpy_dtype(argument.type.element_type)
        values = np.asarray(rng.standard_normal(argument.type.box.shape))
        scale = 1 if dtype.kind in "fV" else 5
        inputs[argument.name] = np.asarray(values * scale).astype(dtype)
    expected = ReferenceExecutor().run(module, inputs, NoWatch()).outputs
    got = TritonExecutor(tile=tile).run(lowered, inputs, NoWatch()).outputs
    return got, expected


def check(text, seed=0, tile=None, pipeline=""):
    got, expected = run_both(text, seed, tile, pipeline)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind in "fV":
            name = {"float64": "f64", "float32": "f32", "float16": "f16"}.get(str(a.dtype), "bf16")
            # Sums in another order differ by an error that grows with what was summed.
            a, b = a.astype(np.float64), b.astype(np.float64)
            size = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            tolerance = TOLERANCE[name]
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * size)
        else:
            np.testing.assert_array_equal(a, b)


@SETTINGS
@given(operations(), st.integers(0, 100), st.sampled_from([16, 64, None]))
def test_any_operation_under_any_partition(text, seed, tile):
    check(text, seed, tile)


@SETTINGS
@given(operations(), st.integers(0, 100))
def test_shards_spelled_out_give_the_same(text, seed):
    check(text, seed, pipeline="loom-expand-shards")


@st.composite
def contractions(draw):
    """A program of one matrix product, with batches, transpositions, and work on its factors."""
    element = draw(st.sampled_from(["f32", "f16", "bf16", "f64"]))
    roles = ["m", "n", "k", *draw(st.lists(st.sampled_from("bmnk"), max_size=2))]
    roles = draw(st.permutations(roles))
    sizes = [draw(st.sampled_from([1, 2, 3, 7, 16, 20])) for _ in roles]
    start = [draw(st.integers(-2, 2)) for _ in roles]
    every = list(range(len(roles)))
    mapped = [d for d in every if roles[d] != "k"]

    def placed(letters):
        dims = draw(st.permutations([d for d in every if roles[d] in letters]))
        return Access(tuple(dims), tuple(draw(st.integers(-2, 2)) for _ in dims))

    a, b, c = placed("bmk"), placed("bkn"), placed("bmn")
    state = "f64" if element == "f64" else "f32"
    types = [a.type(sizes, element), b.type(sizes, element), c.type(sizes, state)]
    widen = (
        ""
        if element == state
        else f"""
      %aw = arith.extf %a : {element} to {state}
      %bw = arith.extf %b : {element} to {state}"""
    )
    left, right = ("%a", "%b") if element == state else ("%aw", "%bw")
    work = ""
    if draw(st.booleans()):
        # The work must not be done on lanes that are no points: 1 / x is infinite there.
        work = f"""
      %one = arith.constant 1.0 : {state}
      %inverse = arith.divf %one, {left} : {state}
      %bent = math.tanh %inverse : {state}"""
        left = "%bent"
    shards = f"shards <{draw(partitions(start, sizes))}>" if draw(st.booleans()) else ""
    iterators = ", ".join("fold" if r == "k" else "map" for r in roles)
    return f"""
func.func @main(%x: {types[0]}, %y: {types[1]}) -> {types[2]} {{
  %r = loom.operation @product over <{box_text(start, sizes)}> [{iterators}] by @add
    ins(%x : {a.projection(every, start)}, %y : {b.projection(every, start)})
    outs({c.projection(mapped, start)}) {shards}
    wrap (%a: {element}, %b: {element}) {{{widen}{work}
      %v = arith.mulf {left}, {right} : {state}
      loom.yield %v : {state}
    }}
    : ({types[0]}, {types[1]}) -> {types[2]}
  func.return %r : {types[2]}
}}
"""


@SETTINGS
@given(contractions(), st.integers(0, 100), st.sampled_from([256, None]))
def test_any_contraction_under_any_partition(text, seed, tile):
    check(text, seed, tile)


@st.composite
def searches(draw):
    """A program that finds the first extremum along some dimensions, of values with many ties."""
    rank = draw(st.integers(1, 3))
    extents = [draw(st.integers(1, 9)) for _ in range(rank)]
    start = [draw(st.integers(-3, 3)) for _ in range(rank)]
    along = draw(st.integers(0, rank - 1))
    mapped = [d for d in range(rank) if d != along]
    monoid = draw(st.sampled_from(["argmax", "argmin"]))
    x = Access(tuple(range(rank)), tuple(start))
    out = Access(tuple(mapped), tuple(0 for _ in mapped))
    types = (x.type(extents, "f32"), out.type(extents, "i64"))
    iterators = ", ".join("fold" if d == along else "map" for d in range(rank))
    return f"""
func.func @main(%x: {types[0]}) -> {types[1]} {{
  %r = loom.operation @search over <{box_text(start, extents)}> [{iterators}] by @{monoid}
    ins(%x : {x.projection(list(range(rank)), start)}) outs({out.projection(mapped, start)})
    shards <{draw(partitions(start, extents))}>
    wrap (%a: f32) {{
      %half = arith.constant 0.5 : f32
      %few = math.floor %a : f32
      %nan = math.sqrt %few : f32
      %odd = arith.cmpf olt, %a, %half : f32
      %v = arith.select %odd, %few, %nan : f32
      %i = loom.index {along} : i64
      loom.yield %v, %i : f32, i64
    }}
    unwrap (%v: f32, %i: i64) {{ loom.yield %i : i64 }}
    : ({types[0]}) -> {types[1]}
  func.return %r : {types[1]}
}}
"""


@SETTINGS
@given(searches(), st.integers(0, 100))
def test_searches_find_the_same_place_under_any_partition(text, seed):
    check(text, seed)
    check(text, seed, pipeline="loom-expand-shards")


@st.composite
def moved(draw):
    """A program of views, reshapes and assemblies that are left to be copied."""
    shape = [draw(st.integers(1, 6)) for _ in range(2)]
    rows, columns = shape
    start = [draw(st.integers(-3, 3)) for _ in range(2)]
    cut = draw(st.integers(0, columns))
    flat = rows * columns
    x, t = tensor(start, shape, "f32"), tensor((0, 0), (columns, rows), "f32")
    left = tensor((0, 0), (cut, rows), "f32")
    right = tensor((cut, 0), (columns - cut, rows), "f32")
    line = tensor((draw(st.integers(-2, 2)),), (flat,), "f32")
    r, c = (f"{'+' if n >= 0 else '-'} {abs(n)}" for n in start)
    return f"""
func.func @main(%x: {x}) -> ({line}, {t}) {{
  %t = loom.view %x : (d0, d1) -> (d1 {r}, d0 {c}) : {x} -> {t}
  %l = loom.view %t : (d0, d1) -> (d0, d1) : {t} -> {left}
  %r = loom.view %t : (d0, d1) -> (d0, d1) : {t} -> {right}
  %j = loom.assemble %l, %r : {left}, {right} -> {t}
  %f = loom.reshape %j : {t} -> {line}
  func.return %f, %j : {line}, {t}
}}
"""


@SETTINGS
@given(moved())
def test_views_that_remain_are_copied(text):
    check(text)

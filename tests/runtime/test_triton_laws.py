"""Any operation, any partition: Triton's kernels give what the reference executor gives."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.program import arguments
from tapestry.runtime.reference import ReferenceExecutor
from tapestry.runtime.triton_executor import TritonExecutor

SETTINGS = settings(
    max_examples=int(__import__("os").environ.get("N", "60")),
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
    """A program of one operation with two inputs, and the parts of its index space it is cut into."""
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


def run_both(text, seed=0, tile=None):
    module = parse_text(text)
    verify_module(module)
    rng = np.random.default_rng(seed)
    inputs = {}
    for argument in arguments(module):
        dtype = numpy_dtype(argument.type.element_type)
        values = np.asarray(rng.standard_normal(argument.type.box.shape))
        scale = 1 if dtype.kind in "fV" else 5
        inputs[argument.name] = np.asarray(values * scale).astype(dtype)
    expected = ReferenceExecutor().run(module, inputs, NoWatch()).outputs
    got = TritonExecutor(tile=tile).run(module, inputs, NoWatch()).outputs
    return got, expected


def check(text, seed=0, tile=None):
    got, expected = run_both(text, seed, tile)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind in "fV":
            name = {"float64": "f64", "float32": "f32", "float16": "f16"}.get(str(a.dtype), "bf16")
            tolerance = TOLERANCE[name]
            np.testing.assert_allclose(
                a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance
            )
        else:
            np.testing.assert_array_equal(a, b)


@SETTINGS
@given(operations(), st.integers(0, 100), st.sampled_from([16, 64, None]))
def test_any_operation_under_any_partition(text, seed, tile):
    check(text, seed, tile)

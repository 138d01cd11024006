"""Views, assemblies, integers, and positions of extrema."""

from __future__ import annotations

from tests.proving.building import Program, tensor
from tests.proving.cases import Family


def copied(*parts: tuple[str, int, int], n: int = 7) -> str:
    """Views of %x and %y side by side: each part is (`x[rows]`, start, end)."""
    p = Program(x=(4,), y=(3,))
    names = [
        p.line(
            f"loom.view %{read.split('[')[0]} : (d0) -> ({read.split('[')[1][:-1]}) : "
            f"{{{read.split('[')[0]}}} -> !loom.tensor<[{start}] : [{end}], f32>",
            (end - start,),
        )
        for read, start, end in parts
    ]
    types = [f"!loom.tensor<[{start}] : [{end}], f32>" for _, start, end in parts]
    whole = p.line(
        f"loom.assemble {', '.join('%' + name for name in names)} : {', '.join(types)} -> {{0}}",
        (n,),
    )
    return p.returns(whole)


def masked(edge: str = "i0 < 4", second: str = "y[d0 - 4] clip 0.0 : f32") -> str:
    p = Program(x=(4,), y=(3,))
    ins = ["x[d0] clip 0.0 : f32", second]
    return p.returns(p.op((7,), "m", ins, f"where({edge}, a, b)"))


CONCATENATION = Family(
    "concatenation",
    copied(("x[d0]", 0, 4), ("y[d0 - 4]", 4, 7)),
    {
        "in three parts": copied(("x[d0]", 0, 2), ("x[d0]", 2, 4), ("y[d0 - 4]", 4, 7)),
        "as a masked read": masked(),
    },
    {
        "edge off by one": masked("i0 < 3"),
        "a part twice": copied(("x[d0]", 0, 2), ("x[d0 - 2]", 2, 4), ("y[d0 - 4]", 4, 7)),
        "second part reversed": copied(("x[d0]", 0, 4), ("y[6 - d0]", 4, 7)),
        "second part shifted": masked(second="y[d0 - 3] clip 0.0 : f32"),
    },
)


def transposed(first: str, second: str, middle: tuple[int, ...]) -> str:
    p = Program(x=(4, 6))
    t = p.line(f"{first.format(source='%x', kind='{x}')} -> {{0}}", middle)
    kind = tensor(middle, "f32")
    return p.returns(p.line(f"{second.format(source='%' + t, kind=kind)} -> {{0}}", (24,)))


def copy() -> str:
    p = Program(x=(4, 6))
    return p.returns(p.op((6, 4), "mm", ["x[d1, d0]"], "a", out="4 * d0 + d1", shape=(24,)))


VIEW = "loom.view {{source}} : (d0, d1) -> ({0}) : {{kind}}"
FLAT = "loom.reshape {source} : {kind}"
VIEWS = Family(
    "transpose, flattened",
    transposed(VIEW.format("d1, d0"), FLAT, (6, 4)),
    {
        "copied": copy(),
    },
    {
        "not transposed": transposed(VIEW.format("d0, d1"), FLAT, (4, 6)),
        "reshaped instead": transposed(FLAT, FLAT, (6, 4)),
        "reversed": transposed(VIEW.format("3 - d1, d0"), FLAT, (6, 4)),
    },
)


def extremum(by: str = "argmax", wrap: str = "a, i1") -> str:
    p = Program(x=(3, 6))
    text = p.op((3, 6), "mf", ["x[d0, d1]"], wrap, by=by, state=2, kind="i64")
    line = p.lines.pop()
    body = "unwrap (%p: f32, %q: i64) { loom.yield %q : i64 } :"
    p.lines.append(line.replace("} :", "} " + body, 1))
    return p.returns(text)


def by_comparison(edge: str = "a == b", by: str = "min", otherwise: str = "9") -> str:
    p = Program(x=(3, 6))
    m = p.op((3, 6), "mf", ["x[d0, d1]"], "a", by="max")
    ins = ["x[d0, d1]", f"{m}[d0]"]
    wrap = f"where({edge}, i1, {otherwise})"
    return p.returns(p.op((3, 6), "mf", ins, wrap, by=by, kind="i64"))


EXTREMA = Family(
    "place of the maximum",
    extremum(),
    {"by comparison": by_comparison()},
    {
        "of the minimum": extremum("argmin"),
        "the last of equals": by_comparison(by="max", otherwise="0"),
        "counted from one": extremum(wrap="a, i1 + 1"),
        "the second axis": extremum(wrap="a, i0"),
    },
)


def whole(wrap: str, by: str = "add", **given: str) -> str:
    p = Program("n m", n=(3, 5), m=(3, 5))
    ins = ["n[d0, d1]", "m[d0, d1]"]
    return p.returns(p.op((3, 5), "mf", ins, wrap, by=by, kind="i64", **given))


INTEGERS = Family(
    "sums of integers",
    whole("a * (a + b)"),
    {
        "distributed": whole("a * a + b * a"),
        "split": whole("(b + a) * a", shards="grid [[0, 3], [0, 2, 5]]"),
    },
    {
        "maximum": whole("a * (a + b)", "max"),
        "swapped": whole("b * (a + b)"),
        "one more": whole("a * (a + b) + 1"),
    },
)

FAMILIES = [CONCATENATION, VIEWS, EXTREMA, INTEGERS]

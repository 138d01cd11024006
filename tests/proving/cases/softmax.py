"""Softmax, log-sum-exp and cross entropy."""

from __future__ import annotations

from tests.proving.building import Program
from tests.proving.cases import Family

ROWS = (3, 7)
X = ["x[d0, d1]"]
SPLIT = "grid [[0, 3], [0, 2, 5, 7]]"
REF = "where(max(p0, p1) == -inf, 0.0, max(p0, p1))"
ONLINE = f"max(p0, p1), q0 * exp(p0 - {REF}) + q1 * exp(p1 - {REF})"


def softmax(shift: str | None = "max", axis: int = 1, divide: str = "a / b", top: str = "") -> str:
    p = Program(x=ROWS)
    kinds, row = ("mf", "d0") if axis == 1 else ("fm", "d1")
    if shift is None:
        e = p.op(ROWS, "mm", X, "exp(a)")
    else:
        m = p.op(ROWS, kinds, X, "a", by=shift)
        e = p.op(ROWS, "mm", [*X, f"{m}[{row}]"], top or "exp(a - b)")
    s = p.op(ROWS, kinds, [f"{e}[d0, d1]"], "a", by="add")
    return p.returns(p.op(ROWS, "mm", [f"{e}[d0, d1]", f"{s}[{row}]"], divide))


def online(merge: str = ONLINE, finish: str = "exp(a - b) / c", shards: str = "") -> str:
    p = Program(x=ROWS)
    p.monoid("online", "0xFF800000 0.0", merge, 2)
    two = p.op(ROWS, "mf", X, "a, 1.0", by="online", unwrap="p, q", state=2, shards=shards)
    # An operation of two results is written out: the builder gives one.
    text = p.lines.pop()
    rows = "!loom.tensor<[0] : [3], f32>"
    text = text.replace(f"%{two} =", "%m, %s =").replace(
        "outs((d0) -> (d0))", "outs((d0) -> (d0), (d0) -> (d0))"
    )
    p.lines.append(text.removesuffix(rows) + f"({rows}, {rows})")
    p.types |= {"m": rows, "s": rows}
    return p.returns(p.op(ROWS, "mm", [*X, "m[d0]", "s[d0]"], finish))


def by_logsumexp(finish: str = "p + log(q)", shards: str = "") -> str:
    p = Program(x=ROWS)
    r = p.op(ROWS, "mf", X, "a, 1.0", by="logsumexp", unwrap=finish, state=2, shards=shards)
    return p.returns(p.op(ROWS, "mm", [*X, f"{r}[d0]"], "exp(a - b)"))


SOFTMAX = Family(
    "softmax",
    softmax(),
    {
        "without its maximum": softmax(None),
        "with its minimum": softmax("min"),
        "by exp2": softmax(top="exp2((a - b) * 1.4426950408889634)"),
        "online": online(),
        "online, split": online(shards=SPLIT),
        "by logsumexp": by_logsumexp(),
        "by logsumexp, split": by_logsumexp(shards=SPLIT),
    },
    {
        "over the other axis": softmax(axis=0),
        "swapped division": softmax(divide="b / a"),
        "sum not divided by": softmax(divide="a * b"),
        "shift of the wrong sign, in the online finish": online(finish="exp(b - a) / c"),
        "no rescale, split": online(f"max(p0, p1), q0 + q1 * exp(p1 - {REF})", shards=SPLIT),
        "no rescale of the second": online(f"max(p0, p1), q0 * exp(p0 - {REF}) + q1", shards=SPLIT),
        "minimum as the running reference": online(
            "min(p0, p1), q0 * exp(p0 - min(p0, p1)) + q1 * exp(p1 - min(p0, p1))"
        ),
        "no unwrap": by_logsumexp("q"),
        "maximum left out": by_logsumexp("log(q)"),
    },
)


def logsumexp(wrap: str = "exp(a - b)", finish: str = "log(p) + e", m: str = "max") -> str:
    p = Program(x=ROWS)
    m = p.op(ROWS, "mf", X, "a", by=m)
    ins = [*X, f"{m}[d0]"]
    return p.returns(p.op(ROWS, "mf", ins, wrap, by="add", extra=[f"{m}[d0]"], unwrap=finish))


def log_of_sum(by: str = "add", finish: str = "log(p)", shards: str = "") -> str:
    p = Program(x=ROWS)
    return p.returns(p.op(ROWS, "mf", X, "exp(a)", by=by, unwrap=finish, shards=shards))


def two_halves(first: int, last: int) -> str:
    """The log-sum-exp of two halves merged by a formula."""
    p = Program(x=ROWS)
    halves = [
        p.op(
            (3, n),
            "mf",
            [f"x[d0, d1 + {start}]"],
            "a, 1.0",
            by="logsumexp",
            unwrap="p + log(q)",
            state=2,
        )
        for start, n in ((0, first), (last, 7 - last))
    ]
    ins = [f"{half}[d0]" for half in halves]
    return p.returns(
        p.op((3,), "m", ins, "max(a, b) + log(exp(a - max(a, b)) + exp(b - max(a, b)))")
    )


LOGSUMEXP = Family(
    "logsumexp",
    logsumexp(),
    {
        "plainly": log_of_sum(),
        "split": log_of_sum(shards=SPLIT),
        "of two halves": two_halves(4, 4),
        "relative to the minimum": logsumexp(m="min"),
        "through log1p": logsumexp(finish="log1p(p - 1.0) + e"),
    },
    {
        "maximum not added back": logsumexp(finish="log(p)"),
        "maximum subtracted": logsumexp(finish="log(p) - e"),
        "no shift inside": logsumexp("exp(a)"),
        "products for sums": log_of_sum("mul"),
        "maxima for sums": log_of_sum("max"),
        "a halo too much": two_halves(4, 3),
        "a dropped cell": two_halves(3, 4),
    },
)


def cross_entropy(target: str = "b", finish: str = "q * e - p") -> str:
    p = Program("t", x=ROWS, t=(3,))
    p.monoid("pair", "0.0 0.0", "p0 + p1, q0 + q1", 2)
    lse = p.op(ROWS, "mf", X, "a, 1.0", by="logsumexp", unwrap="p + log(q)", state=2)
    # A target outside the classes costs nothing.
    pick = f"where(i1 == {target}, a, 0.0), where(i1 == {target}, 1.0, 0.0)"
    ins, extra = [*X, "t[d0]"], [f"{lse}[d0]"]
    return p.returns(p.op(ROWS, "mf", ins, pick, by="pair", extra=extra, unwrap=finish, state=2))


def from_probabilities(target: str = "c", by: str = "add") -> str:
    p = Program("t", x=ROWS, t=(3,))
    s = p.op(ROWS, "mf", X, "exp(a)", by="add")
    ins = [*X, f"{s}[d0]", "t[d0]"]
    wrap = f"where(i1 == {target}, log(a / b), 0.0)".replace("a / b", "exp(a) / b")
    return p.returns(p.op(ROWS, "mf", ins, wrap, by=by, unwrap="-p"))


CROSS_ENTROPY = Family(
    "cross entropy",
    cross_entropy(),
    {"from probabilities": from_probabilities(), "by the least": from_probabilities(by="min")},
    {
        "without the picked value": cross_entropy(finish="q * e"),
        "of the wrong sign": cross_entropy(finish="p - q * e"),
        "the next class": from_probabilities("c + 1"),
        "all classes up to it": from_probabilities().replace("cmpi eq", "cmpi sle"),
    },
)

FAMILIES = [SOFTMAX, LOGSUMEXP, CROSS_ENTROPY]

"""Means, variances and norms."""

from __future__ import annotations

from tests.proving.building import Program
from tests.proving.cases import Family

ROWS = (4, 6)
X = ["x[d0, d1]"]
SPLIT = "grid [[0, 4], [0, 1, 4, 6]]"
SHARE = "q0 + (q1 - q0) * (p1 / where(p0 + p1 == 0.0, 1.0, p0 + p1))"
BETWEEN = "(q1 - q0) * (q1 - q0) * (p0 * p1 / where(p0 + p1 == 0.0, 1.0, p0 + p1))"
CHAN = f"p0 + p1, {SHARE}, r0 + r1 + {BETWEEN}"


def mean(p: Program, finish: str = "p / 6.0", kinds: str = "mf") -> str:
    return p.op(ROWS, kinds, X, "a", by="add", unwrap=finish)


def variance(
    finish: str = "p / 6.0", center: str = "(a - b) * (a - b)", of: str = "p / 6.0"
) -> str:
    p = Program(x=ROWS)
    m = mean(p, of)
    return p.returns(p.op(ROWS, "mf", [*X, f"{m}[d0]"], center, by="add", unwrap=finish))


def of_squares(finish: str = "p / 6.0 - e * e") -> str:
    p = Program(x=ROWS)
    m = mean(p)
    return p.returns(p.op(ROWS, "mf", X, "a * a", by="add", extra=[f"{m}[d0]"], unwrap=finish))


def welford(finish: str = "r / p", merge: str | None = None, shards: str = "") -> str:
    p = Program(x=ROWS)
    if merge is not None:
        p.monoid("chan", "0.0 0.0 0.0", merge, 3)
    by = "welford" if merge is None else "chan"
    return p.returns(
        p.op(ROWS, "mf", X, "1.0, a, 0.0", by=by, unwrap=finish, state=3, shards=shards)
    )


VARIANCE = Family(
    "variance",
    variance(),
    {
        "by Welford": welford(),
        "by Welford, split": welford(shards=SPLIT),
        "by Chan's merge": welford(merge=CHAN, shards=SPLIT),
        "of squares": of_squares(),
        "by a reciprocal": variance("p * 0.16666667", of="p * 0.16666667"),
    },
    {
        "n - 1 for n": welford("r / (p - 1.0)"),
        "wrong n": variance(of="p / 7.0"),
        "not divided": variance("p"),
        "not centered": variance(center="a * a"),
        "mean not subtracted": of_squares("p / 6.0"),
        "mean not squared": of_squares("p / 6.0 - e"),
        "no correction between parts": welford(merge=f"p0 + p1, {SHARE}, r0 + r1", shards=SPLIT),
        "plain mean of means": welford(merge=CHAN.replace(SHARE, "(q0 + q1) / 2.0"), shards=SPLIT),
    },
)


def layer_norm(
    scale: str = "(a - b) * rsqrt(c + 1.0e-05)", center: str = "(a - b) * (a - b)"
) -> str:
    p = Program(x=ROWS)
    m = mean(p)
    v = p.op(ROWS, "mf", [*X, f"{m}[d0]"], center, by="add", unwrap="p / 6.0")
    return p.returns(p.op(ROWS, "mm", [*X, f"{m}[d0]", f"{v}[d0]"], scale))


LAYER_NORM = Family(
    "layer norm",
    layer_norm(),
    {
        "by a square root": layer_norm("(a - b) / sqrt(c + 1.0e-05)"),
        "distributed": layer_norm("a * rsqrt(c + 1.0e-05) - b * rsqrt(c + 1.0e-05)"),
    },
    {
        "epsilon outside the root": layer_norm("(a - b) / (sqrt(c) + 1.0e-05)"),
        "another epsilon": layer_norm("(a - b) * rsqrt(c + 1.0e-06)"),
        "not centered": layer_norm("a * rsqrt(c + 1.0e-05)"),
        "by the variance": layer_norm("(a - b) / (c + 1.0e-05)"),
    },
)

FAMILIES = [VARIANCE, LAYER_NORM]

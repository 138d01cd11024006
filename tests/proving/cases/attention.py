"""Attention: with and without a mask, in one pass, split over the keys."""

from __future__ import annotations

from tests.proving.building import Program
from tests.proving.cases import Family

N, M, D = 5, 6, 4
CAUSAL = "where(i0 >= i1, a, -inf)"
KEYS = "grid [[0, 5], [0, 4], [0, 2, 4, 6]]"
REF = "where(max(p0, p1) == -inf, 0.0, max(p0, p1))"
L = f"q0 * exp(p0 - {REF}) + q1 * exp(p1 - {REF})"
O = f"r0 * exp(p0 - {REF}) + r1 * exp(p1 - {REF})"  # noqa: E741
FLASH = f"max(p0, p1), {L}, {O}"


def scores(
    p: Program, mask: str, scale: str, rows: str = "q[d0, d2]", keys: str = "k[d1, d2]"
) -> str:
    s = p.op((N, M, D), "mmf", [rows, keys], "a * b", by="add", unwrap=f"p{scale}")
    return p.op((N, M), "mm", [f"{s}[d0, d1]"], mask)


def attention(
    mask: str = "a", scale: str = " / 2.0", values: str = "v[d1, d2]", **given: str
) -> str:
    p = Program(q=(N, D), k=(M, D), v=(M, D))
    s = scores(p, mask, scale, **given)
    m = p.op((N, M), "mf", [f"{s}[d0, d1]"], "a", by="max")
    e = p.op((N, M), "mm", [f"{s}[d0, d1]", f"{m}[d0]"], "exp(a - b)")
    t = p.op((N, M), "mf", [f"{e}[d0, d1]"], "a", by="add")
    w = p.op((N, M), "mm", [f"{e}[d0, d1]", f"{t}[d0]"], "a / b")
    ins = [f"{w}[d0, d1]", values]
    return p.returns(p.op((N, M, D), "mfm", ins, "a * b", by="add"))


def flash(
    mask: str = "a",
    scale: str = " / 2.0",
    merge: str = FLASH,
    finish: str = "r / q",
    shards: str = "",
    **given: str,
) -> str:
    p = Program(q=(N, D), k=(M, D), v=(M, D))
    p.monoid("flash", "0xFF800000 0.0 0.0", merge, 3)
    s = scores(p, mask, scale, **given)
    ins = [f"{s}[d0, d2]", "v[d2, d1]"]
    return p.returns(
        p.op((N, D, M), "mmf", ins, "a, 1.0, b", by="flash", unwrap=finish, state=3, shards=shards)
    )


ATTENTION = Family(
    "attention",
    attention(),
    {
        "in one pass": flash(),
        "split over the keys": flash(shards=KEYS),
        "scaled by half": attention(scale=" * 0.5"),
        "scaled by a root": flash(scale=" * rsqrt(4.0)"),
    },
    {
        "l not rescaled": flash(merge=f"max(p0, p1), q0 + q1, {O}", shards=KEYS),
        "o not rescaled": flash(merge=f"max(p0, p1), {L}, r0 + r1", shards=KEYS),
        "not divided by l": flash(finish="r"),
        "not scaled": attention(scale=""),
        "scaled twice": flash(scale=" / 4.0"),
        "keys for values": attention(values="k[d1, d2]"),
        "queries read off by one": attention(keys="k[5 - d1, d2]"),
        "minimum for maximum": flash(merge=f"min(p0, p1), {L}, {O}", shards=KEYS),
    },
)

MASKED = Family(
    "causal attention",
    attention(CAUSAL),
    {
        "in one pass": flash(CAUSAL),
        "split over the keys, whole blocks masked": flash(CAUSAL, shards=KEYS),
        "mask the other way round": flash("where(i1 > i0, -inf, a)"),
        "mask after rounding coordinates": flash("where(float(i0) >= float(i1), a, -inf)"),
    },
    {
        "edge off by one": flash("where(i0 + 1 >= i1, a, -inf)"),
        "edge excluded": flash("where(i0 > i1, a, -inf)"),
        "no mask": flash(),
        "zero for minus infinity": attention("where(i0 >= i1, a, 0.0)"),
        "mask of the wrong axis": attention("where(i1 >= i0, a, -inf)"),
        "l not rescaled": flash(CAUSAL, merge=f"max(p0, p1), q0 + q1, {O}", shards=KEYS),
    },
)

FAMILIES = [ATTENTION, MASKED]

"""Contractions, embeddings and windows."""

from __future__ import annotations

from tests.proving.building import Program
from tests.proving.cases import Family

X, W, V = (4, 6), (6, 5), (5, 3)
SPLIT = "grid [[0, 4], [0, 3], [0, 2, 4, 6]]"


def product(p: Program, x: str, w: str, n: int, k: int, m: int, **given: str) -> str:
    return p.op((n, m, k), "mmf", [f"{x}[d0, d2]", f"{w}[d2, d1]"], "a * b", by="add", **given)


def chain(left: bool = True, **given: str) -> str:
    p = Program(x=X, w=W, v=V)
    if left:
        return p.returns(product(p, product(p, "x", "w", 4, 6, 5), "v", 4, 5, 3, **given))
    wv = product(p, "w", "v", 6, 5, 3)
    return p.returns(product(p, "x", wv, 4, 6, 3, **given))


def mistaken(wrap: str, by: str = "add", k: int = 6, start: int = 0) -> str:
    p = Program(x=X, w=W, v=V)
    ins = [f"x[d0, d2 + {start}]", f"w[d2 + {start}, d1]"]
    y = p.op((4, 5, k), "mmf", ins, wrap, by=by)
    return p.returns(product(p, y, "v", 4, 5, 3))


CHAIN = Family(
    "chain of products",
    chain(),
    {
        "associated to the right": chain(left=False),
        "split": chain(left=False, shards=SPLIT),
        "factors swapped": mistaken("b * a"),
    },
    {
        "a sum for a product": mistaken("a + b"),
        "maximum for sum": mistaken("a * b", "max"),
        "the last cell dropped": mistaken("a * b", k=5),
        "the first cell dropped": mistaken("a * b", k=5, start=1),
        "divided": mistaken("a / b"),
    },
)


def embedding(
    wrap: str = "where(i2 == b, a, 0.0)", by: str = "add", table: str = "w[d2, d1]"
) -> str:
    p = Program("t", t=(4,), w=(5, 3))
    return p.returns(p.op((4, 3, 5), "mmf", [table, "t[d0]"], wrap, by=by))


def one_hot(wrap: str = "where(i1 == a, 1.0, 0.0)") -> str:
    p = Program("t", t=(4,), w=(5, 3))
    hot = p.op((4, 5), "mm", ["t[d0]"], wrap)
    return p.returns(product(p, hot, "w", 4, 5, 3))


EMBEDDING = Family(
    "embedding",
    embedding(),
    {"one-hot product": one_hot(), "other way round": embedding("where(b == i2, a, 0.0)")},
    {
        "off by one": embedding("where(i2 == b + 1, a, 0.0)"),
        "maximum for sum": embedding(by="max"),
        "rows up to it": one_hot("where(i1 <= a, 1.0, 0.0)"),
        "reversed table": embedding(table="w[4 - d2, d1]"),
        "twos for ones": one_hot("where(i1 == a, 2.0, 0.0)"),
    },
)


def window(read: str = "x[d0 + d1 - 1] clip 0.0 : f32", w: str = "w[d1]", by: str = "add") -> str:
    p = Program(x=(8,), w=(3,))
    return p.returns(p.op((8, 3), "mf", [read, w], "a * b", by=by))


def as_matrix(edge: str = "i0 + b == i1 + 1") -> str:
    """The window as a product with a band matrix of its weights."""
    p = Program(x=(8,), w=(3,))
    band = p.op((8, 8, 3), "mmf", ["w[d2]"], f"where({edge.replace('b', 'i2')}, a, 0.0)", by="add")
    return p.returns(p.op((8, 8), "mf", ["x[d1]", f"{band}[d0, d1]"], "a * b", by="add"))


WINDOW = Family(
    "window with a halo",
    window(),
    {
        "as a band matrix": as_matrix(),
        "weights and cells": window().replace("mulf %a, %b", "mulf %b, %a"),
    },
    {
        "shifted": window("x[d0 + d1] clip 0.0 : f32"),
        "flipped weights": window(w="w[2 - d1]"),
        "filled with ones": window("x[d0 + d1 - 1] clip 1.0 : f32"),
        "band off by one": as_matrix("i0 + b == i1"),
    },
)

FAMILIES = [CHAIN, EMBEDDING, WINDOW]

"""Functions of single cells, and scans."""

from __future__ import annotations

from tests.proving.building import Program
from tests.proving.cases import Family

ROWS = (3, 6)


def cells(body: str, **given: str) -> str:
    p = Program(x=ROWS, y=ROWS)
    return p.returns(p.op(ROWS, "mm", ["x[d0, d1]", "y[d0, d1]"], body, **given))


GELU = Family(
    "gelu",
    cells("0.5 * a * (1.0 + erf(a * 0.70710678))"),
    {
        "by a division": cells("a * (1.0 + erf(a / sqrt(2.0))) / 2.0"),
        "by oddness": cells("a / 2.0 - a * erf(-a * sqrt(0.5)) / 2.0"),
    },
    {
        "by tanh": cells("0.5 * a * (1.0 + tanh(0.7978846 * (a + 0.044715 * a * a * a)))"),
        "without the half": cells("a * (1.0 + erf(a * 0.70710678))"),
        "without the root": cells("0.5 * a * (1.0 + erf(a))"),
    },
)

SILU = Family(
    "silu",
    cells("a / (1.0 + exp(-a))"),
    {
        "by tanh": cells("a * (0.5 + 0.5 * tanh(a * 0.5))"),
        "by the positive exponential": cells("a * exp(a) / (exp(a) + 1.0)"),
    },
    {"of the other sign": cells("a / (1.0 + exp(a))"), "sigmoid": cells("1.0 / (1.0 + exp(-a))")},
)

SOFTPLUS = Family(
    "softplus",
    cells("log(1.0 + exp(a))"),
    {
        "stable": cells("max(a, 0.0) + log1p(exp(-abs(a)))"),
        "shifted": cells("a + log(1.0 + exp(-a))"),
    },
    {"the linear part missing": cells("log1p(exp(-abs(a)))"), "relu": cells("max(a, 0.0)")},
)

RELU = Family(
    "relu",
    cells("max(a, 0.0)"),
    {
        "selected": cells("where(a > 0.0, a, 0.0)"),
        "by the absolute value": cells("(a + abs(a)) / 2.0"),
        "by a root": cells("(a + sqrt(a * a)) * 0.5"),
    },
    {
        "minimum": cells("min(a, 0.0)"),
        "branches swapped": cells("where(a > 0.0, 0.0, a)"),
        "identity": cells("a"),
        "leaky": cells("where(a > 0.0, a, a * 0.01)"),
        "edge elsewhere": cells("where(a > 1.0, a, 0.0)"),
    },
)

DIFFERENCE = Family(
    "difference of squares",
    cells("(a - b) * (a + b)"),
    {"expanded": cells("a * a - b * b")},
    {
        "operands swapped": cells("(b - a) * (a + b)"),
        "square of the difference": cells("(a - b) * (a - b)"),
        "a constant off": cells("(a - b) * (a + b) + 1.0e-10"),
    },
)


def running(kinds: str = "ms", by: str = "add", wrap: str = "a", **given: str) -> str:
    p = Program(x=ROWS)
    return p.returns(p.op(ROWS, kinds, ["x[d0, d1]"], wrap, by=by, **given))


def triangle(edge: str = "i1 >= i2") -> str:
    p = Program(x=ROWS)
    ins = ["x[d0, d2]"]
    return p.returns(p.op((3, 6, 6), "mmf", ins, f"where({edge}, a, 0.0)", by="add"))


SCAN = Family(
    "running sum",
    running(),
    {
        "as a masked fold": triangle(),
        "split": running(shards="grid [[0, 2, 3], [0, 1, 4, 6]]"),
        "logarithm of products": running(by="mul", wrap="exp(a)", unwrap="log(p)"),
    },
    {
        "exclusive": triangle("i1 > i2"),
        "backwards": triangle("i2 >= i1"),
        "over the other axis": running("sm"),
        "maximum": running(by="max"),
    },
)

FAMILIES = [GELU, SILU, SOFTPLUS, RELU, DIFFERENCE, SCAN]

"""Every operation of a body on every type at special values: tiles mean what arrays mean.

Operands are two variables, a variable and a constant either way round, and two constants. Integers,
comparisons, conversions, arithmetic and rounding agree bit for bit; functions to a few units in the
last place, which `ULPS` states.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import arith, math

from tapestry.algebra.scalars import has_meaning
from tests.runtime.agreement import Case, check, dtype_of


def names(dialect: str, words: str) -> list[str]:
    """Operations of a dialect."""
    return [f"{dialect}.{word}" for word in words.split()]


FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i1", "i8", "i16", "i32", "i64"]

EXACT = names("arith", "negf") + names("math", "absf ceil floor round roundeven trunc sqrt")
FUNCTIONS = names(
    "math",
    "acos acosh asin asinh atan atanh cbrt cos cosh erf exp exp2 expm1 log log10 log1p log2 rsqrt "
    "sin sinh tan tanh",
)
BINARY = names("arith", "addf subf mulf divf maximumf minimumf maxnumf minnumf")
BINARY += names("math", "copysign atan2 powf")
BINARY_INTEGER = names(
    "arith",
    "addi subi muli divsi divui floordivsi ceildivsi ceildivui remsi remui maxsi maxui minsi minui "
    "andi ori xori shli shrsi shrui",
)
UNARY_INTEGER = names("math", "absi ctlz cttz ctpop")
FLOAT_ORDERS = names("cmpf", "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true")
INTEGER_ORDERS = names("cmpi", "eq ne slt sle sgt sge ult ule ugt uge")

ULPS = {"math.powf": {"f64": 1000.0}, "math.atan2": {}}
"""Powers of f64 go through logarithms of f64: their error grows with the exponent."""

LOOSE = 8.0


def compared(order: str) -> str:
    """A comparison as it is written before its operands: `arith.cmpf oeq,`."""
    return f"arith.{order.replace('.', ' ')},"


def ulps(op: str, kind: str) -> float | None:
    """How many units in the last place apart an operation's results may be."""
    if op in FUNCTIONS:
        return LOOSE
    return ULPS[op].get(kind, LOOSE) if op in ULPS else None


def float_values(kind: str) -> np.ndarray:
    """Zeros, halves, extremes and what is just beside them."""
    dtype = dtype_of(kind)
    info = ml_dtypes.finfo(dtype)
    plain = [0.0, 1.0, 0.5, 1.5, 2.5, 1 / 3, 100.7, 3e-3, 3.14159, 7.0, 127.5, 128.0, 255.5]
    plain += [np.inf, float(info.max), float(info.smallest_normal), float(info.smallest_subnormal)]
    plain += [2.0**31, 2.0**32, 2.0**63, 2.0**64, 8388609.0, 0.49999997, 1e-5]
    with np.errstate(all="ignore"):
        values = np.array([*plain, *(-x for x in plain), np.nan]).astype(dtype)
        half = np.nextafter(dtype.type(0.5), dtype.type(0))
    return np.append(values, [half, -half]).astype(dtype)


def integer_values(kind: str) -> np.ndarray:
    """Small numbers, and the bounds of the type with what is beside them."""
    if kind == "i1":
        return np.array([False, True])
    low = -(1 << (int(kind[1:]) - 1))
    return np.array([0, 1, -1, 2, 3, -3, 7, -7, 8, 63, 100, -low - 1, low, low + 1], dtype_of(kind))


def values_of(kind: str) -> np.ndarray:
    """The special values of a type."""
    return integer_values(kind) if kind.startswith("i") else float_values(kind)


def written(value: np.generic, kind: str) -> str:
    """A value as a constant in IR; floats by their bits."""
    if kind == "i1":
        return "true" if value else "false"
    if kind.startswith("i"):
        return f"{int(value)} : {kind}"
    bits = np.asarray(value).view(f"u{value.dtype.itemsize}").item()
    return f"0x{bits:0{2 * value.dtype.itemsize}X} : {kind}"


def constants_of(kind: str, every: bool) -> list[str]:
    """The special values as constants, or some of them."""
    values = values_of(kind)
    chosen = values if every or len(values) < 16 else values[[0, 1, 2, 13, 14, 16, 24, 26, 48]]
    return [written(value, kind) for value in chosen]


def with_constants(op: str, kind: str, result: str, every: bool) -> list[Case]:
    """A binary operation with a constant on either side, and on both."""
    bound = ulps(op, kind)
    cases: list[Case] = []
    constants = constants_of(kind, every)
    for number, constant in enumerate(constants):
        x = f"%x = arith.constant {constant}"
        y = f"%y = arith.constant {constants[number - 1]}"
        cases += [
            Case(f"{x} %v = {op} %a, %x : {kind}", result, bound),
            Case(f"{x} %v = {op} %x, %a : {kind}", result, bound),
            Case(f"{x} {y} %v = {op} %x, %y : {kind}", result, bound),
        ]
    return cases


def grid(kind: str) -> list[np.ndarray]:
    """Every pair of special values, as two vectors."""
    values = values_of(kind)
    first, second = np.meshgrid(values, values)
    return [first.ravel(), second.ravel()]


@pytest.mark.parametrize("kind", FLOATS)
def test_floats(kind):
    cases = [Case(f"%v = {op} %a : {kind}", kind, ulps(op, kind)) for op in [*EXACT, *FUNCTIONS]]
    cases += [Case(f"%v = {op} %a, %b : {kind}", kind, ulps(op, kind)) for op in BINARY]
    cases += [Case(f"%v = {compared(p)} %a, %b : {kind}", "i1") for p in FLOAT_ORDERS]
    cases += [
        Case(f"%c = arith.cmpf ult, %a, %b : {kind} %v = arith.select %c, %a, %b : {kind}", kind),
        Case(f"%v = math.fma %a, %b, %a : {kind}", kind),
        Case(f"%v = math.fma %a, %a, %b : {kind}", kind),
        Case(f"%w = math.fma %a, %b, %b : {kind} %v = arith.negf %w : {kind}", kind),
    ]
    check([kind, kind], grid(kind), cases)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind):
    cases = [Case(f"%v = {op} %a, %b : {kind}", kind) for op in BINARY_INTEGER]
    cases += [Case(f"%v = {op} %a : {kind}", kind) for op in UNARY_INTEGER]
    cases += [Case(f"%v = {compared(p)} %a, %b : {kind}", "i1") for p in INTEGER_ORDERS]
    lines = f"%c = arith.cmpi ult, %a, %b : {kind} %v = arith.select %c, %b, %a : {kind}"
    check([kind, kind], grid(kind), [*cases, Case(lines, kind)])


def check_constants(kind: str, every: bool) -> None:
    floats = kind in FLOATS
    cases: list[Case] = []
    for op in BINARY if floats else BINARY_INTEGER:
        cases += with_constants(op, kind, kind, every)
    for predicate in FLOAT_ORDERS if floats else INTEGER_ORDERS:
        cases += with_constants(compared(predicate), kind, "i1", every)
    for op in [*EXACT, *FUNCTIONS] if floats else UNARY_INTEGER:
        for constant in constants_of(kind, every):
            lines = f"%x = arith.constant {constant} %v = {op} %x : {kind}"
            cases.append(Case(lines, kind, ulps(op, kind)))
    for start in range(0, len(cases), 400):
        check([kind], [values_of(kind)], cases[start : start + 400])


@pytest.mark.parametrize("kind", ["f32", "i1", "i8"])
def test_constants(kind):
    check_constants(kind, every=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_every_constant(kind):
    check_constants(kind, every=True)


def conversions(source: str) -> list[Case]:
    """Every conversion of a type."""
    floats = source in FLOATS
    width = 16 if source == "bf16" else int(source[1:])
    pairs: list[tuple[str, str]] = []
    if floats:
        pairs += [(op, kind) for op in ("fptosi", "fptoui") for kind in INTEGERS]
        pairs += [("extf", kind) for kind in ("f32", "f64") if int(kind[1:]) > width]
        pairs += [("truncf", k) for k in FLOATS if (16 if k == "bf16" else int(k[1:])) < width]
        pairs += [("bitcast", f"i{width}")]
    else:
        pairs += [(op, kind) for op in ("sitofp", "uitofp") for kind in FLOATS]
        for kind in INTEGERS:
            if int(kind[1:]) > width:
                pairs += [("extsi", kind), ("extui", kind)]
            elif int(kind[1:]) < width:
                pairs.append(("trunci", kind))
        same = {"i16": ["f16", "bf16"], "i32": ["f32"], "i64": ["f64"]}.get(source, [])
        pairs += [("bitcast", kind) for kind in same]
    return [Case(f"%v = arith.{op} %a : {source} to {kind}", kind) for op, kind in pairs]


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_conversions(kind):
    cases = conversions(kind)
    for constant in constants_of(kind, every=False):
        for case in conversions(kind):
            lines = case.lines.replace("%a ", "%x ")
            cases.append(Case(f"%x = arith.constant {constant} {lines}", case.result))
    check([kind], [values_of(kind)], cases)


def test_nothing_is_left_out():
    tested = {*EXACT, *FUNCTIONS, *BINARY, *BINARY_INTEGER, *UNARY_INTEGER, "math.fma"}
    # Casts to and from index are tests/end_to_end/test_dtypes.py's.
    tested |= {"arith.constant", "arith.select", "arith.cmpf", "arith.cmpi", "arith.index_cast"}
    for kind in [*FLOATS, *INTEGERS]:
        tested |= {case.lines.split()[2] for case in conversions(kind)}
    meant = {op.name for d in (arith.Arith, math.Math) for op in d.operations if meaning(op)}
    assert tested == meant


def meaning(kind):
    return has_meaning(kind.__new__(kind))

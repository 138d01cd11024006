"""Every elementwise function of the library as a compiled kernel, beside NumPy in float64.

    python benchmarks/_gpu_functions.py table.json             # on the GPU
    python benchmarks/_gpu_functions.py table.json --on numpy  # what rounding alone costs

Each function of one or two floats is computed in four dtypes at special values (zeros, infinities,
NaN, the smallest and the largest numbers, whole numbers and halves) and over wide ranges: all
numbers of 16 bits, and of the wider types random bits, small ranges and angles of any size. The
error is in units in the last place of the dtype, those of the smallest normal number at least. What
is infinite, NaN or a zero of another sign in one alone is wrong; zero for what is below the
smallest normal number is not. NumPy in the same dtype stands beside: what is far from float64 there
too is the formula's, which cancels, not the kernel's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tapestry
from tapestry.diagnostics import TapestryError
from tapestry.metakernels import load_library
from tapestry.metakernels.templates import Template

DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
CELLS = 1 << 16
TOGETHER = 8
"""Functions of one program: they are fused, so this is how many a kernel computes."""
WORKERS = 15
SLACK = 4.0
"""Units in the last place from which a function is wrong, beside what `limit` adds."""
CANCELLING = ("tanhshrink",)
"""Differences of numbers that are nearly equal: any rounding of these is all that is left."""
MORE_BITS = 2.0**29
"""How much finer float64 is than float32."""


@dataclass(frozen=True)
class Row:
    """One function in one dtype: the greatest errors in units in the last place, and where.

    `numpy` is NumPy's error in the same dtype, for float64 in float32; `alone` the kernel's where
    NumPy's is below two. `unlike` counts cells where one is finite and the other is not, or zeros
    whose signs differ; `flushed` those that are zero where a number below the smallest normal one
    is right.
    """

    function: str
    dtype: str
    ulps: float
    numpy: float
    alone: float
    unlike: int
    flushed: int
    at: str
    right: bool


def functions() -> dict[str, int]:
    """The elementwise functions of the library of one or two floats, and of how many."""
    found: dict[str, int] = {}
    library = load_library()
    for name in library.names:
        template = library.get(name)
        if _is_elementwise(template) and hasattr(tapestry, name):
            with suppress(TapestryError):  # one of integers, or of matrices
                program([name], len(template.inputs), "float32", "numpy")
                found[name] = len(template.inputs)
    return found


def _is_elementwise(template: Template) -> bool:
    one_result = len(template.outputs) == 1 and len(template.wrap) == 1
    plain = not (
        template.folds
        or template.scans
        or template.steps
        or template.family
        or template.external
        or template.unwrap
        or template.domain
        or any(parameter.default is None for parameter in template.parameters)
    )
    dtypes = [one.dtype.text.text if one.dtype else "" for one in template.inputs]
    floats = all(not text.endswith(("int", "bool", "i1", "i64", "i32")) for text in dtypes)
    shapes = [one.shape.text.text.count("...") == 1 for one in template.inputs]
    simple = not any(one.optional or one.each for one in template.inputs)
    return one_result and plain and floats and simple and all(shapes) and len(dtypes) in (1, 2)


def cells(dtype: np.dtype[Any], count: int) -> tuple[np.ndarray, ...]:
    """What functions of `count` numbers are computed at."""
    rng = np.random.default_rng(7)
    special = _special(dtype)
    if count == 2:
        pairs = np.array(list(product(special, special)), dtype).T
        rest = CELLS - pairs.shape[1]
        near = rng.uniform(-20, 20, (2, rest // 3))
        whole = np.round(rng.uniform(-60, 60, (2, rest // 3)))
        wide = [_bits(dtype, rng, rest - 2 * (rest // 3)).astype(dtype) for _ in range(2)]
        parts = [pairs, near.astype(dtype), whole.astype(dtype), np.stack(wide)]
        return tuple(np.concatenate(parts, axis=1))
    if dtype.itemsize == 2:
        return (np.arange(1 << 16, dtype=np.uint16).view(dtype),)
    rest = CELLS - len(special)
    ranges = [rng.uniform(-a, a, rest // 8) for a in (1e-3, 1, 2, 10, 100, 1e4, 1e7)]
    numbers = np.concatenate([special, *ranges])
    return (np.concatenate([numbers, _bits(dtype, rng, CELLS - len(numbers))]).astype(dtype),)


def _special(dtype: np.dtype[Any]) -> np.ndarray:
    info = ml_dtypes.finfo(dtype)
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, 49.0, 88.0, 0.1, np.pi, np.pi / 2, 1e-4]
    ends = [info.smallest_subnormal, info.tiny, info.max, info.eps, np.inf]
    sizes += [float(end) for end in ends] + [float(info.tiny) / 8, 1 + float(info.eps)]
    return np.array([*sizes, *(-size for size in sizes), np.nan]).astype(dtype).astype(np.float64)


def _bits(dtype: np.dtype[Any], rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of any exponent, as float64."""
    raw = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    return np.where(np.isnan(raw), dtype.type(1), raw).astype(np.float64)


def groups(names: Sequence[str] | None = None) -> Iterator[tuple[str, int, list[str]]]:
    """Dtype, how many inputs, and functions that run as one program."""
    known = functions()
    for dtype, count in product(DTYPES, (1, 2)):
        some = [n for n, c in known.items() if c == count and (names is None or n in names)]
        for start in range(0, len(some), TOGETHER):
            yield dtype, count, some[start : start + TOGETHER]


def program(names: Sequence[str], count: int, dtype: str, on: str) -> Any:
    """What computes some functions of the same numbers."""
    given = [tapestry.input(name, (CELLS,), dtype) for name in "xy"[:count]]
    return tapestry.compile([getattr(tapestry, name)(*given) for name in names], on=on)


def rows_of(dtype: str, count: int, names: Sequence[str], on: str) -> list[Row]:
    """The functions of one group, checked."""
    given = dict(zip("xy", cells(DTYPES[dtype], count), strict=False))
    wide = {name: one.astype(np.float64) for name, one in given.items()}
    with np.errstate(all="ignore"):
        exact = _list(program(names, count, "float64", "numpy")(**wide))
        same = _list(program(names, count, dtype, "numpy")(**given))
        found = _list(program(names, count, dtype, on)(**given))
        beside = [rounding(*results) for results in zip(exact, same, strict=True)]
        if dtype == "float64":
            short = {name: one.astype(np.float32) for name, one in given.items()}
            wide = {name: one.astype(np.float64) for name, one in short.items()}
            exactly = _list(program(names, count, "float64", "numpy")(**wide))
            roughly = _list(program(names, count, "float32", "numpy")(**short))
            beside = [rounding(*results) for results in zip(exactly, roughly, strict=True)]
        return [
            row(name, dtype, given, *results)
            for name, *results in zip(names, exact, same, found, beside, strict=True)
        ]


def rounding(exact: np.ndarray, rounded: np.ndarray) -> float:
    """The greatest finite error of NumPy's own."""
    if rounded.dtype.kind in "biu":
        return 0.0
    errors = ulps(exact, rounded)
    return float(np.where(np.isfinite(errors), errors, 0.0).max())


def limit(dtype: str, exact: np.ndarray, numpy: float) -> np.ndarray:
    """The errors from which results are wrong.

    What NumPy's rounding makes of a formula is not the kernel's fault; where it cancels, it leaves
    as much more in float64 as that is finer. Exponentials are powers of two on a GPU, whose
    exponents are rounded: far from 1 they are off by as many units as their logarithm.
    """
    size = np.abs(np.where(np.isfinite(exact) & (exact != 0), exact, 1.0))
    formula = numpy * (MORE_BITS if dtype == "float64" and numpy > 1e3 else 1.0)
    far = np.abs(np.log(size)) if dtype.endswith(("32", "64")) else 0.0
    return SLACK + 2 * formula + 2 * far


def _list(results: Any) -> list[np.ndarray]:
    return [
        np.asarray(one) for one in (results if isinstance(results, tuple | list) else [results])
    ]


def row(
    name: str,
    dtype: str,
    given: dict[str, np.ndarray],
    exact: np.ndarray,
    same: np.ndarray,
    found: np.ndarray,
    beside: float,
) -> Row:
    """How far `found` is from `exact`."""
    kind = found.dtype
    if kind.kind not in "fV" and kind != DTYPES["bfloat16"]:
        wrong = found.astype(np.float64) != same.astype(np.float64)
        return _row(name, dtype, given, np.where(wrong, np.inf, 0.0), 0 * found, found, exact, 0.0)
    mine, numpy = ulps(exact, found), ulps(exact, same)
    # Where NumPy in this dtype is not finite either, or has that sign, it is the formula's doing.
    agreed = np.isinf(mine) & (ulps(same.astype(np.float64), found) == 0)
    mine = np.where(agreed, 0.0, mine)
    return _row(name, dtype, given, mine, numpy, found, exact, beside)


def _row(
    name: str,
    dtype: str,
    given: dict[str, np.ndarray],
    errors: np.ndarray,
    numpy: np.ndarray,
    found: np.ndarray,
    exact: np.ndarray,
    beside: float,
) -> Row:
    finite = np.isfinite(errors)
    excess = np.where(finite, errors - limit(dtype, exact, beside), -np.inf)
    worst = int(np.argmax(excess))
    unlike = np.flatnonzero(~finite)
    at = [int(unlike[0])] if len(unlike) else []
    said = "; ".join(
        f"{', '.join(repr(float(one[i])) for one in given.values())}: {float(found[i])!r} for "
        f"{float(exact[i])!r}"
        for i in [*at, worst]
    )
    greatest = float(np.where(finite, errors, 0.0).max())
    tiny = float(ml_dtypes.finfo(DTYPES[dtype]).tiny)
    below = (np.abs(exact) < tiny) & (np.abs(exact) > tiny / 1e3)
    flushed = int((below & (found.astype(np.float64) == 0)).sum())
    alone = float(np.where(finite & (numpy < 2), errors, 0.0).max())
    right = not len(unlike) and (excess[worst] <= 0 or name in CANCELLING)
    return Row(name, dtype, greatest, beside, alone, len(unlike), flushed, said, right)


def ulps(exact: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Units in the last place of `found`'s dtype between it and float64; infinite where unlike."""
    info = ml_dtypes.finfo(found.dtype)
    got, wanted = found.astype(np.float64), exact.astype(found.dtype).astype(np.float64)
    size = np.maximum(np.abs(exact), float(info.tiny))
    unit = np.ldexp(float(info.eps), np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1)
    error = np.abs(got - np.where(np.isfinite(wanted), exact, wanted)) / unit
    # Beyond the largest number by less than a few of its units, infinity is near.
    near_end = np.isinf(got) != np.isinf(wanted)
    edge = near_end & (np.minimum(np.abs(got), np.abs(wanted)) > 0.9999 * float(info.max))
    error = np.where(edge, 1.0, error)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    error = np.where(same & ~np.isfinite(wanted), 0.0, error)
    # A GPU may take numbers below the smallest normal one for zero, and their functions too.
    flushed = (got == 0) & (np.abs(exact) <= 2 * float(info.tiny))
    error = np.where(flushed, 0.0, error)
    signs = (got == 0) & (wanted == 0) & (exact == 0) & (np.signbit(got) != np.signbit(wanted))
    return np.where(np.isnan(error) | signs, np.inf, error)


def checked(group: tuple[str, int, list[str]], on: str) -> list[Row] | str:
    """The rows of a group, or what failed."""
    try:
        return rows_of(*group, on)
    except Exception as error:  # noqa: BLE001 - the table says what failed
        return f"{group}: {type(error).__name__}: {error}"[:600]


def functions_table(on: str = "triton", names: Sequence[str] | None = None) -> dict[str, Any]:
    """A row for each function and dtype, the worst first."""
    every = list(groups(names))
    # Processes, because lowering takes as long as compiling.
    with ProcessPoolExecutor(min(WORKERS, os.cpu_count() or 1), get_context("fork")) as pool:
        found = list(pool.map(partial(checked, on=on), every))
    problems = [one for one in found if isinstance(one, str)]
    rows = [row for one in found if not isinstance(one, str) for row in one]
    rows.sort(key=lambda one: (one.right, -one.unlike, -one.alone))
    right = sum(one.right for one in rows)
    return {
        "rows": [asdict(one) for one in rows],
        "problems": problems,
        "summary": f"{right} of {len(rows)} functions right",
        "ok": right == len(rows) and not problems,
    }


def main() -> int:
    """Write the table and show the worst."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--on", default="triton")
    parser.add_argument("--shown", type=int, default=60)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    table = functions_table(asked.on, asked.names or None)
    asked.table.write_text(json.dumps(table, indent=1))
    for one in table["rows"][: asked.shown]:
        errors = " ".join(f"{one[name]:9.3g}" for name in ("ulps", "numpy", "alone"))
        counts = f"unlike {one['unlike']}, flushed {one['flushed']}"
        wrong = "" if one["right"] else " WRONG"
        print(f"{one['function']:20}{one['dtype']:9}{errors} ulp, {counts}{wrong}; {one['at']}")
    print(*table["problems"], sep="\n")
    print(table["summary"])
    return 0 if table["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())

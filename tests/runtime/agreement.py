"""One body on two executors: what many operations make of special values.

    check(["f32", "f32"], arrays, [Case("%v = arith.addf %a, %b : f32", "f32")])

All cases share one operation with an output each, because the interpreter pays per kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.executor import Array, NoWatch, find_executor


@dataclass(frozen=True)
class Case:
    """Lines of a body that define %v from %a, %b, ..., the type of %v, how close it must be.

    `ulps` is None where every bit counts, NaN aside.
    """

    lines: str
    result: str
    ulps: float | None = None


def dtype_of(kind: str) -> np.dtype:
    """The NumPy dtype of the element type written `kind`."""
    element = type_named(kind)
    assert element is not None
    return numpy_dtype(element)


def program(kinds: Sequence[str], size: int, cases: Sequence[Case]) -> str:
    """A function of vectors %ta, %tb, ... with one operation that has an output per case."""

    def tensor(kind: str) -> str:
        return f"!loom.tensor<[0] : [{size}], {kind}>"

    names = "abc"[: len(kinds)]
    arguments = ", ".join(f"%t{n}: {tensor(k)}" for n, k in zip(names, kinds, strict=True))
    ins = ", ".join(f"%t{n} : (d0) -> (d0)" for n in names)
    cells = ", ".join(f"%{n}: {k}" for n, k in zip(names, kinds, strict=True))
    lines: list[str] = []
    for number, case in enumerate(cases):
        words = case.lines.replace("%", f"%n{number}_")
        for name in names:
            words = words.replace(f"%n{number}_{name} ", f"%{name} ")
            words = words.replace(f"%n{number}_{name},", f"%{name},")
        lines.append(words)
    results = [case.result for case in cases]
    values = ", ".join(f"%n{number}_v" for number in range(len(cases)))
    outs = ", ".join(["(d0) -> (d0)"] * len(cases))
    types = ", ".join(map(tensor, results))
    named = ", ".join(f"%r{number}" for number in range(len(cases)))
    return f"""
func.func @main({arguments}) -> ({types}) {{
  {named} = loom.operation @body over <[0] : [{size}]> [map] ins({ins}) outs({outs})
    wrap ({cells}) {{
      {" ".join(lines)}
      loom.yield {values} : {", ".join(results)}
    }} : ({", ".join(map(tensor, kinds))}) -> ({types})
  func.return {named} : {types}
}}
"""


def check(kinds: Sequence[str], arrays: Sequence[Array], cases: Sequence[Case]) -> None:
    """Assert that the triton executor computes what the reference does."""
    module = parse_text(program(kinds, len(arrays[0]), cases))
    verify_module(module)
    names = "abc"[: len(kinds)]
    inputs = {f"t{name}": array for name, array in zip(names, arrays, strict=True)}
    wants = find_executor("reference").run(module, inputs, NoWatch()).outputs
    gots = find_executor("triton").run(module, inputs, NoWatch()).outputs
    wrong: list[str] = []
    for case, want, got in zip(cases, wants, gots, strict=True):
        assert got.dtype == want.dtype
        bad = ~agree(got, want, case.ulps)
        if np.any(bad):
            cells = [(*(str(a[i]) for a in arrays), got[i], want[i]) for i in np.flatnonzero(bad)]
            shown = "; ".join(f"{cell[:-2]} gives {cell[-2]}, not {cell[-1]}" for cell in cells[:4])
            wrong.append(f"{case.lines}: {shown}")
    assert not wrong, "\n".join(wrong)


def agree(got: Array, want: Array, ulps: float | None) -> Array:
    """Where two arrays agree: bit for bit, or to some units in the last place; NaN is NaN."""
    if got.dtype.kind in "iub":
        return got == want
    a, b = got.astype(np.float64), want.astype(np.float64)
    nan = np.isnan(a) & np.isnan(b)
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    if ulps is None:
        return nan | same
    kind = ml_dtypes.finfo(want.dtype)
    with np.errstate(all="ignore"):
        bound = ulps * float(kind.eps) * np.abs(b) + float(kind.smallest_normal)
        return nan | (a == b) | (np.abs(a - b) <= bound)

# pyright: basic
"""Every operation of a body in compiled loops, on every type at special values, as on arrays.

Integers, comparisons, conversions, arithmetic and rounding agree bit for bit, functions to a few
units in the last place. What loops do not take is between them on NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tests.runtime.agreement import Case, agree, program
from tests.runtime.triton import test_scalar_agreement as scalars

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def check(kinds: Sequence[str], arrays: Sequence[Array], cases: Sequence[Case]) -> None:
    """Assert that loops compute what the reference does, in parts whose last is no whole vector."""
    module = parse_text(program(kinds, len(arrays[0]), cases))
    verify_module(module)
    inputs = {f"t{name}": array for name, array in zip("abc", arrays, strict=False)}
    wants = find_executor("reference").run(module, inputs, NoWatch()).outputs
    parts = partial(in_parts, small=0, threads=2, cache=1 << 16, loops=Loops(0))
    prepared = PreparedProgram(module, parts=parts)
    first, gots = prepared(arrays), prepared(arrays)
    for case, want, before, got in zip(cases, wants, first, gots, strict=True):
        assert got.dtype == want.dtype
        assert got.tobytes() == before.tobytes(), case.lines
        bad = np.flatnonzero(~agree(got, want, case.ulps))
        cells = [(*(str(a[i]) for a in arrays), got[i], want[i]) for i in bad[:4]]
        assert not cells, f"{case.lines}: operands, result, and what it should be: {cells}"


@pytest.fixture(autouse=True)
def in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others check on kernels is checked in loops here."""
    monkeypatch.setattr(scalars, "check", check)


@pytest.mark.parametrize("kind", scalars.FLOATS)
def test_floats(kind: str) -> None:
    scalars.test_floats(kind)


@pytest.mark.parametrize("kind", scalars.INTEGERS)
def test_integers(kind: str) -> None:
    scalars.test_integers(kind)


@pytest.mark.parametrize("kind", [*scalars.FLOATS, *scalars.INTEGERS])
def test_conversions(kind: str) -> None:
    scalars.test_conversions(kind)


@pytest.mark.parametrize("kind", [*scalars.FLOATS, *scalars.INTEGERS])
def test_random_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats of every size; integers of every pattern of bits."""
    random, dtype = np.random.default_rng(0), scalars.values_of(kind).dtype
    if kind in scalars.FLOATS:
        sizes = np.exp(random.uniform(-12, 12, (2, 4000))) * random.choice([-1, 1], (2, 4000))
        with np.errstate(all="ignore"):
            arrays = list(sizes.astype(dtype))
    else:
        high = 1 if kind == "i1" else 255
        bits = random.integers(0, high, (2, 4000 * dtype.itemsize), np.uint8, endpoint=True)
        arrays = list(bits.view(dtype))
    monkeypatch.setattr(scalars, "grid", lambda _: arrays)
    (scalars.test_floats if kind in scalars.FLOATS else scalars.test_integers)(kind)

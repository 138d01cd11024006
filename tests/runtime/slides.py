"""Sums over windows as they are defined, and drawn examples of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Slide


@dataclass(frozen=True)
class Example:
    """A signal and a kernel of small whole numbers, whose sums are exact in any order."""

    signal: Array
    kernel: Array
    slides: list[Slide]

    def sums(self) -> Array:
        """The sums, point by point."""
        cells = [slide.cells for slide in self.slides]
        (batch, rows), columns = self.signal.shape[:2], self.kernel.shape[1]
        made = np.zeros((batch, rows, columns, *cells), self.signal.dtype)
        for at in np.ndindex(*cells):
            for step in np.ndindex(self.kernel.shape[3:]):
                where = self._where(at, step)
                if where is not None:
                    left, right = self.signal[(..., *where)], self.kernel[(..., *step)]
                    made[(..., *at)] += np.einsum("bri,bci->brc", left, right)
        return made

    def _where(self, at: Sequence[int], step: Sequence[int]) -> tuple[int, ...] | None:
        places = zip(self.slides, at, step, strict=True)
        where = tuple(s.step * i + s.reach * k + s.start for s, i, k in places)
        extents = self.signal.shape[3:]
        inside = all(0 <= n < extent for n, extent in zip(where, extents, strict=True))
        return where if inside else None


@st.composite
def examples(draw: st.DrawFn, dtypes: Sequence[str]) -> Example:
    """Sums along one to three axes, with padding, strides and dilation; in memory as it comes."""
    axes = draw(st.integers(1, 3))
    batch, rows, inner, columns = (draw(st.integers(1, 3)) for _ in range(4))
    extents = [draw(st.integers(1, 6)) for _ in range(axes)]
    counts = [draw(st.integers(1, 4)) for _ in range(axes)]
    step, start = st.integers(1, 3), st.integers(-4, 4)
    slides = [Slide(draw(st.integers(1, 5)), draw(step), draw(step), draw(start)) for _ in counts]
    source = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from(dtypes))
    shapes = ((batch, rows, inner, *extents), (batch, columns, inner, *counts))
    factors: list[Array] = []
    for shape in shapes:
        order = draw(st.permutations(range(len(shape))))
        stored = source.integers(-5, 6, [shape[axis] for axis in order]).astype(dtype)
        factors.append(stored.transpose(np.argsort(order)))
    return Example(*factors, slides)

"""Sums of products over windows on NumPy: products of shifted views, added up.

    slid(signal, kernel, slides)        # as Library.slide says

The signal is copied once, with its zeros, part by part: so each cell of the kernel meets all of its
cells of the signal in one run of memory, in which what lies between the rows is met too, and left
out of the result. Where a kernel takes steps, cells that are met together are a plane of their own.
Products are of matrices (of cells where there is one term). Windows are copied only where results
are large beside them, and only those of a part.

A kernel with more cells than the result, as that of a gradient, is met by the cells of the result
in the same way; each of those products is a whole sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapestry.runtime.cpu.threads import share, thread_count
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Slide
from tapestry.runtime.prepared.memory import CACHE, empty

_WIDE = 4
"""Columns for each term from which windows are copied: results are large beside them."""

_FEW = 1 << 20
"""Products of cells up to which one thread computes them all."""


def slid(
    signal: Array,
    kernel: Array,
    slides: Sequence[Slide],
    *,
    cache: int | None = None,
    threads: int | None = None,
) -> Array:
    """The sums, in parts of about `cache` bytes on so many threads; by default, as it is best."""
    reached, cells = kernel.shape[3:], tuple(slide.cells for slide in slides)
    if threads is None:
        terms = signal.shape[1] * prod(kernel.shape) * prod(cells)
        threads = 1 if terms <= _FEW else thread_count()
    cache = CACHE if cache is None else cache
    if prod(reached) > prod(cells):
        return _by_results(signal, kernel, slides, cache, threads)
    return _by_kernel(signal, kernel, slides, cache, threads)


@dataclass(frozen=True)
class _Grid:
    """Cells of a signal, as `cells` along each axis meet them in `counts` steps of `reaches`.

    Cell `i` at step `k` meets the one at `step * i + reach * k + start`.
    """

    cells: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    reaches: tuple[int, ...]
    starts: tuple[int, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of a plane: of every `step` cells there is one in each."""
        axes = zip(self.cells, self.steps, self.counts, self.reaches, strict=True)
        return tuple(cells + reach * (n - 1) // step for cells, step, n, reach in axes)

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """Cells of a plane from one along an axis to the next."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.cells)))

    @cached_property
    def run(self) -> int:
        """Cells of a plane from the first to the last that are met at one step."""
        return 1 + sum((n - 1) * pitch for n, pitch in zip(self.cells, self.pitches, strict=True))

    def _plane(self, signal: Array, phase: tuple[int, ...]) -> Array:
        lead = signal.shape[: signal.ndim - len(phase)]
        into, of = [slice(None)] * len(lead), [slice(None)] * len(lead)
        extents = signal.shape[len(lead) :]
        for first, start, step, many, have in zip(
            phase, self.starts, self.steps, self.shape, extents, strict=True
        ):
            low = first + start
            begin = min(many, max(0, -(low // step)))
            end = max(begin, min(many, -(-(have - low) // step)))
            into.append(slice(begin, end))
            at = max(0, low + begin * step)
            of.append(slice(at, max(at, low + (end - 1) * step + 1), step))
        inside = signal[tuple(of)]
        if inside.shape[len(lead) :] != self.shape:
            plane = np.zeros((*lead, *self.shape), signal.dtype)
            plane[tuple(into)] = inside
            inside = plane
        return inside.reshape(*lead, prod(self.shape))

    @cached_property
    def meetings(self) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """The steps, with the plane of each and where in it the run begins that is met."""
        found: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
        for at in np.ndindex(self.counts):
            axes = zip(at, self.reaches, self.steps, strict=True)
            places = [divmod(k * reach, step) for k, reach, step in axes]
            first = sum(n * pitch for (n, _), pitch in zip(places, self.pitches, strict=True))
            found.append((at, tuple(phase for _, phase in places), first))
        return found

    def met(self, signal: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
        """The steps and what is met at each: a run of a plane."""
        planes: dict[tuple[int, ...], Array] = {}
        for at, phase, first in self.meetings:
            if phase not in planes:
                planes[phase] = self._plane(signal, phase)
            yield at, planes[phase][..., first : first + self.run]

    def rows(self, run: Array) -> Array:
        """The cells that count of a run, as many along each axis as there are."""
        inner = run.strides[-1]
        return as_strided(
            run,
            (*run.shape[:-1], *self.cells),
            (*run.strides[:-1], *(inner * pitch for pitch in self.pitches)),
        )


_known = lru_cache(256)(_Grid)


def _by_kernel(
    signal: Array, kernel: Array, slides: Sequence[Slide], cache: int, threads: int
) -> Array:
    """The sums, for each cell of the kernel all products with it."""
    (batch, rows, inner), columns = signal.shape[:3], kernel.shape[1]
    first, *others = slides
    made = empty((batch, rows, columns, *(slide.cells for slide in slides)), signal.dtype)
    counts = kernel.shape[3:]
    few = inner > 1 and _WIDE * inner <= columns
    if few:
        weights = kernel.reshape(batch, columns, inner * prod(counts))
    else:
        weights = np.ascontiguousarray(np.moveaxis(kernel, (0, 1, 2), (-3, -2, -1)))
    held = inner * prod(counts) + columns if few else inner + 2 * columns
    each = held * prod(_grid(slides, counts).shape) * signal.itemsize
    groups, lines = _fitting(batch, first.cells, each, 4 * cache if few else cache, threads)

    def work(at: tuple[int, int, int]) -> None:
        own, row = slice(at[0], at[0] + groups), at[1]
        part = replace(
            first,
            cells=min(lines, first.cells - at[2]),
            start=first.start + first.step * at[2],
        )
        out = made[own, row, :, at[2] : at[2] + lines]
        by = _windows if few else _shifted
        by(_grid([part, *others], counts), signal[own, row], weights[..., own, :, :], out)

    parts = product(range(0, batch, groups), range(rows), range(0, first.cells, lines))
    share(work, list(parts), threads)
    return made


def _shifted(grid: _Grid, signal: Array, weights: Array, out: Array) -> None:
    """Sums of products with shifted views; weights have what is multiplied last."""
    multiply = np.multiply if signal.shape[1] == 1 else np.matmul
    between = grid.run > prod(grid.cells)
    shape = (*out.shape[:2], grid.run)
    total = empty(shape, signal.dtype) if between else out.reshape(shape)
    more: Array | None = None
    for step, met in grid.met(signal):
        if more is None:
            multiply(weights[step], met, out=total)
            more = empty(shape, signal.dtype)
        else:
            multiply(weights[step], met, out=more)
            np.add(total, more, out=total)
    if between:
        out[...] = grid.rows(total)


def _windows(grid: _Grid, signal: Array, weights: Array, out: Array) -> None:
    """One product with windows, where those are small beside the result."""
    batch, inner = signal.shape[:2]
    columns = empty((batch, inner, *grid.counts, *grid.cells), signal.dtype)
    for step, met in grid.met(signal):
        columns[(slice(None), slice(None), *step)] = grid.rows(met)
    terms = columns.reshape(batch, weights.shape[-1], prod(grid.cells))
    np.matmul(weights, terms, out=out.reshape(*out.shape[:2], -1))


def _by_results(
    signal: Array, kernel: Array, slides: Sequence[Slide], cache: int, threads: int
) -> Array:
    """The sums, for each cell of the result one product."""
    (batch, rows, inner), columns = signal.shape[:3], kernel.shape[1]
    cells = tuple(slide.cells for slide in slides)
    turned = [
        Slide(count, slide.reach, slide.step, slide.start)
        for count, slide in zip(kernel.shape[3:], slides, strict=True)
    ]
    first, *others = turned
    each = (2 * rows + columns) * prod(_grid(turned, cells).shape) * signal.itemsize
    groups, lines = _fitting(batch, first.cells, each, cache, threads)
    runs = threads if -(-batch // groups) < threads else 1
    sums = np.zeros((runs, batch, rows, columns, *cells), signal.dtype)

    def add(total: Array, own: slice, image: int, line: int) -> None:
        many = min(lines, first.cells - line)
        part = replace(first, cells=many, start=first.start + first.step * line)
        grid = _grid([part, *others], cells)
        factor = kernel[own, :, image, line : line + many]
        factor = factor.reshape(*factor.shape[:2], prod(grid.cells)).swapaxes(1, 2)
        for at, run in grid.met(signal[own, :, image]):
            met = grid.rows(run).reshape(-1, rows, prod(grid.cells))
            total[(..., *at)] += met @ factor

    def work(at: tuple[int, int]) -> None:
        own = slice(at[1], at[1] + groups)
        for image in range(at[0], inner, runs):
            for line in range(0, first.cells, lines):
                add(sums[at[0], own], own, image, line)

    share(work, list(product(range(runs), range(0, batch, groups))), threads)
    return sums.sum(0, dtype=sums.dtype) if runs > 1 else sums[0]


def _grid(slides: Sequence[Slide], counts: tuple[int, ...]) -> _Grid:
    return _known(
        tuple(slide.cells for slide in slides),
        tuple(slide.step for slide in slides),
        counts,
        tuple(slide.reach for slide in slides),
        tuple(slide.start for slide in slides),
    )


def _fitting(batch: int, lines: int, each: int, cache: int, threads: int) -> tuple[int, int]:
    """How many of a batch, and of the lines of one, fit the cache; each is of so many bytes."""
    groups = max(1, min(batch // threads, cache // each))
    parts = -(-lines // max(1, min(lines, cache * lines // each)))
    return groups, -(-lines // parts)

"""Two programs of one signature, side by side: drawn inputs in, a comparison out.

pair = Pair(a, b, Options())
inputs = pair.draw(CLASSES["generic"], seed=0)
pair.compare(inputs)        # a Difference, None, or why nothing can be said
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import monoid_of
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.proving.certifying import Certificate, certify
from tapestry.proving.comparing import (
    Difference,
    IllConditionedError,
    Outputs,
    first_difference,
    is_real,
)
from tapestry.proving.counterexample import Budget, Counterexample, shrink
from tapestry.proving.covering import BRANCHING
from tapestry.proving.doubled import Doubled, plain
from tapestry.proving.edges import compared_numbers
from tapestry.proving.evaluation import evaluate_program
from tapestry.proving.floats import HAS_WIDE, NARROW, WIDE, Doubts, FloatArithmetic
from tapestry.proving.inputs import CLASSES, Draw, InputClass, draw_inputs
from tapestry.proving.parting import first_parting
from tapestry.proving.stages import work_of
from tapestry.proving.stepping import steps
from tapestry.runtime.arrays.blocks import BlockIndexError
from tapestry.runtime.executor import Array
from tapestry.runtime.program import arguments
from tapestry.runtime.program import outputs as outputs_of

CERTIFYING_DRAWS = 2
"""How many inputs exact arithmetic is run on."""

CERTIFYING_WORK = 1 << 17
"""Points of index spaces, or cells, up to which exact arithmetic is run."""

PEAKS = 16
"""Cells that are made a peak, either way, where many cells of a program are extremes of few."""

MOST_PEAKS = 256
"""Those where few are extremes of many. They are cheap: programs run in float64 alone."""

NAMED = 4
"""Inputs around the numbers that programs compare with."""

_ROUGHLY = 1e-14
"""How far apart sums of float64 in different orders often are, relative to the largest."""


@dataclass(frozen=True)
class Options:
    """How programs are compared: the first seed, seeds per class, and what casts mean.

    `shrinking` and `shrinking_seconds` say how often, and for how long, they may run to make a
    counterexample smaller; `doubled` computes with two float64 for each float, as is needed where
    no float is wider; `metakernels` is a folder of
    templates beside the library's, for programs in weft.
    """

    seed: int = 0
    seeds: int = 3
    round_casts: bool = False
    shrinking: int = 200
    shrinking_seconds: float = 8.0
    doubled: bool = not HAS_WIDE
    metakernels: str | None = None


class Pair:
    """Two programs of one signature, evaluated side by side."""

    def __init__(self, a: ModuleOp, b: ModuleOp, options: Options) -> None:
        self.a, self.b = a, b
        self.options = options
        self._taken = [
            (numpy_dtype(argument.type.element_type), argument.type.box.shape)
            for argument in arguments(a)
        ]
        self._bounds: tuple[int, int] = _integer_bounds(a, b)
        self._are_indices = any(_checked_extents(a, b))
        self.undefined = False
        """Whether some cells that were compared are no numbers."""
        self._defined: set[int] = set()
        self._narrow_bounds()

    def _narrow_bounds(self) -> None:
        """Take fewer integers while indices computed of them leave the blocks that are read.

        Those that count from the end are taken where both programs take them.
        """
        if not self._are_indices:
            return
        low, high = self._bounds
        for bounds in (self._bounds, *_halves((max(low, 0), high))):
            self._bounds = bounds
            if self._stays_inside():
                break

    def _stays_inside(self) -> bool:
        """Whether the programs read inside of blocks on integers of the bounds."""
        drawn = [draw.as_cells(NARROW) for draw in self.draw(CLASSES["generic"], 0)]
        low, high = self._bounds[0], self._bounds[1] - 1
        ends = [
            [np.full_like(x, end) if x.dtype.kind in "iu" else x for x in drawn]
            for end in (low, high)
        ]
        for given in (drawn, *ends):
            try:
                for module in (self.a, self.b):
                    evaluate_program(module, given, FloatArithmetic(NARROW))
            except BlockIndexError:
                return False
        return True

    @property
    def sizes(self) -> str:
        """The inputs' sizes, for a message."""
        return ", ".join(f"{a.name} {list(a.type.box.shape)}" for a in arguments(self.a))

    @property
    def work(self) -> int:
        """Points of the larger program's index spaces, or its cells."""
        return max(work_of(self.a), work_of(self.b))

    def draw(self, kind: InputClass, seed: int) -> list[Draw]:
        """The inputs of a class and seed."""
        drawn = draw_inputs(kind, self._taken, seed, self._bounds, all_bits=not self._are_indices)
        return [draw.rounded() for draw in drawn] if self.options.round_casts else drawn

    def compare(self, inputs: Sequence[Draw]) -> Difference | str | None:
        """Where the programs part, None where they agree, or why nothing can be said."""
        doubts: list[Doubts] = []
        try:
            outputs = [self._run(module, inputs, doubts) for module in (self.a, self.b)]
            difference = first_difference(*outputs)
        except IllConditionedError as error:
            return f"ill-conditioned: {error}"
        except TapestryError as error:
            return f"it cannot run: {error.message}"
        if any(doubt.overflows for doubt in doubts) and not all(map(_is_finite, outputs)):
            return "results overflow, which says nothing of the reals"
        if difference is not None and any(doubts):
            return f"in doubt: {', '.join(str(doubt) for doubt in doubts if doubt)}"
        for place, output in enumerate(outputs[0].wide):
            isnan = np.isnan(plain(output)) if is_real(output) else np.zeros(output.shape, np.bool_)
            self.undefined = self.undefined or bool(isnan.any())
            if not isnan.any() or not isnan.all():
                self._defined.add(place)
        return difference

    @property
    def never_defined(self) -> list[int]:
        """The outputs that were no numbers whenever they were compared."""
        return [n for n in range(len(outputs_of(self.a))) if n not in self._defined]

    def _run(self, module: ModuleOp, inputs: Sequence[Draw], doubts: list[Doubts]) -> Outputs:
        rounds = self.options.round_casts
        if self.options.doubled:
            wide = Doubled(round_casts=rounds)
            given = [wide.admit(draw) for draw in inputs]
        else:
            wide = FloatArithmetic(WIDE, round_casts=rounds)
            given = [draw.as_cells(WIDE) for draw in inputs]
        results = evaluate_program(module, given, wide)
        doubts.append(wide.doubts)
        given = [draw.as_cells(NARROW) for draw in inputs]
        narrow = FloatArithmetic(NARROW, round_casts=rounds)
        return Outputs(results, evaluate_program(module, given, narrow))

    def peaks(self) -> Iterator[list[Draw]]:
        """Generic inputs with one cell far above or below all others; of programs that choose.

        Which points a maximum is over shows only where the one that is missing would be it.
        """
        most = max(map(_most_peaks, (self.a, self.b)))
        drawn = self.draw(CLASSES["generic"], self.options.seed)
        places = [
            (n, cell)
            for n, draw in enumerate(drawn)
            if draw.is_float or not (self._are_indices or draw.dtype == np.bool_)
            for cell in range(draw.numbers.size)
        ]
        order: list[int] = (
            np.random.default_rng(self.options.seed).permutation(len(places)).tolist()
        )
        for place in order[:most]:
            argument, cell = places[place]
            for end in (1, -1):
                draw = drawn[argument]
                yield [*drawn[:argument], draw.peaked(cell, end), *drawn[argument + 1 :]]

    def named(self) -> Iterator[list[Draw]]:
        """Generic inputs, half of them numbers that the programs compare with, or beside these.

        Thresholds that are near each other part nowhere else.
        """
        numbers = compared_numbers(self.a, self.b)
        for seed in range(NAMED if numbers else 0):
            drawn = self.draw(CLASSES["generic"], self.options.seed + seed)
            for place, draw in enumerate(drawn):
                if draw.is_float or not (self._are_indices or draw.dtype == np.bool_):
                    named = draw.naming(numbers, np.random.default_rng((seed, place)))
                    drawn[place] = named.rounded() if self.options.round_casts else named
            yield drawn

    def counterexample(
        self, kind: str, seed: int, inputs: Sequence[Draw], difference: Difference
    ) -> Counterexample:
        """A small counterexample from one that was found."""
        names = tuple(argument.name for argument in arguments(self.a))
        programs = (self.a, self.b)
        found = Counterexample(
            kind, seed, self.sizes, programs, names, tuple(inputs), difference, False
        )

        def part(tried: Sequence[Draw]) -> Difference | None:
            if self.agrees_roughly(tried):
                return None
            outcome = self.compare(tried)
            return outcome if isinstance(outcome, Difference) else None

        where = first_parting(self.a, self.b, inputs)
        budget = Budget(self.options.shrinking, self.options.shrinking_seconds)
        return shrink(replace(found, where=where), part, budget)

    def agrees_roughly(self, inputs: Sequence[Draw]) -> bool:
        """Whether both programs agree in float64, which is cheap to see and no parting."""
        given = [draw.as_cells(NARROW) for draw in inputs]
        arithmetic = FloatArithmetic(NARROW, round_casts=self.options.round_casts)
        try:
            outputs = [evaluate_program(module, given, arithmetic) for module in (self.a, self.b)]
        except TapestryError:
            return True  # nothing could be said
        return all(_nearly_equal(x, y) for x, y in zip(*outputs, strict=True))

    def certificate(self) -> Certificate | None:
        """What exact arithmetic says; None where it says nothing."""
        if self.options.round_casts or self.work > CERTIFYING_WORK:
            return None
        if any(isinstance(op, loom.ExternalOp) for m in (self.a, self.b) for op in m.walk()):
            return None
        # What is no number agrees with anything.
        kind = CLASSES["unit" if self.undefined else "generic"]
        draws = [self.draw(kind, seed) for seed in range(CERTIFYING_DRAWS)]
        try:
            found = certify(self.a, self.b, draws)
        except TapestryError:
            return None
        if found is not None and any(any(steps(module)) for module in (self.a, self.b)):
            # Between two steps anything may agree: that it is no chance is not known.
            return replace(found, bound=None)
        return found

    def finite_shares(self) -> tuple[float, float] | None:
        """How much of each program's results is finite in float32 on huge inputs.

        None where one of them cannot run on such inputs.
        """
        inputs = self.draw(CLASSES["huge"], self.options.seed)
        real = np.dtype(np.float32)
        given = [draw.as_cells(real) for draw in inputs]
        shares: list[float] = []
        for module in (self.a, self.b):
            try:
                outputs = evaluate_program(module, given, FloatArithmetic(real))
            except TapestryError:
                return None
            floats = [output for output in outputs if output.dtype == real]
            cells = sum(output.size for output in floats)
            finite = sum(int(np.count_nonzero(np.isfinite(output))) for output in floats)
            shares.append(finite / cells if cells else 1.0)
        return shares[0], shares[1]


def _most_peaks(module: ModuleOp) -> int:
    """How many cells to make a peak for what folds by choosing a cell, as a maximum does."""
    found = 0
    for op in module.walk():
        monoid = monoid_of(op) if isinstance(op, loom.BlockSignature) else None
        if monoid is None or not any(isinstance(one, BRANCHING) for one in monoid.merge.ops):
            continue
        found = max(found, PEAKS)
        # States of several parts are merged point by point, which is not cheap.
        if isinstance(op, loom.OperationOp) and len(monoid.zero) == 1:
            kept = op.kept_range(op.index).size
            if kept**2 < op.index.size:
                return MOST_PEAKS
    return found


def _halves(bounds: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """A range of integers, its halves, their halves, and so on: the widest first."""
    waiting = [bounds]
    for low, high in waiting:
        yield low, high
        middle = (low + high) // 2
        if low < middle:
            waiting += [(low, middle), (middle, high)]


def _nearly_equal(x: Array, y: Array) -> bool:
    """Whether two outputs in float64 are apart by no more than it rounds."""
    if x.dtype != NARROW:
        return np.array_equal(x, y)
    size = float(np.max(np.abs(x[np.isfinite(x)]), initial=0))
    return np.allclose(x, y, rtol=0, atol=_ROUGHLY * size, equal_nan=True)


def _is_finite(outputs: Outputs) -> bool:
    floats = (plain(output) for output in outputs.wide if is_real(output))
    return all(bool(np.isfinite(output).all()) for output in floats)


def _integer_bounds(*modules: ModuleOp) -> tuple[int, int]:
    """The range of integer inputs: around the coordinates there are.

    Where blocks are read at indices that must lie inside, integers are such indices.
    """
    checked = list(_checked_extents(*modules))
    if checked:
        return -min(checked), min(checked)
    ops = (op for module in modules for op in module.walk())
    extents = [n for op in ops if isinstance(op, loom.OperationOp) for n in op.index.shape]
    return -4, max(extents, default=1) + 2


def _checked_extents(*modules: ModuleOp) -> Iterator[int]:
    """The extents of blocks that are read at indices that must lie inside."""
    for op in (op for module in modules for op in module.walk()):
        if isinstance(op, loom.ReadOp) and op.otherwise is None:
            yield from (extent for extent in op.box.shape if extent > 1)

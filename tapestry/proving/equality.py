"""Whether two programs are equal as functions over the reals: a randomized check.

    verdict = compare_programs(first, second)
    verdict.answer      # "differs", "certified", "numeric" or "undecided"

Both run on inputs of several classes, in two float precisions. A difference beyond what the
precisions themselves are apart rejects, with the inputs that show it. Agreement is evidence, and is
said with what it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.frontend import run_pipeline
from tapestry.proving.certifying import Certificate, certify
from tapestry.proving.comparing import Difference, IllConditionedError, Outputs, first_difference
from tapestry.proving.counterexample import Counterexample, shrink
from tapestry.proving.evaluation import evaluate_program
from tapestry.proving.floats import NARROW, WIDE, Doubts, FloatArithmetic
from tapestry.proving.inputs import CLASSES, Draw, InputClass, draw_inputs
from tapestry.proving.signatures import signature_mismatch
from tapestry.proving.stages import compare_in_stages, work_of
from tapestry.runtime.executor import Array
from tapestry.runtime.program import arguments

Answer = Literal["differs", "certified", "numeric", "undecided"]

LIMIT = 1 << 24
"""Points of index spaces that a program may have to be compared at its own sizes."""


CERTIFYING_DRAWS = 2
"""How many inputs exact arithmetic is run on."""


@dataclass(frozen=True)
class Options:
    """How programs are compared: the first seed, seeds per class, and what casts mean.

    `shrinking` is how often they run to make a counterexample smaller.
    """

    seed: int = 0
    seeds: int = 3
    round_casts: bool = False
    shrinking: int = 200


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer, and what it rests on."""

    answer: Answer
    reason: str = ""
    counterexample: Counterexample | None = None
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()


def in_loom(module: ModuleOp) -> ModuleOp:
    """The program with its templates applied; the module itself when there is none."""
    if not any(op.name.startswith("weft.") for op in module.walk()):
        return module
    applied = module.clone()
    run_pipeline(applied, "weft-apply")
    return applied


def compare_programs(a: ModuleOp, b: ModuleOp, options: Options | None = None) -> Verdict:
    """Compare two verified programs, in weft or loom."""
    options = options or Options()
    a, b = in_loom(a), in_loom(b)
    mismatch = signature_mismatch(a, b)
    if mismatch is not None:
        return Verdict("differs", f"their signatures differ: {mismatch}")
    if a.is_structurally_equivalent(b):
        return Verdict("certified", "they are the same program")
    staged = compare_in_stages(a, b, lambda one, other: compare_as_they_are(one, other, options))
    return staged or Verdict("certified", "every operation is the same")


def compare_as_they_are(a: ModuleOp, b: ModuleOp, options: Options) -> Verdict:
    """Compare two verified loom programs of one signature at their own sizes."""
    work = max(work_of(a), work_of(b))
    if work > LIMIT:
        return Verdict("undecided", f"they have {work} points, more than {LIMIT}")
    pair = Pair(a, b, options)
    compared: list[str] = []
    skipped: dict[str, str] = {}
    for kind in CLASSES.values():
        for seed in range(options.seed, options.seed + options.seeds):
            inputs = pair.draw(kind, seed)
            outcome = pair.compare(inputs)
            if isinstance(outcome, str):
                skipped[kind.name] = outcome
                continue
            if isinstance(outcome, Difference):
                found = pair.counterexample(kind.name, seed, inputs, outcome)
                return Verdict("differs", "as functions over the reals", found)
            if kind.name not in compared:
                compared.append(kind.name)
    if not {"generic", "wide", "huge"} & set(compared):
        return Verdict("undecided", "no class of inputs could be compared", skipped=skipped)
    evidence = f"they agree on {', '.join(compared)} inputs, {options.seeds} seeds each"
    certificate = pair.certificate()
    if certificate is not None:
        return Verdict("certified", f"{evidence}, and {certificate}", skipped=skipped)
    return Verdict("numeric", evidence, skipped=skipped)


class Pair:
    """Two programs of one signature, evaluated side by side."""

    def __init__(self, a: ModuleOp, b: ModuleOp, options: Options) -> None:
        self.a, self.b = a, b
        self.options = options
        self._taken = [
            (numpy_dtype(argument.type.element_type), argument.type.box.shape)
            for argument in arguments(a)
        ]
        self._bounds = (-4, max(_largest_extent(a), _largest_extent(b)) + 2)

    @property
    def sizes(self) -> str:
        """The inputs' sizes, for a message."""
        return ", ".join(f"{a.name} {list(a.type.box.shape)}" for a in arguments(self.a))

    def draw(self, kind: InputClass, seed: int) -> list[Draw]:
        """The inputs of a class and seed."""
        drawn = draw_inputs(kind, self._taken, seed, self._bounds)
        return [draw.rounded() for draw in drawn] if self.options.round_casts else drawn

    def certificate(self) -> Certificate | None:
        """What exact arithmetic says; None where it says nothing."""
        if self.options.round_casts:
            return None
        draws = [self.draw(CLASSES["generic"], seed) for seed in range(CERTIFYING_DRAWS)]
        try:
            return certify(self.a, self.b, draws)
        except TapestryError:
            return None

    def counterexample(
        self, kind: str, seed: int, inputs: Sequence[Draw], difference: Difference
    ) -> Counterexample:
        """A small counterexample from one that was found."""
        names = tuple(argument.name for argument in arguments(self.a))
        found = Counterexample(kind, seed, self.sizes, names, tuple(inputs), difference, False)

        def part(tried: Sequence[Draw]) -> Difference | None:
            outcome = self.compare(tried)
            return outcome if isinstance(outcome, Difference) else None

        return shrink(found, part, self.options.shrinking)

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
        if difference is not None and any(doubts):
            return f"in doubt: {', '.join(str(doubt) for doubt in doubts if doubt)}"
        return difference

    def _run(self, module: ModuleOp, inputs: Sequence[Draw], doubts: list[Doubts]) -> Outputs:
        results: list[tuple[Array, ...]] = []
        for real in (WIDE, NARROW):
            arithmetic = FloatArithmetic(real, round_casts=self.options.round_casts)
            given = [draw.as_floats(real) if draw.is_float else draw.numbers for draw in inputs]
            results.append(evaluate_program(module, given, arithmetic))
            if real == WIDE:
                doubts.append(arithmetic.doubts)
        return Outputs(results[0], results[1])


def _largest_extent(module: ModuleOp) -> int:
    found = [n for op in module.walk() if isinstance(op, loom.OperationOp) for n in op.index.shape]
    return max(found, default=1)

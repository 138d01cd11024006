"""Whether two programs are equal as functions over the reals: a randomized check.

    verdict = compare_programs(first, second)
    verdict.answer      # "differs", "certified", "numeric" or "undecided"

Programs are compared in stages: only what differs between them, at smaller sizes where they are
large. They run on inputs of several classes, in two float precisions: a difference beyond what the
precisions themselves are apart rejects, with the inputs that show it. Agreement is evidence, said
with what it rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from tapestry.diagnostics import TapestryError, UsageError
from tapestry.frontend import run_pipeline
from tapestry.passes.loom.outline import inlined
from tapestry.passes.loom.split_complex import split_of
from tapestry.proving.comparing import Difference
from tapestry.proving.counterexample import Counterexample
from tapestry.proving.covering import uncovered
from tapestry.proving.inputs import CLASSES
from tapestry.proving.pair import Options, Pair
from tapestry.proving.signatures import signature_mismatch
from tapestry.proving.stages import compare_in_stages, work_of
from tapestry.proving.stepping import flat_steps

Answer = Literal["differs", "certified", "numeric", "undecided"]

LIMIT = 1 << 21
"""Points of index spaces, or cells of tensors, that a program may have to be compared at all."""

_CONTINUOUS = frozenset({"generic", "wide", "huge", "unit"})
"""The classes one of which at least must have been compared: the others are ties and zeros."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer, and what it rests on."""

    answer: Answer
    reason: str = ""
    counterexample: Counterexample | None = None
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()


def in_loom(module: ModuleOp, metakernels: str | None = None) -> ModuleOp:
    """The program with its templates applied and its calls inlined; itself when there are none.

    `metakernels` is a folder of templates beside the library's.
    """
    module = inlined(module)
    if not any(op.name.startswith("weft.") for op in module.walk()):
        return module
    applied = module.clone()
    apply = ArgSpec("weft-apply", {})
    if metakernels is not None:
        apply.parameters["metakernels"] = (metakernels,)
    run_pipeline(applied, str(apply))
    return applied


def compare_programs(a: ModuleOp, b: ModuleOp, options: Options | None = None) -> Verdict:
    """Compare two verified programs, in weft or loom; UsageError for what is no module."""
    for given in (a, b):
        if not isinstance(given, ModuleOp):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"programs are compared as modules, not as {type(given).__name__}",
                hint="tapestry.load_module reads one; of a compiled program it is `.module`",
            )
    options = options or Options()
    a, b = in_loom(a, options.metakernels), in_loom(b, options.metakernels)
    mismatch = signature_mismatch(a, b)
    if mismatch is not None:
        return Verdict("differs", f"their signatures differ: {mismatch}")
    if a.is_structurally_equivalent(b):
        return Verdict("certified", "they are the same program")
    try:
        a, b = split_of((a, b))
    except TapestryError as error:
        return Verdict("undecided", f"complex numbers are compared by their parts: {error.message}")
    staged = compare_in_stages(a, b, lambda one, other: compare_as_they_are(one, other, options))
    return staged or Verdict("certified", "every operation is the same")


def compare_as_they_are(a: ModuleOp, b: ModuleOp, options: Options) -> Verdict:
    """Compare two verified loom programs of one signature at their own sizes."""
    work = max(work_of(a), work_of(b))
    if work > LIMIT:
        return Verdict("undecided", f"they have {work} points or cells, more than {LIMIT}")
    try:
        return _compare(Pair(a, b, options))
    except TapestryError as error:
        return Verdict("undecided", f"they cannot run: {error.message}")


def _compare(pair: Pair) -> Verdict:
    """Compare a pair on every class of inputs."""
    options = pair.options
    compared: list[str] = []
    skipped: dict[str, str] = {}
    for kind in CLASSES.values():
        if kind.positive and not pair.undefined:
            continue
        for seed in range(options.seed, options.seed + options.seeds):
            inputs = pair.draw(kind, seed)
            outcome = pair.compare(inputs)
            if isinstance(outcome, str):
                skipped[kind.name] = outcome
            elif isinstance(outcome, Difference):
                found = pair.counterexample(kind.name, seed, inputs, outcome)
                return Verdict("differs", "as functions over the reals", found)
            elif kind.name not in compared:
                compared.append(kind.name)
    special = (("peak", pair.peaks()), ("named", pair.named()))
    for kind, inputs in ((kind, inputs) for kind, many in special for inputs in many):
        outcome = None if pair.agrees_roughly(inputs) else pair.compare(inputs)
        if isinstance(outcome, Difference):
            found = pair.counterexample(kind, options.seed, inputs, outcome)
            return Verdict("differs", "as functions over the reals", found)
    if not _CONTINUOUS & set(compared):
        return Verdict("undecided", "no class of inputs could be compared", skipped=skipped)
    if pair.never_defined:
        which = ", ".join(map(str, pair.never_defined))
        reason = f"output {which} is no number on any inputs that were drawn"
        return Verdict("undecided", reason, skipped=skipped)
    notes = (*_coverage(pair), *_stability(pair))
    evidence = f"they agree on {', '.join(compared)} inputs, {options.seeds} seeds each"
    certificate = pair.certificate()
    if certificate is None:
        return Verdict("numeric", evidence, None, skipped, notes)
    return Verdict("certified", f"{evidence}, and {certificate}", None, skipped, notes)


def _coverage(pair: Pair) -> list[str]:
    """What of either program was not sampled."""
    seeds = range(pair.options.seed, pair.options.seed + 2)
    draws = [pair.draw(CLASSES[name], seed) for seed in seeds for name in ("generic", "wide")]
    draws.append(pair.draw(CLASSES["small"], pair.options.seed))
    return [
        f"not sampled, in the {which}: {what}"
        for which, module in (("first", pair.a), ("second", pair.b))
        for what in (*uncovered(module, draws), *flat_steps(module, draws))
    ]


def _stability(pair: Pair) -> list[str]:
    """How the programs fare in float32 on huge inputs, where they do not fare equally well."""
    found = pair.finite_shares()
    if found is None or found[0] == found[1]:
        return []
    first, second = found
    shares = f"{first:.0%} of the first's results are finite, {second:.0%} of the second's"
    return [f"stability: in float32 on huge inputs, {shares}"]

"""That a rewrite rule keeps values: the programs before and after are compared at drawn places.

    evidence = check_values(rule, samples, library)     # or a RuleError with a counterexample
    evidence.certified, evidence.compared

Each place becomes two programs over the rule's inputs: the applications that are matched, and those
that are produced. They are compared like any two programs (`tapestry.proving.equality`): what
differs or cannot be decided refuses the rule. Both also run as they are at the edges of their types
(`rule_edges`). A rule that is said to be exact has to give the very same floats, in 32 and 64 bits.

Types meet in more ways than can be tried: a rule is used only for combinations of dtypes at which
values were compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp, NameLoc, StringAttr
from xdsl.ir import Operation, SSAValue

from tapestry.frontend import verify_module
from tapestry.metakernels import Library
from tapestry.passes.weft.apply import apply_metakernels
from tapestry.passes.weft.recipes.making import tensor_of
from tapestry.passes.weft.rules.productions import (
    build_application,
    build_number,
    build_production,
)
from tapestry.proving.comparing import Difference
from tapestry.proving.equality import compare_programs
from tapestry.proving.evaluation import evaluate_program
from tapestry.proving.floats import FloatArithmetic
from tapestry.proving.inputs import CLASSES
from tapestry.proving.pair import Options, Pair
from tapestry.proving.report import describe, describe_counterexample
from tapestry.proving.rule_edges import check_edges, unsampled_literals
from tapestry.rewriting.binding import Combination, Expansions, produce
from tapestry.rewriting.identity import digest_of
from tapestry.rewriting.obligations import check_types, telling
from tapestry.rewriting.rules import Rule, RuleError, Value
from tapestry.rewriting.samples import Sample
from tapestry.store import Store, find_store

EDITION: Final = "2"
"""Changes when what is checked does: then nothing is remembered."""

PLACES: Final = 24
"""Places at which values are compared: one for each combination of dtypes, at most so many."""

THOROUGH: Final = 6
"""Places, of those, at which programs are compared on all classes of inputs."""

MOST_CELLS: Final = 512
"""Cells of the largest tensor at such a place."""

_OPTIONS: Final = Options(seeds=2)


@dataclass(frozen=True)
class Evidence:
    """At how many places values were compared, how many were certified, and with which dtypes."""

    compared: int
    certified: int
    dtypes: tuple[str, ...]
    combinations: tuple[Combination, ...]
    """The dtypes of all tensors of a match, for those places."""


def check_values(
    rule: Rule, samples: Sequence[Sample], library: Library, *, places: int = PLACES
) -> Evidence:
    """What shows that `rule` keeps values; a RuleError with a counterexample when it does not."""
    picked = telling(rule, samples, places, MOST_CELLS)
    unsampled: list[set[str]] = []
    expansions = Expansions(library)
    certified = 0
    for number, sample in enumerate(picked):
        before = matched_program(rule, sample)
        after = produced_program(rule, sample, expansions)
        for module in (before, after):
            apply_metakernels(module, library)
            verify_module(module)
        pair = Pair(before, after, _OPTIONS)
        if number >= THOROUGH:
            _check_briefly(rule, sample, pair)
            check_edges(rule, sample, before, after, pair)
            continue
        verdict = compare_programs(before, after, _OPTIONS)
        if verdict.answer not in ("certified", "numeric"):
            raise RuleError(
                f"rule {rule.name}: what is matched and what is produced "
                + "\n".join(describe(verdict))
                + f"\n  for {sample.describe(rule)}",
                location=rule.location,
            )
        certified += verdict.answer == "certified"
        if rule.exact:
            _check_exact(rule, sample, before, after)
        check_edges(rule, sample, before, after, pair)
        if any(note.startswith("not sampled") for note in verdict.notes):
            unsampled.append(
                unsampled_literals(before, pair, "matched")
                | unsampled_literals(after, pair, "produced")
            )
        else:
            unsampled.append(set())
    missing = set[str].intersection(*unsampled) if unsampled else set[str]()
    if missing:
        raise RuleError(
            f"rule {rule.name}: no inputs sample {', '.join(sorted(missing))}",
            location=rule.location,
            hint="a rule may compare with numbers only where inputs come near them",
        )
    dtypes = tuple(sorted({dtype for sample in picked for dtype in sample.dtypes}))
    combinations = tuple(sorted({sample.combination(rule) for sample in picked}))
    return Evidence(len(picked), certified, dtypes, combinations)


def _check_briefly(rule: Rule, sample: Sample, pair: Pair) -> None:
    """Both programs are the same over the reals on one draw of a few classes."""
    for kind in ("generic", "huge"):
        found = pair.compare(inputs := pair.draw(CLASSES[kind], 0))
        if isinstance(found, Difference):
            told = describe_counterexample(pair.counterexample(kind, 0, inputs, found))
            raise RuleError(
                f"rule {rule.name}: what is matched and what is produced differ\n"
                + "\n".join(told)
                + f"\n  for {sample.describe(rule)}",
                location=rule.location,
            )


def _check_exact(rule: Rule, sample: Sample, before: ModuleOp, after: ModuleOp) -> None:
    """Both programs give the same floats, bit by bit but for the sign of zeros and of NaN."""
    pair = Pair(before, after, _OPTIONS)
    for kind in ("generic", "wide", "small"):
        inputs = pair.draw(CLASSES[kind], 0)
        for real in (np.dtype(np.float32), np.dtype(np.float64)):
            given = [draw.as_cells(real) for draw in inputs]
            results = [
                evaluate_program(module, given, FloatArithmetic(real)) for module in (before, after)
            ]
            for name, one, other in zip(rule.outputs, *results, strict=True):
                floats = one.dtype.kind == "f"
                if not np.array_equal(one, other, equal_nan=floats):
                    raise RuleError(
                        f"rule {rule.name}: {name} is not the same in {real}, "
                        f"for {sample.describe(rule)}",
                        location=rule.location,
                        hint="say `exact: false` where a rule rounds otherwise",
                    )


def matched_program(rule: Rule, sample: Sample) -> ModuleOp:
    """The applications that `rule` matches, as a program over its inputs, in weft."""
    main, values = _main(rule, sample)
    _match(rule, sample, main, values)
    main.body.block.add_op(func.ReturnOp(*(values[name] for name in rule.outputs)))
    return ModuleOp([main])


def produced_program(rule: Rule, sample: Sample, expansions: Expansions) -> ModuleOp:
    """What `rule` produces, as a program over the same inputs."""
    main, values = _main(rule, sample)
    _match(rule, sample, main, values)
    production = produce(rule, sample.names, sample.situation.specs, expansions)
    made, replaced = build_production(rule, production, values, UNKNOWN_LOC)
    main.body.block.add_ops(made)
    main.body.block.add_op(func.ReturnOp(*(replaced[name] for name in rule.outputs)))
    # What was matched is there for what uses it; the rest is not part of the program.
    for op in reversed(list(main.body.block.ops)):
        if op.results and not any(result.uses for result in op.results):
            op.detach()
            op.erase()
    return ModuleOp([main])


def _main(rule: Rule, sample: Sample) -> tuple[func.FuncOp, dict[str, SSAValue]]:
    """An empty function over the inputs of `rule`, and its arguments by name."""
    specs = sample.situation.specs
    inputs = [tensor_of(specs[name]) for name in rule.inputs]
    outputs = [tensor_of(specs[name]) for name in rule.outputs]
    main = func.FuncOp("main", (inputs, outputs))
    values: dict[str, SSAValue] = {}
    for name, argument in zip(rule.inputs, main.body.block.args, strict=True):
        argument.name_hint = name
        argument.location = NameLoc(StringAttr(name), UNKNOWN_LOC)
        values[name] = argument
    return main, values


def _match(rule: Rule, sample: Sample, main: func.FuncOp, values: dict[str, SSAValue]) -> None:
    """Add the matched applications to `main`, and their results to `values`."""
    situation = sample.situation
    for application in rule.matched:
        operands: list[SSAValue] = []
        made: list[Operation] = []
        specs = situation.operands[application.name]
        for position, operand in enumerate(application.operands):
            if isinstance(operand, Value):
                operands.append(values[operand.name])
                continue
            number = sample.numbers[application.name][position]
            made.append(build_number(number, specs[position]))
            operands += made[-1].results
        results = [tensor_of(situation.specs[name]) for name in application.results]
        arguments = situation.parameters[application.name]
        op = build_application(application, operands, arguments, results)
        main.body.block.add_ops([*made, op])
        values.update(zip(application.results, op.results, strict=True))


@dataclass(frozen=True)
class Report:
    """What was checked of a rule: places where types stayed, and what shows that values do."""

    rule: Rule
    places: int
    evidence: Evidence
    is_remembered: bool = False


class RuleChecker:
    """Checks rules, each once; what was found is remembered in files, by what the rules say."""

    def __init__(self, library: Library, directory: Path | None = None) -> None:
        self._library = library
        self._expansions = Expansions(library)
        self._store = find_store("rules") if directory is None else Store(directory)
        self._reports: dict[Rule, Report] = {}

    def require(self, rule: Rule) -> Report:
        """What was checked of `rule`; a RuleError says which obligation does not hold."""
        report = self._reports.get(rule)
        if report is None:
            report = self._reports[rule] = self._remembered(rule) or self.check(rule)
        return report

    def admits(self, rule: Rule, dtypes: Combination) -> bool:
        """Whether values were compared for these dtypes; RuleError as for `require`."""
        return dtypes in self.require(rule).evidence.combinations

    def check(self, rule: Rule) -> Report:
        """Check `rule` now, and remember what was found."""
        samples = check_types(rule, self._expansions)
        report = Report(rule, len(samples), check_values(rule, samples, self._library))
        if self._store is not None:
            found = {"places": report.places, **asdict(report.evidence)}
            self._store.write(self._key(rule), found)
        return report

    def _remembered(self, rule: Rule) -> Report | None:
        found = None if self._store is None else self._store.read(self._key(rule))
        if found is None:
            return None
        try:
            dtypes = tuple(str(dtype) for dtype in found["dtypes"])
            combinations = tuple(tuple(map(str, names)) for names in found["combinations"])
            evidence = Evidence(
                int(found["compared"]), int(found["certified"]), dtypes, combinations
            )
            return Report(rule, int(found["places"]), evidence, is_remembered=True)
        except (ValueError, KeyError, TypeError):
            return None

    def _key(self, rule: Rule) -> str:
        return digest_of(rule, self._library, EDITION)

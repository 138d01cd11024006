"""What share of wrong programs is seen: by the verifier, or by `tapestry equal`.

    python benchmarks/mutations.py                 # 300 mutations, a few minutes
    python benchmarks/mutations.py --count 30

A correct program (as it is, fused, sharded, or spelled out shard by shard) is changed in one place
that should change its meaning: operands swapped, a projection off by one, another monoid, a shard
dropped or overlapping, an unwrap left out, another constant, comparison, axis or operand. Either it
no longer verifies, or it is compared with the program it came from. What is accepted is run against
it at full size on the reference executor: mutants that give equal numbers are no mistakes, whatever
was meant (softmax is the same with any peak); the others are misses. Both are listed.
"""

import argparse
import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from _mutated_programs import PROGRAMS
from _mutators import MUTATIONS
from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.proving.equality import Options, compare_programs
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.program import arguments
from tapestry.zspace import ZSpaceError

RESULTS = Path(__file__).parent / "results" / "mutations.json"

PIPELINES = (
    "",
    "loom-simplify,loom-fuse",
    "loom-shard{shards=4}",
    "loom-simplify,loom-fuse,loom-shard{shards=4},loom-expand-shards",
)


@dataclass(frozen=True)
class Outcome:
    """One mutation: what it was, and what saw it."""

    program: str
    pipeline: str
    mutation: str
    what: str
    seen_by: str
    reason: str
    seconds: float


def mutate(number: int) -> tuple[str, str, str, str, ModuleOp, ModuleOp]:
    """Mutation `number`: always the same for one number."""
    rng = random.Random(number)
    while True:
        name, pipeline = rng.choice(list(PROGRAMS)), rng.choice(PIPELINES)
        mutation = MUTATIONS[number % len(MUTATIONS)]
        right = parse_module(PROGRAMS[name])
        run_pipeline(right, "weft-apply")
        wrong = right.clone()
        if pipeline:
            run_pipeline(wrong, pipeline)
        try:
            what = mutation(wrong, rng)
        except ZSpaceError as error:
            # The mutant cannot even be written down.
            what = f"refused when built: {error}"
        if what is not None:
            return name, pipeline, mutation.__name__, what, right, wrong


def judge(number: int) -> Outcome:
    """Make a mutation and see whether it is seen."""
    name, pipeline, mutation, what, right, wrong = mutate(number)
    start = perf_counter()

    def outcome(seen_by: str, reason: str = "") -> Outcome:
        seconds = perf_counter() - start
        return Outcome(name, pipeline, mutation, what, seen_by, reason, seconds)

    if what.startswith("refused"):
        return outcome("verify")
    try:
        verify_module(wrong)
    except DiagnosticException:
        return outcome("verify")
    verdict = compare_programs(right, wrong, Options(seeds=1, shrinking=0))
    if verdict.answer == "differs":
        return outcome("equal")
    if verdict.answer == "undecided":
        return outcome("undecided", verdict.reason)
    why = f"equal ({verdict.answer})"
    for scale, where in ((2.0, "on all inputs"), (0.2, "on small inputs; on others unstable")):
        if _same_numbers(right, wrong, scale):
            return outcome("no mistake", f"{why}; at full size equal numbers {where}")
    return outcome("MISSED", f"{why}; at full size other numbers")


def _same_numbers(a: ModuleOp, b: ModuleOp, scale: float, inputs: int = 5) -> bool:
    """Whether the reference executor gives equal numbers at full size, up to rounding."""
    for seed in range(inputs):
        generator = np.random.default_rng(seed)
        given = {x.name: generator.normal(size=x.type.box.shape) * scale for x in arguments(a)}
        one, other = (find_executor("reference").run(m, given, NoWatch()).outputs for m in (a, b))
        for x, y in zip(one, other, strict=True):
            if not np.allclose(x, y, rtol=1e-9, atol=1e-11):
                return False
    return True


def show(outcomes: list[Outcome], console: Console) -> None:
    """Print how many mutations of each kind were seen, and by what."""
    table = Table(title="mutations, by what saw them", title_justify="left")
    columns = ("verify", "equal", "undecided", "no mistake", "MISSED")
    for column in ("mutation", *columns):
        table.add_column(column, justify="left" if column == "mutation" else "right")
    for kind in dict.fromkeys(o.mutation for o in outcomes):
        count = Counter(o.seen_by for o in outcomes if o.mutation == kind)
        table.add_row(kind.replace("_", " "), *(str(count[c] or "") for c in columns))
    count = Counter(o.seen_by for o in outcomes)
    table.add_section()
    table.add_row("all", *(str(count[c]) for c in columns))
    console.print(table)
    for o in outcomes:
        if o.seen_by not in ("verify", "equal"):
            where = f"{o.program}, {o.pipeline or 'as it is'}"
            console.print(f"{o.seen_by}: {where}: {o.what}: {o.reason}")
    mistakes = len(outcomes) - count["no mistake"]
    console.print(f"seen: {count['verify'] + count['equal']} of {mistakes} mistakes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what share of wrong programs is seen.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    console = Console(width=120)
    outcomes: list[Outcome] = []
    for number in range(options.count):
        outcomes.append(judge(number))
        console.print(f"{number}: {outcomes[-1].mutation}: {outcomes[-1].seen_by}")
    show(outcomes, console)
    count = Counter(o.seen_by for o in outcomes)
    mistakes = len(outcomes) - count["no mistake"]
    result = {
        "machine": machine(),
        "mutations": len(outcomes),
        "seen": dict(count),
        "share_of_mistakes_seen": (count["verify"] + count["equal"]) / mistakes,
        "not_rejected": [vars(o) for o in outcomes if o.seen_by not in ("verify", "equal")],
        "seconds": sum(o.seconds for o in outcomes),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

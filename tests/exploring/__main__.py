"""Looks for programs that break the law, for as long as it is told to, and names their seeds.

    python -m tests.exploring pipelines --first 1000 --count 2000
    python -m tests.exploring mistakes --first 7 --count 1      # one seed again

Whatever a seed finds is printed, and the search goes on. The last lines say how often what was
found; the exit status is 1 where a seed failed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections import Counter
from time import monotonic, process_time

KINDS = (
    "pipelines",
    "mistakes",
    "executors",
    "schedules",
    "choices",
    "mutants",
    "documents",
    "torch_functions",
    "jax_functions",
)
"""Modules of this folder: each has `check(seed)`, which says what it found, or raises."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.exploring", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    options = parser.parse_args()
    check = importlib.import_module(f"tests.exploring.{options.kind}").check
    found = Counter[str]()
    end = monotonic() + options.seconds
    for seed in range(options.first, options.first + options.count):
        if monotonic() > end:
            print(f"stopped before seed {seed}")
            break
        start = process_time()
        try:
            what = check(seed)
        except Exception as error:  # noqa: BLE001 - whatever a seed finds
            what = f"FAILED: {type(error).__name__}"
            print(f"\n=== {options.kind} {seed} ===\n{''.join(traceback.format_exception(error))}")
        if what:
            found[what] += 1
        if (took := process_time() - start) > 20:
            print(f"seed {seed} took {took:.0f} s")
        if seed % 100 == 99:
            print(f"{seed - options.first + 1} seeds, to {seed}: {dict(found.most_common(3))}")
        sys.stdout.flush()
    for what, times in found.most_common():
        print(f"{times:6} {what}")
    return int(any(what.startswith("FAILED") for what in found))


if __name__ == "__main__":
    sys.exit(main())

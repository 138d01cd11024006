"""Writes the table of what passes anew:  python -m tests.importers.torch.opinfo.update

An operator is claimed when most of its samples pass; what does not is listed with the reason.
"""

# pyright: basic

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from rich.progress import track

from tests.importers.torch.opinfo.sampling import KINDS, operators, outcomes

TABLE = Path(__file__).with_name("table.json")


def row(name: str) -> tuple[dict[str, list[int]], list[str]]:
    """Per kind of sample how many passed and how many there are; why others did not."""
    passed: dict[str, list[int]] = {}
    reasons: list[str] = []
    for kind in KINDS:
        found = outcomes(name, kind)
        if found:
            passed[kind] = [sum(one.passed for one in found), len(found)]
            counts = Counter(one.reason for one in found if one.reason is not None)
            reasons += [f"{kind}, {count} x: {why}" for why, count in counts.most_common(2)]
        if found and kind == "float32" and not passed[kind][0]:
            break  # the others are no better
    return passed, reasons


def write(table: dict[str, dict[str, object]]) -> None:
    """The table, an operator per line."""
    lines = []
    for part in ("claimed", "not"):
        rows = [f"    {json.dumps(n)}: {json.dumps(v)}" for n, v in sorted(table[part].items())]
        lines.append(f'  "{part}": {{\n' + ",\n".join(rows) + "\n  }")
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(names: list[str]) -> None:
    """Rows for the operators of these names, or for all."""
    table = (
        json.loads(TABLE.read_text()) if names and TABLE.exists() else {"claimed": {}, "not": {}}
    )
    for name in track(names or sorted(operators()), "operators"):
        passed, reasons = row(name)
        good = sum(count for count, _ in passed.values())
        every = sum(total for _, total in passed.values())
        for part in table.values():
            part.pop(name, None)
        if good * 2 > every:
            table["claimed"][name] = {"passed": passed} | ({"reasons": reasons} if reasons else {})
        else:
            table["not"][name] = reasons[0] if reasons else "there are no samples"
        write(table)
    counts = [pair for one in table["claimed"].values() for pair in one["passed"].values()]
    good, every = (sum(column) for column in zip(*counts, strict=True))
    print(
        f"{len(table['claimed'])} operators, {good} of {every} samples ({100 * good / every:.2f} %)"
    )


if __name__ == "__main__":
    main(sys.argv[1:])

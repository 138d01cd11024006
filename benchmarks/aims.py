"""Whether what a GPU was measured at is what is aimed at, by kind of work.

    python benchmarks/aims.py benchmarks/results/gpu_check_h100.json

| work | aim |
|---|---|
| products of matrices | 0.95 of cuBLAS |
| softmax, norms, cross entropy | 0.92 of the bandwidth of memory |
| linear layers with what follows them | 0.95 of their products alone, by cuBLAS |
| attention, and its gradients | 1.0 of PyTorch's FlashAttention |
| attention of one query | 0.85 of the bandwidth of memory |
| models | 1.15 of max-autotune in the geometric mean, and none below 0.9 |

All of a table were measured in one run. The bandwidth of memory is the largest of a copy, a read
and an addition of two tensors; older tables have that of a copy alone. What has no number is left
out, and counted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]
ROWS = ("softmax", "layer norm", "rms norm", "cross entropy")
GRAPHS = "tapestry, graphs"
BANDWIDTHS = ("copy bytes/s", "read bytes/s", "add bytes/s")


@dataclass(frozen=True)
class Aim:
    """A ratio that is aimed at; where `least` is given, the mean is to be so large, and each that.

    Without it each one is to reach `wanted`.
    """

    work: str
    wanted: float
    least: float
    found: Mapping[str, float]
    missing: int

    @property
    def mean(self) -> float | None:
        """The geometric mean."""
        return prod(self.found.values()) ** (1 / len(self.found)) if self.found else None

    @property
    def met(self) -> bool:
        """Whether all were measured, and are what is aimed at."""
        mean = self.mean
        reached = mean is not None and mean >= self.wanted and self.worst[1] >= self.least
        return reached and not self.missing

    @property
    def worst(self) -> tuple[str, float]:
        """The least, and what it is of."""
        name = min(self.found, key=lambda one: self.found[one])
        return name, self.found[name]

    def as_json(self) -> dict[str, Any]:
        """What is written of it."""
        own = {"work": self.work, "wanted": self.wanted, "least wanted": self.least}
        return own | {
            "mean": self.mean,
            "worst": self.worst if self.found else None,
            "missing": self.missing,
            "met": self.met,
            "found": dict(self.found),
        }


def aims(tables: Mapping[str, Any]) -> list[Aim]:
    """What was found of each aim in the tables of `gpu_check.py`, by part."""
    kernels: Mapping[str, Any] = tables.get("kernels") or {}
    rows: Sequence[Row] = kernels.get("rows", [])
    ceilings: Mapping[str, float] = kernels.get("ceilings", {})
    most = max((ceilings[name] for name in BANDWIDTHS if name in ceilings), default=None)

    def beside(peer: str) -> Callable[[Row], float | None]:
        return lambda row: _ratio(row["peers"].get(peer), _ours(row))

    def bandwidth(row: Row) -> float | None:
        return _ratio(_ratio(row.get("bytes"), _ours(row)), most)

    def kernel(
        work: str,
        wanted: float,
        take: Callable[[Row], bool],
        ratio: Callable[[Row], float | None],
    ) -> Aim:
        taken = {row["case"]: ratio(row) for row in rows if take(row)}
        found = {name: one for name, one in taken.items() if one is not None}
        return Aim(work, wanted, wanted, found, len(taken) - len(found))

    def attention(row: Row) -> bool:
        return row["family"] == "attention" and "float32" not in row["case"]

    def decode(row: Row) -> bool:
        return "decode" in row["case"]

    return [
        kernel("products / cuBLAS", 0.95, lambda row: row["family"] == "matmul", beside("eager")),
        kernel("rows / bandwidth", 0.92, lambda row: row["family"] in ROWS, bandwidth),
        kernel("linear / product", 0.95, lambda row: row["family"] == "linear", beside("product")),
        kernel(
            "attention / flash",
            1.0,
            lambda row: attention(row) and not decode(row),
            beside("flash"),
        ),
        kernel(
            "attention backward / flash",
            1.0,
            lambda row: row["family"] == "attention backward",
            beside("flash"),
        ),
        kernel("decode / bandwidth", 0.85, decode, bandwidth),
        _models(tables.get("models") or {}),
    ]


def _ours(row: Row) -> float | None:
    """Our seconds, of the fastest schedule that is known."""
    found = [row[name] for name in ("ours", "tuned") if row.get(name)]
    return min(found) if found else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def _models(table: Mapping[str, Any]) -> Aim:
    """Models beside max-autotune; both replay CUDA graphs."""
    times: dict[str, dict[str, float]] = {}
    for row in table.get("rows", []):
        times.setdefault(row["model"], {})[row["by"]] = row.get("us")
    taken = {name: _ratio(one.get("max-autotune"), one.get(GRAPHS)) for name, one in times.items()}
    found = {name: one for name, one in taken.items() if one is not None}
    return Aim("models / max-autotune", 1.15, 0.9, found, len(taken) - len(found))


def show(found: Sequence[Aim], console: Console) -> None:
    """Print a table of aims."""
    table = Table(title="aims", title_justify="left")
    table.add_column("work")
    for column in ("aim", "mean", "least", "cases", "missing", "met"):
        table.add_column(column, justify="right")
    table.add_column("least of")
    for one in found:
        name, least = one.worst if one.found else ("", None)
        table.add_row(
            one.work,
            f"{one.wanted:.2f}",
            _shown(one.mean),
            _shown(least),
            str(len(one.found)),
            str(one.missing),
            "yes" if one.met else "no",
            name,
        )
    console.print(table)


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"


def show_models(table: Mapping[str, Any], console: Console) -> None:
    """Print the models' times, a line for each."""
    times: dict[str, dict[str, Row]] = {}
    for row in table.get("rows", []):
        times.setdefault(row["model"], {})[row["by"]] = row
    by = list(dict.fromkeys(name for one in times.values() for name in one))
    shown = Table(title="models, microseconds of a call (on the host)", title_justify="left")
    for column in ("model", "error", *by):
        shown.add_column(column, justify="left" if column == "model" else "right")
    for model, one in times.items():
        errors = [row["error"] for row in one.values() if row.get("error") is not None]
        cells = [_call(one.get(name, {})) for name in by]
        shown.add_row(model, f"{max(errors):.0e}" if errors else "", *cells)
    console.print(shown)


def _call(row: Row) -> str:
    if "us" not in row:
        return "failed" if "problem" in row else ""
    return f"{row['us']:.0f} ({row['host_us']:.0f})" + ("" if row["right"] else " wrong")


def main() -> None:
    """Print what a file has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path, help="what gpu_check.py wrote")
    options = parser.parse_args()
    found = json.loads(options.tables.read_text())
    tables = {one["part"]: one["table"] for one in found["parts"]}
    console = Console()
    show_models(tables.get("models") or {}, console)
    show(aims(tables), console)


if __name__ == "__main__":
    main()

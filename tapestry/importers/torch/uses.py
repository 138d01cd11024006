"""The operators of graphs that were imported: which are native, and why others are not.

>>> report = Coverage([Use("aten.relu.default", None), Use("aten.i0.default", None, "no lowering")])
>>> print(report)
1 of 2 applications of operators are native (50.0 %)
  1 x aten.i0.default is external: no lowering
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tapestry.diagnostics import Location


@dataclass(frozen=True)
class Use:
    """One application of an operator; `reason` says why it stays PyTorch's, None if it does not."""

    operator: str
    location: Location | None
    reason: str | None = None


@dataclass
class Coverage:
    """The applications of operators in one graph or several."""

    uses: list[Use] = field(default_factory=list[Use])

    @property
    def external(self) -> list[Use]:
        """The applications that stay PyTorch's."""
        return [use for use in self.uses if use.reason is not None]

    @property
    def native_share(self) -> float:
        """The share of applications that Tapestry computes; 1 of none."""
        return 1 - len(self.external) / len(self.uses) if self.uses else 1.0

    def __str__(self) -> str:
        if not self.uses:
            return "no operators were imported: PyTorch has traced none"
        native = len(self.uses) - len(self.external)
        share = f"{100 * self.native_share:.1f} %"
        lines = [f"{native} of {len(self.uses)} applications of operators are native ({share})"]
        counts = Counter((use.operator, use.reason) for use in self.external)
        for (operator, reason), count in counts.most_common():
            places = [
                str(use.location)
                for use in self.external
                if (use.operator, use.reason) == (operator, reason) and use.location is not None
            ]
            first = f", first at {places[0]}" if places else ""
            lines.append(f"  {count} x {operator} is external: {reason}{first}")
        return "\n".join(lines)


_open: list[Coverage] = []


@contextmanager
def recording() -> Generator[Coverage]:
    """Collects the applications of every graph that is imported meanwhile."""
    report = Coverage()
    _open.append(report)
    try:
        yield report
    finally:
        _open.remove(report)


def is_recording() -> bool:
    """Whether anybody collects applications now."""
    return bool(_open)


def record(use: Use) -> None:
    """Add an application to the reports that are being collected."""
    for report in _open:
        report.uses.append(use)

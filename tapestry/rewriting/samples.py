"""Places where a rule applies, as data: what `sampling` draws and obligations are shown at.

sample.situation.specs["x"]             # TensorSpec((3, 5), "f32")
sample.describe(rule)                   # "x: [3, 5] f32, axis of y: 1"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tapestry.metakernels.values import Value as Known
from tapestry.rewriting.binding import Combination, Situation, combination_of
from tapestry.rewriting.rules import Rule


@dataclass(frozen=True)
class Sample:
    """One place where a rule applies, and the names' values for one of its choices."""

    situation: Situation
    names: Mapping[str, Known]
    numbers: Mapping[str, Mapping[int, float]]
    """Per matched application, the numbers it is applied to, by position."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the tensors, sorted."""
        return tuple(sorted({spec.dtype for spec in self.situation.specs.values()}))

    def combination(self, rule: Rule) -> Combination:
        """The dtypes of all its tensors, one by one."""
        return combination_of(rule, self.situation)

    @property
    def cells(self) -> int:
        """Cells of the largest tensor."""
        return max(prod(spec.shape) for spec in self.situation.specs.values())

    def describe(self, rule: Rule) -> str:
        """The inputs, and the parameters that are matched."""
        told = [f"{name}: {self.situation.specs[name]}" for name in rule.inputs]
        for application, arguments in self.situation.parameters.items():
            told += [f"{key} of {application}: {shown(value)}" for key, value in arguments.items()]
        told += [f"{name}: {self.names[name]}" for name, _ in rule.choices]
        return ", ".join(told)


def shown(value: object) -> str:
    """A parameter's value as programs write it."""
    if isinstance(value, tuple | list):
        items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return f"[{', '.join(map(shown, items))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)

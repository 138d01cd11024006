"""The options of `torch.compile(model, backend="tapestry", options={...})`.

| option | values | default |
|---|---|---|
| `on` | `numpy`, `triton`, `reference` | `numpy` |
| `pipeline` | passes, as `tapestry-opt -p` takes them | `default` |
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from tapestry.diagnostics import UsageError
from tapestry.runtime.executor import EXECUTORS


@dataclass(frozen=True)
class Options:
    """How programs are compiled and where they run."""

    on: str = "numpy"
    pipeline: str = "default"

    @staticmethod
    def of(given: Mapping[str, object]) -> Options:
        """Options by name; UsageError for others, and for values that do not fit."""
        known = [field.name for field in fields(Options)]
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                raise UsageError(f"the backend has no option {name!r}", hint=hint)
        options = Options(**{name: str(value) for name, value in given.items()})
        if options.on not in EXECUTORS:
            raise UsageError(
                f"there is no executor {options.on!r}", hint=f"one of {', '.join(EXECUTORS)}"
            )
        return options

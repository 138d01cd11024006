"""The options of `torch.compile(model, backend="tapestry", options={...})`.

| option | what it says | values | default |
|---|---|---|---|
| `on` | the executor | `numpy`, `triton`, `reference` | by device |
| `pipeline` | the passes, as `tapestry-opt -p` takes them | | `default` |
| `numerics` | that of `loom-to-triton` | `strict`, `mixed`, `fast` | `mixed` |
| `strict` | whether an operator that is not native is an error | `True`, `False` | `False` |
| `graphs` | whether a GPU replays programs as CUDA graphs | `True`, `False` | `False` |
| `fallback` | whether numpy runs what a GPU does not run | `True`, `False` | `True` |
| `dump` | a folder for the programs, step by step (`tapestry.dumping`) | a path | none |

On the CPU the default executor is `numpy`, on a GPU `triton`; `reference` runs operation by
operation and takes no pipeline but `weft-apply` by default.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike, fspath
from typing import cast

from tapestry.diagnostics import UsageError
from tapestry.runtime.executor import EXECUTORS


@dataclass(frozen=True)
class Options:
    """How programs are compiled and where they run; None is what suits."""

    on: str | None = None
    pipeline: str | None = None
    numerics: str | None = None
    strict: bool = False
    graphs: bool = False
    fallback: bool = True
    dump: str | None = None

    def executor(self, device: str) -> str:
        """The executor for tensors on a kind of device."""
        return self.on or ("numpy" if device == "cpu" else "triton")

    @staticmethod
    def of(given: object) -> Options:
        """Options by name; UsageError for others, and for values that do not fit."""
        if not isinstance(given, Mapping):
            hint = 'such as options={"on": "numpy"}'
            raise UsageError(f"options are a dictionary, not {given!r}", hint=hint)
        named = dict(cast("Mapping[str, object]", given))
        if isinstance(named.get("dump"), PathLike):
            named["dump"] = fspath(cast("PathLike[str]", named["dump"]))
        known = {field.name: field for field in fields(Options)}
        for name, value in named.items():
            if name not in known:
                near = difflib.get_close_matches(str(name), known, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                raise UsageError(f"the backend has no option {name!r}", hint=hint)
            kind = bool if isinstance(known[name].default, bool) else str
            if not isinstance(value, kind) and (value is not None or kind is bool):
                raise UsageError(f"the option {name} is a {kind.__name__}, not {value!r}")
        options = Options(**named)  # pyright: ignore[reportArgumentType] (checked above)
        _check(options.on, "executor", EXECUTORS)
        if options.numerics is not None:
            from tapestry.passes.triton.loom_to_triton import NUMERICS

            _check(options.numerics, "numerics", tuple(NUMERICS))
        if options.pipeline is not None:
            from tapestry.pipelines import pass_specs

            pass_specs(options.pipeline)
        return options


def _check(value: str | None, what: str, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise UsageError(f"there is no {what} {value!r}", hint=f"one of {', '.join(known)}")

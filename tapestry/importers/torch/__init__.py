"""PyTorch: a backend of `torch.compile`, and what it covers of a model.

    import torch
    fast = torch.compile(model, backend="tapestry")

    module = tapestry.importers.torch.export(model, (x,))

Needs the extra `torch` (`pip install tapestry[torch]`), which `import tapestry` does not load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapestry.passes._collection import collection_paused

with collection_paused():  # which would walk all objects of PyTorch's in between
    from tapestry.importers.torch.backend import backend as backend  # its module's name too
    from tapestry.importers.torch.collecting import pass_by

pass_by()

if TYPE_CHECKING:
    from tapestry.importers.torch.covering import coverage as coverage
    from tapestry.importers.torch.errors import ImportingError as ImportingError
    from tapestry.importers.torch.exporting import export as export
    from tapestry.importers.torch.user_operators import metakernels as metakernels
    from tapestry.importers.torch.uses import Coverage as Coverage
    from tapestry.importers.torch.uses import Use as Use
    from tapestry.importers.torch.uses import recording as recording

_HOMES = {
    "Coverage": "uses",
    "ImportingError": "errors",
    "Use": "uses",
    "coverage": "covering",
    "export": "exporting",
    "metakernels": "user_operators",
    "recording": "uses",
}
"""Where each public name lives; a program that was compiled before needs none of them."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*_HOMES, "backend"})

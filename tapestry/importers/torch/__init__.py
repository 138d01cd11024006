"""PyTorch: a backend of `torch.compile`, and what it covers of a model.

    import torch
    fast = torch.compile(model, backend="tapestry")

    module = tapestry.importers.torch.export(model, (x,))

Needs the extra `torch` (`pip install tapestry[torch]`), which `import tapestry` does not load.
"""

from tapestry.importers.torch.backend import backend
from tapestry.importers.torch.coverage import coverage
from tapestry.importers.torch.errors import ImportingError
from tapestry.importers.torch.exporting import export
from tapestry.importers.torch.metakernels import metakernels
from tapestry.importers.torch.uses import Coverage, Use, recording

__all__ = [
    "Coverage",
    "ImportingError",
    "Use",
    "backend",
    "coverage",
    "export",
    "metakernels",
    "recording",
]

"""PyTorch: a backend of `torch.compile`, and what it covers of a model.

    import torch
    fast = torch.compile(model, backend="tapestry")

Needs the extra `torch` (`pip install tapestry[torch]`), which `import tapestry` does not load.
"""

from tapestry.importers.torch.backend import backend
from tapestry.importers.torch.coverage import Coverage, Use, recording
from tapestry.importers.torch.errors import ImportingError

__all__ = ["Coverage", "ImportingError", "Use", "backend", "recording"]

"""PyTorch: a backend of `torch.compile`, and models as modules ahead of time.

    import torch
    fast = torch.compile(model, backend="tapestry")

Needs the extra `torch` (`pip install tapestry[torch]`), which `import tapestry` does not load.
"""

from tapestry.importers.torch.backend import backend

__all__ = ["backend"]

"""Models are traced with PyTorch, which imports Triton: for its interpreter, without a GPU."""

import tests.importers.torch.conftest  # noqa: F401

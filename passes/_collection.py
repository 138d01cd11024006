"""Python's cycle collector, paused while a pass grows a module.

    with collection_paused():
        PatternRewriteWalker(...).rewrite_module(module)

Operations are cyclic and long-lived: collecting walks all of them again and again, finds little,
and makes the cost of an operation grow with the module.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Generator[None]:
    """Pause the cycle collector, and let it go on as it did before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

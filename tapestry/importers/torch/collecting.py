"""Python's cycle collector, which passes by what there was before while PyTorch compiles.

    pass_by()           # from now on, whoever compiles; calling it again changes nothing

PyTorch imported makes some hundred thousand objects that stay. Dynamo makes many more in a short
time, so the collector walks all of them, again and again, for a tenth of what tracing takes. They
are frozen meanwhile: what is made by the compilation is collected as ever, and what was there
before is collected again afterwards.
"""

# ruff: noqa: PLW0603 (the collector is the process's)

from __future__ import annotations

import gc
import sys
from typing import Any


def pass_by() -> None:
    """Freeze what is there at the start of each compilation until its end.

    PyTorch forgets that when it is reset. Where Dynamo is not there yet, it is not imported.
    """
    if "torch._dynamo.callback" not in sys.modules:
        return
    from torch._dynamo.callback import callback_handler

    # The end first: whatever comes between, nothing stays frozen.
    if _thaw not in callback_handler.end_callbacks:
        callback_handler.register_end_callback(_thaw)
    if _freeze not in callback_handler.start_callbacks:
        callback_handler.register_start_callback(_freeze)


_is_frozen = False
"""Whether it was frozen here. PyTorch calls both functions under a lock, in turns."""


def _freeze(_: Any) -> None:
    global _is_frozen
    if gc.get_freeze_count() == 0:  # what somebody else froze would be thawed with it
        gc.freeze()
        _is_frozen = True


def _thaw(_: Any) -> None:
    global _is_frozen
    if _is_frozen:
        gc.unfreeze()
        _is_frozen = False

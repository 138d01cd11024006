"""Programs made ready for many calls: whatever does not depend on the arrays is done once.

    call = PreparedProgram(module)          # lowered to loom
    (y,) = call([x, w])                     # arrays in the order of the arguments

The numpy executor finds out at each call how operations read and write, because it also runs parts
of them. Here an operation becomes a few NumPy calls on whole tensors: views that are slices and
transpositions, a body as a list of functions, one matrix product. What is large is a tape of such
calls, played for each part that fits the cache, on all threads (`parts`). What has another form is
left to the executor. `PreparedKernels` (in `kernels`) is the same for Triton.

What is prepared knows no IR, and is written down as plain data (`stored`): a later process reads
that, and imports nothing that prepares. So this package imports nothing by itself.

Read `program.py` first, then `operations.py`, which says what an operation becomes: a body as calls
(`bodies.py`), or one of `products`, `folds` and `parts`, which play `tapes`; `loops` are in all of
them. `script.py` is the list of functions that a program becomes; what a process computes them by
is its `library.py`. `linking.py` makes one call of a script that is compiled code alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tapestry.runtime.prepared.program import PreparedProgram as PreparedProgram

__all__ = ["PreparedProgram"]


def __getattr__(name: str) -> Any:
    if name != "PreparedProgram":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tapestry.runtime.prepared import program

    return program.PreparedProgram

"""Running a program from Python.

result = run(module, {"x": images, "w": weights}, on="numpy")
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from tapestry.runtime.executor import Array, NoWatch, Result, Watch, find_executor
from tapestry.runtime.program import check_inputs


def run(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    *,
    on: str = "numpy",
    watch: Watch | None = None,
) -> Result:
    """The outputs of @main, and what ran, on the executor `on`: reference, numpy or triton.

    `module` is in loom (apply `weft-apply` first); `inputs` has an array per argument, by name.
    Raises InputError for arrays that do not fit and UsageError for an executor that does not exist.
    """
    executor = find_executor(on)
    check_inputs(module, inputs)
    return executor.run(module, inputs, NoWatch() if watch is None else watch)

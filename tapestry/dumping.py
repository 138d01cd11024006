"""A folder that shows how a program was compiled, and runs it again without who compiled it.

    tapestry run model.mlir --inputs in.npz --dump out/

    out/00-program.mlir        the program as it was given
    out/01-weft-apply.mlir     after each pass
    out/...
    out/kernels.py             the Triton kernels, where it runs on triton
    out/constants.npz          constants too large for text
    out/inputs.npz             what the last run was given
    out/repro.py               runs it again: the program, the passes and the inputs above

`repro.py` compares with the reference executor, so it shows whether the passes are at fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.diagnostics import UsageError
from tapestry.files import whole_file
from tapestry.printing import text_of
from tapestry.runtime.executor import Array
from tapestry.saving import ConstantFile

_SCRIPT = '''\
"""Runs the program of this folder as it was run, and compares with the reference executor."""

from pathlib import Path

import numpy as np

import tapestry

HERE = Path(__file__).parent
ON = {on!r}
PIPELINE = {pipeline!r}

program = tapestry.load(HERE / "00-program.mlir", on=ON, pipeline=PIPELINE)
inputs = {{}}
if (HERE / "inputs.npz").exists():
    with np.load(HERE / "inputs.npz", allow_pickle=False) as archive:
        inputs = {{name: archive[name] for name in archive.files}}
have = program.run(inputs).outputs
want = tapestry.load(HERE / "00-program.mlir", on="reference").run(inputs).outputs
for number, (one, other) in enumerate(zip(have, want, strict=True)):
    far = np.abs(one.astype("f8") - other.astype("f8")).max(initial=0.0)
    kind = f"{{one.dtype}}{{list(one.shape)}}"
    print(f"output {{number}}: {{kind}}, at most {{far:.3g}} from the reference")
'''


class Dump:
    """A folder that a compilation is written to, made if it is not there."""

    def __init__(self, folder: str | Path) -> None:
        """Raises UsageError where there can be no such folder."""
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from None
        for old in (*self.folder.glob("[0-9][0-9]-*.mlir"), self.folder / "kernels.py"):
            old.unlink(missing_ok=True)
        self._constants = ConstantFile(self.folder / "constants.npz")
        self._count = 0

    def module(self, name: str, module: ModuleOp) -> None:
        """Write a module as the next step, called `name`."""
        self._write(f"{self._count:02}-{name}.mlir", text_of(self._constants.moved(module)))
        self._count += 1

    def finish(self, lowered: ModuleOp, *, on: str, pipeline: str) -> None:
        """Write what the passes lead to: the kernels, if any, and the script that runs again."""
        self._write("repro.py", _SCRIPT.format(on=on, pipeline=pipeline))
        if on == "triton":
            from tapestry.codegen.kernels import kernel_source  # which most programs never need
            from tapestry.passes.triton.loom_to_triton import NO_DEVICE

            self._write("kernels.py", kernel_source(lowered, NO_DEVICE))

    def inputs(self, arrays: Mapping[str, Array]) -> None:
        """Write what a run was given."""
        path = self.folder / "inputs.npz"
        with whole_file(path) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **dict(arrays))

    def _write(self, name: str, text: str) -> None:
        with whole_file(self.folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")

"""One program on every executor, whole and sharded: all must give what the reference gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.passes.loom.outline import inlined
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.program import arguments
from tapestry.runtime.running import run


def agree(
    text: str,
    inputs: Mapping[str, Array],
    want: Sequence[Array] | None = None,
    *,
    pipelines: Sequence[str] = (),
    tolerance: float = 1e-5,
) -> list[Array]:
    """Check the program of `text` after each pipeline, spelled out or not, on every executor.

    Outputs must be those of the reference on the program as written, and `want` when it is given.
    """
    module = parse_text(text)
    verify_module(module)
    reference = list(run(module, inputs, on="reference").outputs)
    for got, known in zip(reference, reference if want is None else want, strict=True):
        _close(got, known, tolerance, "reference")
    for pipeline in ("", *pipelines):
        for spelled in ("", "loom-expand-shards"):
            rewritten = parse_text(text)
            run_pipeline(rewritten, ",".join(filter(None, (pipeline, spelled))))
            for executor in ("reference", "numpy", "triton"):
                if spelled and not pipeline:
                    continue
                outputs = run(rewritten, inputs, on=executor).outputs
                for got, known in zip(outputs, reference, strict=True):
                    _close(got, known, tolerance, f"{executor} after {pipeline} {spelled}")
            for got, known in zip(in_parts_of(rewritten, inputs), reference, strict=True):
                _close(got, known, tolerance, f"parts after {pipeline} {spelled}")
    return reference


def in_parts_of(module: ModuleOp, inputs: Mapping[str, Array], cache: int = 256) -> list[Array]:
    """The outputs of a prepared program, the second time, whose parts are small and on threads."""
    parts = partial(in_parts, small=0, threads=2, cache=cache)
    prepared = PreparedProgram(inlined(module), parts=parts)
    given = [inputs[argument.name] for argument in arguments(module)]
    prepared(given)
    return prepared(given)


def _close(got: Array, want: Array, tolerance: float, what: str) -> None:
    assert got.shape == want.shape, what
    if got.dtype.kind in "ib" or tolerance == 0:
        np.testing.assert_array_equal(got, want, err_msg=what)
    else:
        wide = (got.astype(np.float64), want.astype(np.float64))
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance, err_msg=what)

"""Compiled graphs as plain JSON, which is read without importing what compiles.

    entry = written(device, program, prepared)      # what an entry of the cache holds
    run = read(entry, options)                      # what Dynamo's graph calls

What is prepared for NumPy is written as that, if it has such a form: then not even IR is imported.
Otherwise the lowered module is, which is prepared again. A graph that PyTorch runs a part of has
no plain form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from tapestry.importers.torch.calling import Ends, OnArrays, Runner
from tapestry.importers.torch.memory import Given, Made, Output, Plain, View
from tapestry.importers.torch.options import Options
from tapestry.importers.torch.products import LIBRARY
from tapestry.runtime.prepared.stored import NotStorableError, restored, stored

if TYPE_CHECKING:
    from tapestry.importers.torch.program import Program
    from tapestry.runtime.prepared.script import Whole


class NotWrittenError(Exception):
    """A compiled graph that has no plain form."""


def written(device: torch.device, program: Program, prepared: Whole | None) -> dict[str, Any]:
    """A program as plain JSON, `prepared` if it is; NotWrittenError where there is none."""
    from tapestry.dialects import loom

    if program.aftermath is not None or any(
        isinstance(op, loom.ExternalOp) for op in program.module.walk()
    ):
        raise NotWrittenError("PyTorch runs a part of it")
    ends = {
        "device": str(device),
        "arguments": list(program.arguments),
        "seeds": program.seeds,
        "outputs": [_output(output) for output in program.outputs],
    }
    if prepared is not None:
        try:
            return ends | {"prepared": stored(prepared, LIBRARY)}
        except NotStorableError:
            pass
    from tapestry.encoding import EncodingError, encode_exactly
    from tapestry.frontend import make_context

    try:
        return ends | {"module": encode_exactly(program.module, {}, make_context())}
    except EncodingError as error:
        raise NotWrittenError(str(error)) from None


def read(entry: Mapping[str, Any], options: Options) -> Runner:
    """What was `written`, as it runs; some error of Python's for other data."""
    outputs = tuple(_read_output(*row) for row in entry["outputs"])
    ends = Ends(tuple(entry["arguments"]), entry["seeds"], outputs)
    if "prepared" in entry:
        return OnArrays(ends, restored(entry["prepared"], LIBRARY))
    from tapestry.encoding import EncodingError, decode
    from tapestry.frontend import make_context
    from tapestry.importers.torch.program import Program
    from tapestry.importers.torch.running import runner
    from tapestry.importers.torch.uses import Coverage

    try:
        module = decode(entry["module"], {}, make_context())
    except EncodingError as error:
        raise ValueError(str(error)) from None
    device = torch.device(entry["device"])
    return runner(
        Program(module, ends.arguments, ends.seeds, ends.outputs, Coverage()),
        device,
        options.executor(device.type),
        options.numerics,
        graphs=options.graphs,
        fallback=options.fallback,
    )


def _output(output: Output) -> list[Any]:
    match output:
        case Given():
            return ["given", output.position]
        case Made():
            how = output.contiguous, output.view, str(output.device), output.order
            return ["made", output.result, *how]
        case View():
            return ["view", output.base, output.given, output.size, output.stride, output.offset]
        case Plain() if output.value is None or type(output.value) in (bool, int, float, str):
            return ["plain", output.value]
        case _:
            raise NotWrittenError(f"it returns {output}")


def _read_output(kind: str, *rest: Any) -> Output:
    match kind:
        case "given":
            return Given(*rest)
        case "made":
            result, contiguous, view, place, order = rest
            return Made(result, contiguous, view, torch.device(place), tuple(order))
        case "view":
            base, given, size, stride, offset = rest
            return View(base, given, tuple(size), tuple(stride), offset)
        case _:
            return Plain(*rest)

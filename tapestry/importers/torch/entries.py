"""Compiled graphs as plain JSON, which is read without importing what compiles.

    entry = written(device, program)         # what an entry of the cache holds
    device, program = read(entry)

A graph that PyTorch runs a part of has no such form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tapestry.dialects import loom
from tapestry.encoding import EncodingError, decode, encode_exactly
from tapestry.frontend import make_context
from tapestry.importers.torch.memory import Given, Made, Output, Plain, View
from tapestry.importers.torch.program import Program
from tapestry.importers.torch.uses import Coverage


def written(device: torch.device, program: Program) -> dict[str, Any]:
    """A program as plain JSON; EncodingError for one that is more than that."""
    ctx = make_context()
    if program.aftermath is not None or any(
        isinstance(op, loom.ExternalOp) for op in program.module.walk()
    ):
        raise EncodingError("PyTorch runs a part of it")
    return {
        "device": str(device),
        "module": encode_exactly(program.module, {}, ctx),
        "arguments": list(program.arguments),
        "seeds": program.seeds,
        "outputs": [_output(output) for output in program.outputs],
    }


def read(entry: Mapping[str, Any]) -> tuple[torch.device, Program]:
    """What `written` made; some error of Python's, or EncodingError, for other data."""
    outputs: list[Output] = []
    for kind, *rest in entry["outputs"]:
        match kind:
            case "given":
                outputs.append(Given(*rest))
            case "made":
                result, contiguous, view, place = rest
                outputs.append(Made(result, contiguous, view, torch.device(place)))
            case "view":
                of, size, stride, offset = rest
                outputs.append(View(of, tuple(size), tuple(stride), offset))
            case _:
                outputs.append(Plain(*rest))
    module = decode(entry["module"], {}, make_context())
    program = Program(module, tuple(entry["arguments"]), entry["seeds"], tuple(outputs), Coverage())
    return torch.device(entry["device"]), program


def _output(output: Output) -> list[Any]:
    match output:
        case Given():
            return ["given", output.position]
        case Made():
            return ["made", output.result, output.contiguous, output.view, str(output.device)]
        case View():
            return ["view", output.output, output.size, output.stride, output.offset]
        case Plain() if output.value is None or type(output.value) in (bool, int, float, str):
            return ["plain", output.value]
        case _:
            raise EncodingError(f"it returns {output}")

"""Models as modules, ahead of time.

    module = export(model, (x,))                        # weights are constants
    tapestry.save(module, "model.mlir")                 # large ones go to a file beside it

    module = export(model, (x,), weights="arguments")   # func.func @main(%x, %layer.weight, ...)

Arguments are named like those of the model's `forward`, and weights like its parameters. Results
are the tensors that it returns, in order, and then the new values of what it writes: its buffers,
and inputs. A module computes values alone: assertions are left out.
"""

from __future__ import annotations

import sysconfig
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.nn.attention import SDPBackend, sdpa_kernel
from xdsl.dialects.builtin import ModuleOp

import tapestry
from tapestry.diagnostics import Location, UsageError
from tapestry.importers.torch.decompositions import decompositions
from tapestry.importers.torch.errors import ImportingError
from tapestry.importers.torch.graphs import Weight, program_of
from tapestry.importers.torch.program import Program

Weights = Literal["constants", "arguments"]

_LIBRARIES: Final = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    *(str(Path(str(module.__file__)).parent) for module in (torch, tapestry)),
    "<",
)
"""Where files are that are not a user's: folders of libraries, and what has no file."""


def export(
    model: nn.Module | Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    weights: Weights = "constants",
    strict: bool = False,
) -> ModuleOp:
    """The module of a call of a model, in weft; `strict` as of the backend's options.

    A function counts as a model without weights. Raises UsageError for arguments that are none, and
    ImportingError, at the line of the model, for what PyTorch cannot export.
    """
    return exported_program(model, args, kwargs, weights=weights, strict=strict).module


def exported_program(
    model: nn.Module | Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    weights: Weights = "constants",
    strict: bool = False,
) -> Program:
    """What `export` makes, and its coverage."""
    if weights not in ("constants", "arguments"):
        raise UsageError(f"weights are constants or arguments, not {weights!r}")
    called = _called(model)
    if isinstance(args, torch.Tensor) or not isinstance(args, list | tuple):
        kind = type(cast(object, args)).__name__
        raise UsageError(f"the arguments are a {kind}", hint="write export(model, (x,))")
    if kwargs is not None and not isinstance(cast(object, kwargs), Mapping):
        kind = type(cast(object, kwargs)).__name__
        raise UsageError(f"the arguments by name are a {kind}", hint='a dictionary: {"mask": mask}')
    exporting: Any = torch.export
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's, of what it does itself
        try:
            made = exporting.export(called, tuple(args), dict(kwargs or {}), strict=False)
            lowered: Any = made.run_decompositions(dict(decompositions()))
        except Exception as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else "no reason"
            branches = isinstance(error, GuardOnDataDependentSymNode)
            raise ImportingError(
                f"PyTorch cannot export the model: {type(error).__name__}: {first}",
                location=raised_at(error),
                hint="torch.export takes no branches that depend on data" if branches else None,
            ) from error
    tensors: dict[str, torch.Tensor] = {**lowered.state_dict, **lowered.constants}
    known: dict[str, Weight] = {}
    for spec in lowered.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            held = tensors[spec.target] if weights == "constants" else None
            known[spec.arg.name] = Weight(spec.target, held)
    _returned_first(lowered)
    return program_of(lowered.graph_module, weights=known, strict=strict, alone=True)


def raised_at(error: BaseException) -> Location | None:
    """The innermost line that raised an error and is not a library's; None where there is none."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Location(error.filename, error.lineno, error.offset or 1)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    if not own:
        return None
    return Location(own[-1].filename, own[-1].lineno or 1, (own[-1].colno or 0) + 1)


def _called(model: object) -> nn.Module:
    """A model; a function becomes the `forward` of one."""
    if isinstance(model, nn.Module):
        return model
    if not callable(model) or isinstance(model, type):
        kind = "a class" if isinstance(model, type) else f"a {type(model).__name__}"
        raise UsageError(f"a model is a torch.nn.Module or a function, not {kind}")

    class Function(nn.Module):
        forward = staticmethod(model)

    return Function()


def _returned_first(exported: Any) -> None:
    """Put what a model returns before the new values of what it writes."""
    output = exported.graph.output_node()
    pairs = zip(exported.graph_signature.output_specs, output.args[0], strict=True)
    ordered = sorted(pairs, key=lambda pair: pair[0].kind != OutputKind.USER_OUTPUT)
    output.args = (tuple(value for _, value in ordered),)

"""`tapestry metakernel show`: what a metakernel is for some shapes, with numbers or symbols.

    @sum(x: [N, K] f32) -> result: [N] f32
      index
        d0  map       N  @pre
        d1  fold add  K  @n
      x reads (d0, d1) -> (d0, d1)
        [1 0 | 0]
        [0 1 | 0]
      ...
      wrap: x

A projection is shown as a map and as an integer matrix: a row per tensor dimension, a column per
index dimension, the offset after the bar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tapestry.diagnostics import UsageError
from tapestry.metakernels import Library, Template, load_library
from tapestry.metakernels.dtypes import DTYPES, allowed
from tapestry.metakernels.expansion import (
    Composite,
    Expansion,
    MapFold,
    Move,
    Reshape,
    Tensor,
    TensorSpec,
)
from tapestry.metakernels.scalar_text import scalar_text
from tapestry.metakernels.scalars import Scalar
from tapestry.metakernels.symbolic import expand_symbolically
from tapestry.tools._report import table_console
from tapestry.tools._show_options import named_lists, named_values
from tapestry.zspace import Projection


@dataclass(frozen=True)
class Request:
    """What `tapestry metakernel show` was asked."""

    name: str
    shapes: str | None = None
    dtypes: str | None = None
    parameters: str | None = None
    metakernels: Path | None = None


def show_metakernel(request: Request) -> None:
    """Print a template, or what it is for the shapes given."""
    folders = () if request.metakernels is None else (request.metakernels,)
    library = load_library(folders)
    template = library.get(request.name)
    lines = list(_template_lines(template))
    if request.shapes is not None or not template.inputs:
        lines = [*lines, "", *_applied_lines(request, template, library)]
    console = table_console()
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _template_lines(template: Template) -> Iterator[str]:
    yield f"@{template.name}  ({template.location})"
    yield from (f"  {line}" for line in (template.doc, template.formula) if line)
    for parameter in template.parameters:
        default = "" if parameter.default is None else f" = {_value(parameter.default)}"
        yield f"  {{{parameter.name}: {parameter.type_name}{default}}}"
    for entry in template.inputs:
        yield f"  {entry.name}: {entry.shape.text} {entry.dtype.text}"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return str(list(cast("tuple[object, ...]", value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _applied_lines(request: Request, template: Template, library: Library) -> Iterator[str]:
    shapes = named_lists("shapes", request.shapes or "")
    dtypes = {name: str(value) for name, value in named_values("dtypes", request.dtypes).items()}
    names = [entry.name for entry in template.inputs]
    for option, given in (("--shapes", shapes), ("--dtypes", dtypes)):
        for name in given:
            if name not in names:
                raise UsageError(f"{option} names {name}, which is no input of @{template.name}")
    tensors: list[tuple[Sequence[int | str], str]] = []
    for entry in template.inputs:
        if entry.name not in shapes:
            raise UsageError(
                f"--shapes does not say the shape of {entry.name}",
                hint=f"--shapes {','.join(f'{name}=[...]' for name in names)}",
            )
        dtype = dtypes.get(entry.name) or _usual_dtype(allowed(entry.dtype.tree.constraint))
        if dtype not in DTYPES:
            raise UsageError(f"there is no dtype {dtype}", hint=f"one of {', '.join(DTYPES)}")
        tensors.append((shapes[entry.name], dtype))
    parameters = named_values("params", request.parameters)
    found = expand_symbolically(template, tensors, parameters, library)
    yield from expansion_lines(found.expansion)
    if found.assumptions:
        yield f"assuming {', '.join(found.assumptions)}"


def _usual_dtype(fitting: Sequence[str]) -> str:
    return "f32" if "f32" in fitting else fitting[-1]


def expansion_lines(expansion: Expansion, names: Mapping[str, str] | None = None) -> Iterator[str]:
    """An expansion as indented lines; `names` are what its operands are called outside."""
    called = names or {}
    operands = ", ".join(
        _typed(called.get(tensor.name, tensor.name), tensor.spec) for tensor in expansion.inputs
    )
    results = ", ".join(_typed(tensor.name, tensor.spec) for tensor in expansion.outputs)
    yield f"@{expansion.template}({operands}) -> {results}"
    body = expansion.body
    if isinstance(body, Composite):
        for call in body.calls:
            inner = [tensor.name for tensor in call.expansion.inputs]
            first, *rest = expansion_lines(
                call.expansion, dict(zip(inner, call.operands, strict=True))
            )
            yield f"  {call.name} = {first}"
            yield from (f"  {line}" for line in rest)
        return
    lines = [*_space_lines(expansion), *_projection_lines(expansion), *_body_lines(expansion)]
    yield from (f"  {line}" for line in lines)


def _typed(name: str, spec: TensorSpec) -> str:
    return f"{name}: {spec}"


def _space_lines(expansion: Expansion) -> Iterator[str]:
    space = expansion.space
    if space is None:
        return
    monoid = expansion.body.monoid if isinstance(expansion.body, MapFold) else None
    kinds = [
        kind if kind == "map" or monoid is None else f"{kind} {monoid}" for kind in space.kinds
    ]
    yield "index"
    for dim, (kind, extent, label) in enumerate(
        zip(kinds, space.extents, space.labels, strict=True)
    ):
        named = "" if label is None else f"  @{label}"
        yield f"  d{dim}  {kind.ljust(max(map(len, kinds)))}  {extent}{named}"


def _projection_lines(expansion: Expansion) -> Iterator[str]:
    ports: list[tuple[str, Tensor, Projection, str]] = []
    for position, (tensor, read) in enumerate(zip(expansion.inputs, expansion.reads, strict=False)):
        fill = expansion.fills[position] if expansion.fills else None
        outside = "" if fill is None else f", {scalar_text(fill)} outside"
        ports.append(("reads", tensor, read, outside))
    for tensor, write in zip(expansion.outputs, expansion.writes, strict=False):
        ports.append(("writes", tensor, write, ""))
    for verb, tensor, projection, note in ports:
        yield f"{tensor.name} {verb} {projection}{note}"
        yield from (f"  {row}" for row in matrix_lines(projection))


def matrix_lines(projection: Projection) -> list[str]:
    """The rows of a projection's matrix, each with its offset, in columns."""
    rows = [
        [str(c) for c in (*row, offset)]
        for row, offset in zip(projection.map.matrix, projection.map.offset, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return [f"[{' '.join((*row[:-1], '|', row[-1]))}]" for row in cells]


def _body_lines(expansion: Expansion) -> Iterator[str]:
    match expansion.body:
        case MapFold() as body:
            yield from _parts("wrap", body.wrap)
            if body.unwrap is not None:
                yield from _parts("unwrap", body.unwrap)
        case Move(source):
            yield f"moves cells alone: result at {source}"
        case Reshape():
            yield "the same cells in row-major order"
        case _:
            yield "no body"


def _parts(key: str, bodies: Sequence[Scalar]) -> Iterator[str]:
    for position, body in enumerate(bodies):
        part = f"[{position}]" if len(bodies) > 1 else ""
        yield f"{key}{part}: {scalar_text(body)} : {body.dtype}"

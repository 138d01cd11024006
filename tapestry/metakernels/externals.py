"""Templates without a body: kernels that are registered by name.

    sort_rows:
      inputs: {x: {shape: "[$rows, $n]", ipf: "[@rows, 0] :> [1, $n]"}}
      index: "[$rows]"
      external: {kernel: sort}
      outputs: {result: {shape: "[$rows, $n]", ipf: "[@rows, 0] :> [1, $n]"}}

Which boxes each point reads and writes is known, so they split like anything else. A template that
reads a box and has neither `wrap` nor `external` is the kernel of its own name.

    >>> from tapestry.metakernels import TensorSpec, expand, load_library
    >>> library = load_library()
    >>> expand(library.get("sort_rows"), [TensorSpec((4, 9), "f32")], {}, library).body
    Opaque(kernel='sort', parameters=(('descending', False),))
"""

from __future__ import annotations

from tapestry.metakernels.errors import BoxError, TemplateError
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.expansion import Expansion, Opaque
from tapestry.metakernels.templates import Template
from tapestry.metakernels.values import Names, Value


def external_kernel(template: Template, expansion: Expansion, names: Names) -> Opaque:
    """The kernel that the operation is, called with values of the template's names."""
    external = template.external
    if external is None and all(read.is_unit for read in expansion.reads):
        raise TemplateError(
            f"template {template.name} says in no wrap what a point computes",
            location=template.location,
            hint="wrap: an expression, or external: {kernel: ...} for one that is registered",
        )
    if any(fill is not None for fill in expansion.fills):
        raise BoxError(
            f"template {template.name}: a kernel without wrap reads inside its tensors alone",
            location=template.location,
            hint="pad the input in a step before it",
        )
    if external is None:
        given = tuple((entry.name, names[entry.name]) for entry in template.parameters)
        return Opaque(template.name, given)
    values: list[tuple[str, Value]] = []
    for name, source in external.parameters:
        with source.explain(f"external.parameters.{name}"):
            values.append((name, evaluate(source.tree, Scope(names))))
    return Opaque(external.kernel, tuple(values))


def require_cells(template: Template, expansion: Expansion) -> None:
    """Raise unless each point writes one cell of each output, as bodies do."""
    for output, write in zip(template.outputs, expansion.writes, strict=False):
        if not write.is_unit:
            with output.projection.explain(f"outputs.{output.name}.ipf"):
                raise BoxError(
                    "a point computes one cell of an output, and this is a box",
                    hint="index the cells, or name a kernel that writes boxes in external",
                )

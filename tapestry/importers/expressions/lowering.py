"""From expressions to a program: each node once, in an order in which operands come first.

    >>> import tapestry
    >>> x = tapestry.input("x", (4,), "float32")
    >>> print(module_of([tapestry.relu(x)]))
    builtin.module {
      func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
        %0 = weft.apply @relu(%x) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
        func.return %0 : !loom.tensor<[0] : [4], f32>
      }
    }

Metakernels that are not of the library come along, so that the program means the same elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import SSAValue

from tapestry.diagnostics import Location, UsageError
from tapestry.importers.building import Given, ProgramBuilder
from tapestry.importers.expressions.nodes import Application, Constant, Expression, Input, Node


def module_of(outputs: Sequence[Expression]) -> ModuleOp:
    """The program that computes `outputs`.

    Raises UsageError where two inputs, or two metakernels, have one name.
    """
    nodes = _ordered(outputs)
    build = ProgramBuilder()
    values: dict[Node, tuple[SSAValue, ...]] = {}
    named: dict[str, Input] = {}
    for node in nodes:
        if isinstance(node, Input):
            if node.name in named:
                raise UsageError(
                    f"two inputs are named {node.name}",
                    location=node.location,
                    hint=f"the other is made at {named[node.name].location}",
                )
            named[node.name] = node
            argument = build.argument(
                node.name, node.kind.box.shape, node.kind.element_type, _place(node.location)
            )
            values[node] = (argument,)
    for node in nodes:
        match node:
            case Constant():
                kind = node.kind.element_type
                made = build.constant(node.cells, kind, location=_place(node.location))
                values[node] = (made,)
            case Application():
                values[node] = build.apply(
                    node.metakernel,
                    *(_operand(given, values) for given in node.inputs),
                    parameters=node.parameters,
                    location=_place(node.location),
                    library=node.library,
                )
            case Input():
                pass
    return build.finish([values[output.node][output.position] for output in outputs])


def _ordered(outputs: Sequence[Expression]) -> list[Node]:
    """Every node that `outputs` need, operands first."""
    done: dict[Node, None] = {}
    pending: list[tuple[Node, bool]] = [(output.node, False) for output in reversed(outputs)]
    while pending:
        node, ready = pending.pop()
        if ready:
            done[node] = None
        elif node not in done:
            pending.append((node, True))
            if isinstance(node, Application):
                pending.extend((one.node, False) for one in reversed([*node.operands()]))
    return list(done)


def _operand(
    given: Expression | tuple[Expression, ...] | None, values: dict[Node, tuple[SSAValue, ...]]
) -> Given:
    if given is None:
        return None
    if isinstance(given, Expression):
        return values[given.node][given.position]
    return [values[one.node][one.position] for one in given]


def _place(location: Location | None) -> LocationAttr:
    if location is None:
        return UNKNOWN_LOC
    return FileLineColLoc(
        StringAttr(location.file), IntAttr(location.line), IntAttr(location.column)
    )

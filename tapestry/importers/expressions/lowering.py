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

from collections.abc import Iterator, Sequence

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
from tapestry.dialects import weft
from tapestry.dialects._weft_documents import attribute_of
from tapestry.importers.building import Given, ProgramBuilder
from tapestry.importers.expressions.nodes import Application, Constant, Expression, Input, Node
from tapestry.metakernels import Library, load_library


def inputs_of(outputs: Sequence[Expression]) -> tuple[Input, ...]:
    """The inputs that the expressions read, in the order in which they were made."""
    return tuple(node for node in _ordered(outputs) if isinstance(node, Input))


def module_of(outputs: Sequence[Expression]) -> ModuleOp:
    """The program that computes `outputs`.

    Raises UsageError where two inputs, or two metakernels, have one name.
    """
    nodes = _ordered(outputs)
    library = load_library()
    build = ProgramBuilder(library)
    values: dict[Node, tuple[SSAValue, ...]] = {}
    named: dict[str, Input] = {}
    meant: dict[str, Library] = {}
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
                for name in _templates(node.library, node.metakernel):
                    if not node.library.shares(name, meant.setdefault(name, node.library)):
                        message = f"two metakernels of one program are named {name}"
                        raise UsageError(message, location=node.location, hint="rename one")
                build.library = node.library
                values[node] = build.apply(
                    node.metakernel,
                    *(_operand(given, values) for given in node.inputs),
                    parameters=node.parameters,
                    location=_place(node.location),
                )
            case Input():
                pass
    module = build.finish([values[output.node][output.position] for output in outputs])
    definitions = [
        _definition(name, own) for name, own in meant.items() if not own.shares(name, library)
    ]
    if definitions:
        module.body.block.insert_ops_before(definitions, next(iter(module.body.block.ops)))
    return module


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


def _templates(library: Library, name: str) -> Iterator[str]:
    """The names of the templates that an application of `name` uses."""
    pending, seen = [name], set[str]()
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            yield one
            pending.extend(step.op for step in library.get(one).steps)


def _definition(name: str, library: Library) -> weft.MetakernelOp:
    return weft.MetakernelOp(name, attribute_of(library.get(name).document))


def _place(location: Location | None) -> LocationAttr:
    if location is None:
        return UNKNOWN_LOC
    return FileLineColLoc(
        StringAttr(location.file), IntAttr(location.line), IntAttr(location.column)
    )

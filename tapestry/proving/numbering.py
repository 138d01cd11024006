"""Values numbered by what computes them: values with one number are equal, in any program.

    a:  %h = exp(%x)   %s = sum(%h)
    b:  %e = exp(%x)   %t = sum(%e)          %h and %e have one number, and so have %s and %t

An operation's number stands for its name, attributes, bodies and the numbers of its operands; what
a symbol refers to counts, not how it is called. Keys are compared whole, so equal numbers are never
a coincidence. Linear in the size of the programs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import Pure

_NAMES = ("label", "sym_name", "derivation", "not_derived")
"""What names an operation for people or symbols, or notes how it came: it computes the same."""


def symbols_of(module: ModuleOp) -> dict[str, Operation]:
    """The symbols of a module but its functions, by name."""
    found: dict[str, Operation] = {}
    for op in module.body.block.ops:
        name = op.properties.get("sym_name")
        if isinstance(name, StringAttr) and not isinstance(op, func.FuncOp):
            found[name.data] = op
    return found


@dataclass
class Numbering:
    """Numbers for operations and values, shared by the programs that are compared."""

    _known: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _seen: dict[int, tuple[Attribute, int]] = field(
        default_factory=dict[int, tuple[Attribute, int]]
    )
    """Attributes by identity: hashing one takes longer than looking it up."""

    def number(self, key: Hashable) -> int:
        """The number of a key."""
        return self._known.setdefault(key, len(self._known))

    def symbols(self, module: ModuleOp) -> dict[str, int]:
        """The numbers of what a module's symbols refer to."""
        found: dict[str, int] = {}
        for name, op in symbols_of(module).items():
            found[name] = self.kind(op, found)
        return found

    def kind(self, op: Operation, symbols: dict[str, int]) -> int:
        """What an operation computes, whatever its operands: attributes, types and bodies."""
        return self.number(("operation", *self._rows(op, symbols)))

    def value(self, kind: int, operands: tuple[int, ...], place: int) -> int:
        """A result of an operation of some kind, from the numbers of its operands."""
        return self.number(("value", kind, operands, place))

    def _attribute(self, attribute: Attribute) -> int:
        found = self._seen.get(id(attribute))
        if found is None:
            # The attribute is kept, so that its identity is not given to another one.
            found = self._seen[id(attribute)] = (attribute, self.number(attribute))
        return found[1]

    def _rows(self, op: Operation, symbols: dict[str, int]) -> list[Hashable]:
        rows: list[Hashable] = [op.name]
        rows += [self._attribute(result.type) for result in op.results]
        for attributes in (op.properties, op.attributes):
            for name, attribute in sorted(attributes.items()):
                if name in _NAMES:
                    continue
                if isinstance(attribute, SymbolRefAttr):
                    symbol = symbols.get(attribute.root_reference.data)
                    if symbol is not None:
                        rows.append((name, "symbol", symbol))
                        continue
                rows.append((name, self._attribute(attribute)))
        for region in op.regions:
            rows.append(tuple(self._block(block, symbols) for block in region.blocks))
        if op.results and not op.has_trait(Pure()):
            # Nothing says that another one like it would compute the same.
            rows.append(("alone", id(op)))
        return rows

    def _block(self, block: Block, symbols: dict[str, int]) -> tuple[Hashable, ...]:
        """What a body does, whatever its values are called. Bodies see nothing outside."""
        places: dict[SSAValue, int] = {argument: n for n, argument in enumerate(block.args)}
        rows: list[Hashable] = [self._attribute(argument.type) for argument in block.args]
        for op in block.ops:
            operands = tuple(places[operand] for operand in op.operands)
            rows.append((*self._rows(op, symbols), operands))
            for result in op.results:
                places[result] = len(places)
        return tuple(rows)

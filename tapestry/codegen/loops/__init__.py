"""Bodies as loops for the processor: LLVM IR that computes cells from memory to memory.

    text = loop_text(graph, layout)         # what `tapestry.runtime.cpu.native` compiles

A `Graph` is what is computed for a cell: numbers that are read, scalar operations on them, what is
written, and what is folded. A `Layout` is how arrays move along the axes of the loops. Everything
is in one pass over memory, in vectors; extents and strides are arguments.
"""

from tapestry.codegen.loops.cells import is_known
from tapestry.codegen.loops.graphs import Cell, Folded, Graph, Layout, Merged, Number
from tapestry.codegen.loops.nests import loop_text
from tapestry.codegen.loops.vectors import BYTES, WIDTH, kind_of

__all__ = [
    "BYTES",
    "WIDTH",
    "Cell",
    "Folded",
    "Graph",
    "Layout",
    "Merged",
    "Number",
    "is_known",
    "kind_of",
    "loop_text",
]

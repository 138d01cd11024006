"""Operations of loom that compute one cell per point.

map_operation("gather", kind, [(ids, rows), (table, boxes)], body)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region, SSAValue

from tapestry.dialects import loom
from tapestry.dialects.loom import Iterator, TensorType
from tapestry.zspace import Projection


def maps(rank: int, folds: int = 0) -> list[Iterator]:
    """As many mapped dimensions, and folded ones behind them."""
    mapped: list[Iterator] = ["map"] * rank
    folded: list[Iterator] = ["fold"] * folds
    return mapped + folded


def map_operation(
    label: str,
    result: TensorType,
    reads: Sequence[loom.Read | tuple[SSAValue, Projection]],
    body: Region,
) -> loom.OperationOp:
    """The operation that computes each cell of a tensor by a body."""
    rank = result.box.rank
    outs = [(Projection.identity(rank), result)]
    return loom.OperationOp(label, result.box, maps(rank), None, reads, outs, body)

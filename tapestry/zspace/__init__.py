"""Integer geometry: points, ranges, affine maps, projections and partitions.

The ground floor of Tapestry: plain Python and NumPy, no IR. An operation says, by one projection
per tensor, which box each point of its index space touches; everything about where it may be split
and what each part reads and writes follows by the arithmetic here.

    >>> from tapestry.zspace import Partition, Projection, Range
    >>> rows = Projection.of([[1, 0], [0, 0]], shape=[1, 784])        # point (i, j) reads row i
    >>> shards = Partition.balanced(Range.of((64, 32)), (2, 1))
    >>> [str(rows.apply_range(shard)) for shard in shards]
    ['[0, 0] : [32, 784]', '[32, 0] : [64, 784]']
"""

from tapestry.zspace import shape
from tapestry.zspace.affine import AffineMap
from tapestry.zspace.batch import ProjectionBatch, RangeBatch
from tapestry.zspace.domain import Domain
from tapestry.zspace.errors import (
    BroadcastMismatchError,
    DimMismatchError,
    DuplicateError,
    EmptyRangeError,
    IndexOutOfRangeError,
    InvalidArgumentError,
    InvalidPermutationError,
    InvalidRangeError,
    ZSpaceError,
)
from tapestry.zspace.partition import Partition
from tapestry.zspace.placing import check_placed
from tapestry.zspace.points import (
    Ordering,
    Point,
    compare,
    format_point,
    less,
    less_equal,
    permute,
    resolve_dim,
    resolve_dims,
    resolve_permutation,
)
from tapestry.zspace.projection import Projection
from tapestry.zspace.ranges import Interval, Range, bounding, cut_dims
from tapestry.zspace.tiling import check_tiling

__all__ = [
    "AffineMap",
    "BroadcastMismatchError",
    "DimMismatchError",
    "Domain",
    "DuplicateError",
    "EmptyRangeError",
    "IndexOutOfRangeError",
    "Interval",
    "InvalidArgumentError",
    "InvalidPermutationError",
    "InvalidRangeError",
    "Ordering",
    "Partition",
    "Point",
    "Projection",
    "ProjectionBatch",
    "Range",
    "RangeBatch",
    "ZSpaceError",
    "bounding",
    "check_placed",
    "check_tiling",
    "compare",
    "cut_dims",
    "format_point",
    "less",
    "less_equal",
    "permute",
    "resolve_dim",
    "resolve_dims",
    "resolve_permutation",
    "shape",
]

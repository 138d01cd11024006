"""The triton dialect: tile programs one to one with Triton's language, and the host around them.

A `triton.kernel` is one `@triton.jit` function. A buffer is a `!triton.ptr`, a tile is a builtin
`tensor` of static shape. Arithmetic on tiles is `arith` and `math`, loops are `scf.for`; what those
cannot say on tensors (compare, select, convert) and all that is Triton's own is here. The host is a
`func.func` over row-major `memref`s that allocates and launches. Example, twice a vector of eight,
in two shards:

    triton.kernel @double(%x_ptr: !triton.ptr<f32>, %y_ptr: !triton.ptr<f32>,
                          %d0_start: i32, %d0_end: i32)
        schedule <P = 4, warps = 4, stages = 1> ["double, model.mlir:3"] {
      %pid = triton.program_id 0 : i32
      ...
      %x = triton.load %x_ptr[%p] mask %inside other 0.0 : f32
             : !triton.ptr<f32>, tensor<4xi32>, tensor<4xi1> -> tensor<4xf32>
      %twice = arith.addf %x, %x : tensor<4xf32>
      triton.store %twice to %y_ptr[%p] mask %inside
        : tensor<4xf32>, !triton.ptr<f32>, tensor<4xi32>, tensor<4xi1>
    }
    func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
      %y = triton.allocate : memref<8xf32>
      triton.launch @double(%x, %y : memref<8xf32>, memref<8xf32>) grid <[d0 by BLOCK_P]>
        bounds ["d0"] shards dense<[[0, 4], [4, 8]]> : tensor<2x2xi64>
        {bytes_read = 32 : i64, bytes_written = 32 : i64}
      func.return %y : memref<8xf32>
    }

`tapestry-opt -t triton` prints such a module as Python. The operations are defined in
`_triton_kernel.py` (the kernel), `_triton_schedule.py` (how it walks its points),
`_triton_shapes.py`, `_triton_tiles.py` and `_triton_descriptors.py` (what it is made of) and
`_triton_host.py` (buffers and launches).
"""

from xdsl.ir import Dialect

from tapestry.dialects._triton_approximations import APPROXIMATE, is_approximate
from tapestry.dialects._triton_combiners import CombineOp, ReduceOp, ScanOp, YieldOp
from tapestry.dialects._triton_descriptors import (
    ALIGNMENT,
    DescribeOp,
    DescriptorType,
    LoadBlockOp,
    StoreBlockOp,
)
from tapestry.dialects._triton_host import (
    AliasOp,
    AllocateOp,
    ConstantOp,
    ExternalOp,
    GridAttr,
    GridAxis,
    LaunchOp,
)
from tapestry.dialects._triton_kernel import KernelOp
from tapestry.dialects._triton_schedule import (
    AGAIN,
    BACKWARD,
    EXTRAS,
    FLATTEN,
    LOADS,
    MASKS,
    MATCHES,
    MAX_CELLS,
    MULTIPLE_OF,
    ORDERS,
    PIPELINED,
    PIPELINES,
    UNROLL,
    VISITS,
    WRITTEN_OUT,
    Schedule,
    ScheduleAttr,
    ScheduleError,
)
from tapestry.dialects._triton_shapes import (
    ArangeOp,
    BlockSizeOp,
    BroadcastOp,
    CdivOp,
    CoverOp,
    ExpandDimsOp,
    FullOp,
    ProgramIdOp,
    SwizzleOp,
    TransposeOp,
)
from tapestry.dialects._triton_tiles import (
    AssertOp,
    BitcastOp,
    CastOp,
    CompareOp,
    DotOp,
    ErfcOp,
    LoadOp,
    PhiloxOp,
    StoreOp,
    WhereOp,
)
from tapestry.dialects._triton_types import (
    PointerType,
    buffer_type,
    element_of,
    shape_of,
    tile_type,
)

__all__ = [
    "AGAIN",
    "ALIGNMENT",
    "APPROXIMATE",
    "BACKWARD",
    "EXTRAS",
    "FLATTEN",
    "LOADS",
    "MASKS",
    "MATCHES",
    "MAX_CELLS",
    "MULTIPLE_OF",
    "ORDERS",
    "PIPELINED",
    "PIPELINES",
    "UNROLL",
    "VISITS",
    "WRITTEN_OUT",
    "AliasOp",
    "AllocateOp",
    "ArangeOp",
    "AssertOp",
    "BitcastOp",
    "BlockSizeOp",
    "BroadcastOp",
    "CastOp",
    "CdivOp",
    "CombineOp",
    "CompareOp",
    "ConstantOp",
    "CoverOp",
    "DescribeOp",
    "DescriptorType",
    "DotOp",
    "ErfcOp",
    "ExpandDimsOp",
    "ExternalOp",
    "FullOp",
    "GridAttr",
    "GridAxis",
    "KernelOp",
    "LaunchOp",
    "LoadBlockOp",
    "LoadOp",
    "PhiloxOp",
    "PointerType",
    "ProgramIdOp",
    "ReduceOp",
    "ScanOp",
    "Schedule",
    "ScheduleAttr",
    "ScheduleError",
    "StoreBlockOp",
    "StoreOp",
    "SwizzleOp",
    "TransposeOp",
    "Triton",
    "WhereOp",
    "YieldOp",
    "buffer_type",
    "element_of",
    "is_approximate",
    "shape_of",
    "tile_type",
]

Triton = Dialect(
    "triton",
    [
        KernelOp,
        ProgramIdOp,
        CdivOp,
        SwizzleOp,
        BlockSizeOp,
        CoverOp,
        ArangeOp,
        FullOp,
        ExpandDimsOp,
        TransposeOp,
        BroadcastOp,
        CompareOp,
        WhereOp,
        CastOp,
        BitcastOp,
        ErfcOp,
        PhiloxOp,
        LoadOp,
        AssertOp,
        StoreOp,
        DescribeOp,
        LoadBlockOp,
        StoreBlockOp,
        DotOp,
        ReduceOp,
        ScanOp,
        YieldOp,
        AllocateOp,
        ConstantOp,
        ExternalOp,
        AliasOp,
        LaunchOp,
    ],
    [PointerType, DescriptorType, GridAttr, ScheduleAttr],
)

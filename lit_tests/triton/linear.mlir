// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="window: M = 64, N = 64, K = 32"}' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="window: M = 64, N = 64, K = 128"}' -t triton | filecheck %s --check-prefix WHOLE

// An axis of a tile merges dimensions. A block of it that lies in one run of the last dimension is at
// one point of the others, which is a number; where a block has runs as a whole, where its lanes are
// in them is the same in every block, and known before the loop.

// CHECK:      for k_start in range(0, 576, BLOCK_K):
// CHECK-NEXT:   d3 = tl.multiple_of(k_start % 64, BLOCK_K) + k_lanes
// CHECK-NEXT:   offsets_2 = offsets + (k_start // 64 * 128 + d3[None, :])
// CHECK-NEXT:   x = tl.load(x_ptr + offsets_2)

// WHOLE:      d3 = k_lanes % 64
// WHOLE:      for k_start in range(0, 576, BLOCK_K):
// WHOLE:        offsets_2 = (k_start // 64 + k_lanes // 64)[None, :] * 128

!x = !loom.tensor<[0, 0] : [1040, 64], f16>
!w = !loom.tensor<[0, 0, 0] : [9, 64, 64], f16>
!y = !loom.tensor<[0, 0] : [1024, 64], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = loom.operation @window over <[0, 0, 0, 0] : [1024, 64, 9, 64]> [map, map, fold, fold] by @add
         ins(%x : (d0, d1, d2, d3) -> (d0 + 2 * d2, d3), %w : (d0, d1, d2, d3) -> (d2, d3, d1))
         outs((d0, d1) -> (d0, d1))
         wrap (%a: f16, %b: f16) {
           %c = arith.extf %a : f16 to f32
           %d = arith.extf %b : f16 to f32
           %r = arith.mulf %c, %d : f32
           loom.yield %r : f32 } : (!x, !w) -> !y
  func.return %y : !y
}

// RUN: tapestry-opt %s -p loom-to-triton{numerics=fast} -t triton --split-input-file | filecheck %s

// The gradient of keys folds groups and rows, one axis of a tile. A walk goes through the rows of
// one group after another, in each from the first block on that sees the program's keys.

// CHECK: k_first = tl.maximum(0, m_start) // BLOCK_K * BLOCK_K
// CHECK: value = (1024 - k_first + BLOCK_K - 1) // BLOCK_K
// CHECK: k_run = value * BLOCK_K
// CHECK: for k_start in range(0, k_run * 4, BLOCK_K):
// CHECK-NEXT: d3 = k_first + k_start % k_run + k_lanes
// CHECK-NEXT: k = k_start // k_run * 1024 + d3

!p = !loom.tensor<[0, 0, 0] : [4, 1024, 1024], f16>
!q = !loom.tensor<[0, 0, 0] : [4, 1024, 64], f16>
!k = !loom.tensor<[0, 0] : [1024, 64], f16>
func.func @main(%p: !p, %q: !q) -> !k {
  %o = loom.operation @keys over <[0, 0, 0, 0] : [1024, 64, 4, 1024]> [map, map, fold, fold] by @add
         ins(%p : (d0, d1, d2, d3) -> (d2, d3, d0), %q : (d0, d1, d2, d3) -> (d2, d3, d1))
         outs((d0, d1) -> (d0, d1)) domain(d3 - d0 >= 0)
         wrap (%x: f16, %y: f16) {
           %a = arith.extf %x : f16 to f32
           %b = arith.extf %y : f16 to f32
           %r = arith.mulf %a, %b : f32
           loom.yield %r : f32 }
         unwrap (%s: f32) { %r = arith.truncf %s : f32 to f16 loom.yield %r : f16 } : (!p, !q) -> !k
  func.return %o : !k
}

// -----

// Groups of fewer rows than a block are walked together, to the end, and masked.

// CHECK: inside = m[:, None] - (k_lanes % 16)[None, :] >= 0
// CHECK: for k_start in range(0, 1024, BLOCK_K):
// CHECK: tl.where(inside, p, 0.0)

!p = !loom.tensor<[0, 0, 0] : [64, 16, 16], f32>
!k = !loom.tensor<[0, 0] : [16, 16], f32>
func.func @main(%p: !p, %q: !p) -> !k {
  %o = loom.operation @keys over <[0, 0, 0, 0] : [16, 16, 64, 16]> [map, map, fold, fold] by @add
         ins(%p : (d0, d1, d2, d3) -> (d2, d3, d0), %q : (d0, d1, d2, d3) -> (d2, d3, d1))
         outs((d0, d1) -> (d0, d1)) domain(d0 - d3 >= 0)
         wrap (%x: f32, %y: f32) { %r = arith.mulf %x, %y : f32 loom.yield %r : f32 } : (!p, !p) -> !k
  func.return %o : !k
}

// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="sum: P = 1, K = 64, segments = 2"}' | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="sum: P = 1, K = 64, segments = 2"}' -t triton | filecheck %s --check-prefix PRINTED

// A loop over full blocks has no masks; the last block is a step after it.

// CHECK:      %[[SUM:.*]] = scf.for %k_start = %{{.*}} to %k_full step %{{.*}} iter_args(%acc
// CHECK-NOT:  mask
// CHECK:      scf.yield
// CHECK-NOT:  scf.for
// CHECK:      triton.load %x_ptr[%{{.*}}] mask %{{.*}} other 0.0
// CHECK:      arith.addf %[[SUM]],
// CHECK:      triton.reduce

// PRINTED: k_full = 1000 // BLOCK_K * BLOCK_K
// PRINTED: for k_start in range(0, k_full, BLOCK_K):
// PRINTED: k = k_full + tl.arange(0, BLOCK_K)
// PRINTED-NEXT: x_2 = tl.load(x_ptr + offsets + k[None, :], mask=(k < 1000)[None, :], other=0.0)

!x = !loom.tensor<[0, 0] : [8, 1000], f32>
!y = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @sum over <[0, 0] : [8, 1000]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  func.return %y : !y
}

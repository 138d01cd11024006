// RUN: tapestry-opt %s -p 'loom-group,loom-to-triton{tile=64}' -t triton --split-input-file | filecheck %s

// A fold, and a map that reads what it folded for every cell. A row that fits is read once, and several
// short rows are one tile.
!x = !loom.tensor<[0, 0] : [8, 30], f32>
!y = !loom.tensor<[0] : [8], f32>
// CHECK:      def sum_share(
// CHECK-NOT:  for
// CHECK:      tl.static_assert(BLOCK_K >= 30)
// CHECK:      x = tl.load(x_ptr + offsets, mask=k_mask[None, :], other=0.0)
// CHECK-NEXT: acc = tl.sum(x, axis=1)
// CHECK-NEXT: tl.store(y_ptr + offsets, tl.div_rn(x, acc[:, None]), mask=k_mask[None, :])
// CHECK:      BLOCK_M=2, BLOCK_K=32,
func.func @main(%x: !x) -> !x {
  %s = loom.operation @sum over <[0, 0] : [8, 30]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %y = loom.operation @share over <[0, 0] : [8, 30]> [map, map]
         ins(%x : (i, j) -> (i, j), %s : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.divf %a, %b : f32 loom.yield %p : f32 } : (!x, !y) -> !x
  func.return %y : !x
}

// -----

// A longer row is walked twice: folded, then read again and written.
!x = !loom.tensor<[0, 0] : [8, 1000], f32>
!y = !loom.tensor<[0] : [8], f32>
// CHECK:      def sum_share(
// CHECK:      for k_start in range(0, 1000, BLOCK_K):
// CHECK:      tl.load(x_ptr
// CHECK:      acc += acc_block
// CHECK-NEXT: for k_start_2 in range(0, 1000, BLOCK_K):
// CHECK:      x_2 = tl.load(x_ptr
// CHECK-NEXT: tl.store(y_ptr + offsets_2, tl.div_rn(x_2, acc[:, None])
// CHECK:      BLOCK_M=1, BLOCK_K=64,
func.func @main(%x: !x) -> !x {
  %s = loom.operation @sum over <[0, 0] : [8, 1000]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %y = loom.operation @share over <[0, 0] : [8, 1000]> [map, map]
         ins(%x : (i, j) -> (i, j), %s : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.divf %a, %b : f32 loom.yield %p : f32 } : (!x, !y) -> !x
  func.return %y : !x
}

// -----

// Columns lie side by side in memory: a program has some of them, and walks down.
!x = !loom.tensor<[0, 0] : [1000, 80], f32>
!y = !loom.tensor<[0] : [80], f32>
// CHECK:      def sum_share(
// CHECK:      m[:, None] + (k_start + {{.*}})[None, :] * 80
// CHECK:      BLOCK_M=64, BLOCK_K=1,
func.func @main(%x: !x) -> !x {
  %s = loom.operation @sum over <[0, 0] : [80, 1000]> [map, fold] by @add
         ins(%x : (i, j) -> (j, i)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %y = loom.operation @share over <[0, 0] : [1000, 80]> [map, map]
         ins(%x : (i, j) -> (i, j), %s : (i, j) -> (j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.divf %a, %b : f32 loom.yield %p : f32 } : (!x, !y) -> !x
  func.return %y : !x
}

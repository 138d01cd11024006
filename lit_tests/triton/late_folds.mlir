// RUN: tapestry-opt %s -p 'loom-group{ops=s,y},loom-group{ops=t,z},loom-to-triton' -t triton | filecheck %s

// What a loop loads and sums, and more than one operation reads, is added cell by cell: it is summed
// along rows after the loop.

// CHECK-LABEL: def s_y(
// CHECK:         acc = tl.full([BLOCK_M, BLOCK_K], 0.0, tl.float32)
// CHECK-NEXT:    for k_start in
// CHECK-NEXT:        x = tl.load(
// CHECK-NEXT:        acc += x
// CHECK-NEXT:    acc_2 = tl.sum(acc, axis=1)
// CHECK:         x_2 - acc_2[:, None]
// CHECK:         tl.store(s_ptr + m, acc_2)

// What one operation reads is left to Triton, which does the same with fewer cells.

// CHECK-LABEL: def t_z(
// CHECK:         acc = tl.full([BLOCK_M], 0.0, tl.float32)
// CHECK-NEXT:    for k_start in
// CHECK-NEXT:        x = tl.load(
// CHECK-NEXT:        acc_block = tl.sum(x, axis=1)
// CHECK-NEXT:        acc += acc_block

!x = !loom.tensor<[0, 0] : [64, 256], f32>
!w = !loom.tensor<[0, 0] : [256, 16], f32>
!y = !loom.tensor<[0, 0] : [64, 16], f32>
!m = !loom.tensor<[0] : [64], f32>
func.func @main(%x: !x, %w: !w) -> (!m, !y) {
  %s = loom.operation @s over <[0, 0] : [64, 256]> [map, fold] by @add
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !m
  %y = loom.operation @y over <[0, 0, 0] : [64, 16, 256]> [map, map, fold] by @add
         ins(%x : (i, j, k) -> (i, k), %s : (i, j, k) -> (i), %w : (i, j, k) -> (k, j))
         outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32, %c: f32) {
           %d = arith.subf %a, %b : f32
           %r = arith.mulf %d, %c : f32
           loom.yield %r : f32
         } : (!x, !m, !w) -> !y
  func.return %s, %y : !m, !y
}
func.func @once(%x: !x, %w: !w) -> !y {
  %s = loom.operation @t over <[0, 0] : [64, 256]> [map, fold] by @add
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !m
  %y = loom.operation @z over <[0, 0, 0] : [64, 16, 256]> [map, map, fold] by @add
         ins(%x : (i, j, k) -> (i, k), %s : (i, j, k) -> (i), %w : (i, j, k) -> (k, j))
         outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32, %c: f32) {
           %d = arith.subf %a, %b : f32
           %r = arith.mulf %d, %c : f32
           loom.yield %r : f32
         } : (!x, !m, !w) -> !y
  func.return %y : !y
}

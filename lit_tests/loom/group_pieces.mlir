// RUN: tapestry-opt %s -p 'loom-group{resident=8 row=1000000 programs=1}' --equal-each | filecheck %s

// Three matrix products in a row. A program that takes @second piece by piece, along j, would make
// all of @first for each piece: two of them are one kernel, and the third is another.
!a = !loom.tensor<[0, 0] : [64, 8], f32>
!b = !loom.tensor<[0, 0] : [8, 8], f32>
// CHECK-LABEL: @main
// CHECK-NOT:  loom.fused @first_second_third
// CHECK:      loom.fused
// CHECK-NOT:  loom.fused
func.func @main(%x: !a, %u: !b, %v: !b, %w: !b) -> !a {
  %f = loom.operation @first over <[0, 0, 0] : [64, 8, 8]> [map, map, fold] by @add
         ins(%x : (i, j, k) -> (i, k), %u : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) { %m = arith.mulf %p, %q : f32 loom.yield %m : f32 } : (!a, !b) -> !a
  %s = loom.operation @second over <[0, 0, 0] : [64, 8, 8]> [map, map, fold] by @add
         ins(%f : (i, j, k) -> (i, k), %v : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) { %m = arith.mulf %p, %q : f32 loom.yield %m : f32 } : (!a, !b) -> !a
  %t = loom.operation @third over <[0, 0, 0] : [64, 8, 8]> [map, map, fold] by @add
         ins(%s : (i, j, k) -> (i, k), %w : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) { %m = arith.mulf %p, %q : f32 loom.yield %m : f32 } : (!a, !b) -> !a
  func.return %t : !a
}

// RUN: tapestry-opt %s -p loom-group --split-input-file --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-group{recompute=false} --split-input-file | filecheck %s --check-prefix=STORED

// Scores that are folded along either dimension: each group computes them again, and stores none.
// As the first folds what the second maps, one group they are not.
// CHECK-LABEL: @both_ways
// CHECK-NEXT: loom.fused
// CHECK:        @scores over
// CHECK:        @rows over
// CHECK:      loom.fused
// CHECK:        @scores over
// CHECK:        @columns over
// CHECK-NOT:  loom.operation
// STORED-LABEL: @both_ways
// STORED-COUNT-1: @scores over
// STORED-NOT: @scores over
!q = !loom.tensor<[0, 0] : [64, 2], f32>
!s = !loom.tensor<[0, 0] : [64, 64], f32>
func.func @both_ways(%q: !q, %k: !q) -> (!q, !q) {
  %s = loom.operation @scores over <[0, 0, 0] : [64, 64, 2]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 }
         unwrap (%a: f32) { %t = math.exp %a : f32 loom.yield %t : f32 } : (!q, !q) -> !s
  %y = loom.operation @rows over <[0, 0, 0] : [64, 2, 64]> [map, map, fold] by @add
         ins(%s : (i, d, j) -> (i, j), %k : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!s, !q) -> !q
  %z = loom.operation @columns over <[0, 0, 0] : [64, 2, 64]> [map, map, fold] by @add
         ins(%s : (j, d, i) -> (i, j), %q : (j, d, i) -> (i, d)) outs((j, d) -> (j, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!s, !q) -> !q
  func.return %y, %z : !q, !q
}

// -----
// What the program returns is stored anyway, and so is what is smaller than what it is computed of.
// STORED-LABEL: @returned
// CHECK-LABEL: @returned
// CHECK-COUNT-1: @scores over
// CHECK-NOT: @scores over
// CHECK: func.return
// CHECK-LABEL: @small
// CHECK-COUNT-1: @scores over
// CHECK-NOT: @scores over
// CHECK: func.return
!q = !loom.tensor<[0, 0] : [64, 2], f32>
!s = !loom.tensor<[0, 0] : [64, 64], f32>
!w = !loom.tensor<[0, 0] : [8, 64], f32>
!t = !loom.tensor<[0, 0] : [8, 8], f32>
func.func @returned(%q: !q, %k: !q) -> (!q, !q, !s) {
  %s = loom.operation @scores over <[0, 0, 0] : [64, 64, 2]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!q, !q) -> !s
  %y = loom.operation @rows over <[0, 0, 0] : [64, 2, 64]> [map, map, fold] by @add
         ins(%s : (i, d, j) -> (i, j), %k : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!s, !q) -> !q
  %z = loom.operation @columns over <[0, 0, 0] : [64, 2, 64]> [map, map, fold] by @add
         ins(%s : (j, d, i) -> (i, j), %q : (j, d, i) -> (i, d)) outs((j, d) -> (j, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!s, !q) -> !q
  func.return %y, %z, %s : !q, !q, !s
}
func.func @small(%q: !w, %k: !w) -> (!w, !w) {
  %s = loom.operation @scores over <[0, 0, 0] : [8, 8, 64]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!w, !w) -> !t
  %y = loom.operation @rows over <[0, 0, 0] : [8, 64, 8]> [map, map, fold] by @add
         ins(%s : (i, d, j) -> (i, j), %k : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!t, !w) -> !w
  %z = loom.operation @columns over <[0, 0, 0] : [8, 64, 8]> [map, map, fold] by @add
         ins(%s : (j, d, i) -> (i, j), %q : (j, d, i) -> (i, d)) outs((j, d) -> (j, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!t, !w) -> !w
  func.return %y, %z : !w, !w
}

// RUN: tapestry-opt %s -p loom-derive,loom-fuse,loom-group --equal-each --split-input-file 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes

// Attention from its definition: scores, a mask, softmax, a product. One group is left, and what
// folds in it keeps the largest score, the sum of exponentials, and the weighted rows.
!q = !loom.tensor<[0, 0] : [8, 4], f32>
!s = !loom.tensor<[0, 0] : [8, 8], f32>
!r = !loom.tensor<[0] : [8], f32>
// CHECK:      loom.monoid @max_sum_mix commutative
// CHECK-SAME: zero [0xff800000 : f32, 0.000000e+00 : f32, 0.000000e+00 : f32]
// CHECK-LABEL: @main
// CHECK-NEXT: %o = loom.fused @scores_mask_max_sum_mix over <[0, 0, 0, 0] : [8, 8, 4, 4]>
// CHECK-NEXT: aligned((d0, d1, d2, d3) -> (d0, d1, d2), (d0, d1, d2, d3) -> (d0, d3, d1))
// CHECK-NEXT: ins(%q, %k, %v)
// CHECK:      loom.operation @scores_mask over <[0, 0, 0] : [8, 8, 4]> [map, map, fold] by @add
// CHECK:      loom.operation @max_sum_mix over <[0, 0, 0] : [8, 4, 8]> [map, map, fold]
// CHECK-SAME: by @max_sum_mix
// CHECK:      wrap (%[[S:.*]]: f32, %[[V:.*]]: f32) {
// CHECK-NEXT:   %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:   loom.yield %[[S]], %[[ONE]], %[[V]] : f32, f32, f32
// CHECK:      unwrap (%max: f32, %sum: f32, %mix: f32) {
// CHECK:        arith.divf %mix,
// CHECK-NEXT:   loom.yield
// EQUAL: loom-derive: @main: equal (certified)
// EQUAL: loom-group: @main: equal (certified)
func.func @main(%q: !q, %k: !q, %v: !q) -> !q {
  %s = loom.operation @scores over <[0, 0, 0] : [8, 8, 4]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) {
           %p = arith.mulf %a, %b : f32
           loom.yield %p : f32 } : (!q, !q) -> !s
  %t = loom.operation @mask over <[0, 0] : [8, 8]> [map, map]
         ins(%s : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f32) {
           %half = arith.constant 0.5 : f32
           %p = arith.mulf %c, %half : f32
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %seen = arith.cmpi sge, %i, %j : i64
           %none = arith.constant 0xFF800000 : f32
           %u = arith.select %seen, %p, %none : f32
           loom.yield %u : f32 } : (!s) -> !s
  %m = loom.operation @max over <[0, 0] : [8, 8]> [map, fold] by @max
         ins(%t : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!s) -> !r
  %e = loom.operation @exp over <[0, 0] : [8, 8]> [map, map]
         ins(%t : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %r = math.exp %d : f32
           loom.yield %r : f32 } : (!s, !r) -> !s
  %l = loom.operation @sum over <[0, 0] : [8, 8]> [map, fold] by @add
         ins(%e : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!s) -> !r
  %p = loom.operation @div over <[0, 0] : [8, 8]> [map, map]
         ins(%e : (i, j) -> (i, j), %l : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%c: f32, %b: f32) {
           %r = arith.divf %c, %b : f32
           loom.yield %r : f32 } : (!s, !r) -> !s
  %o = loom.operation @mix over <[0, 0, 0] : [8, 4, 8]> [map, map, fold] by @add
         ins(%p : (i, d, j) -> (i, j), %v : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) {
           %p = arith.mulf %a, %b : f32
           loom.yield %p : f32 } : (!s, !q) -> !q
  func.return %o : !q
}

// -----

// The same with the softmax over the queries: its sums are one pass, but they differ along what the
// product folds, so that it stays a product.
!q = !loom.tensor<[0, 0] : [8, 4], f32>
!s = !loom.tensor<[0, 0] : [8, 8], f32>
!r = !loom.tensor<[0] : [8], f32>
// CHECK:      loom.monoid @max_sum commutative
// CHECK-NOT:  loom.monoid
// CHECK-LABEL: @main
// CHECK:      loom.operation @max_sum over <[0, 0] : [8, 8]> [fold, map] by @max_sum
// CHECK:      [map, map, fold] by @add
// EQUAL: loom-derive: @main: equal (certified)
func.func @main(%q: !q, %k: !q, %v: !q) -> !q {
  %s = loom.operation @scores over <[0, 0, 0] : [8, 8, 4]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) {
           %p = arith.mulf %a, %b : f32
           loom.yield %p : f32 } : (!q, !q) -> !s
  %t = loom.operation @mask over <[0, 0] : [8, 8]> [map, map]
         ins(%s : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f32) {
           %half = arith.constant 0.5 : f32
           %p = arith.mulf %c, %half : f32
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %seen = arith.cmpi sge, %i, %j : i64
           %none = arith.constant 0xFF800000 : f32
           %u = arith.select %seen, %p, %none : f32
           loom.yield %u : f32 } : (!s) -> !s
  %m = loom.operation @max over <[0, 0] : [8, 8]> [fold, map] by @max
         ins(%t : (i, j) -> (i, j)) outs((j) -> (j))
         wrap (%c: f32) { loom.yield %c : f32 } : (!s) -> !r
  %e = loom.operation @exp over <[0, 0] : [8, 8]> [map, map]
         ins(%t : (i, j) -> (i, j), %m : (i, j) -> (j)) outs((i, j) -> (i, j))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %r = math.exp %d : f32
           loom.yield %r : f32 } : (!s, !r) -> !s
  %l = loom.operation @sum over <[0, 0] : [8, 8]> [fold, map] by @add
         ins(%e : (i, j) -> (i, j)) outs((j) -> (j))
         wrap (%c: f32) { loom.yield %c : f32 } : (!s) -> !r
  %p = loom.operation @div over <[0, 0] : [8, 8]> [map, map]
         ins(%e : (i, j) -> (i, j), %l : (i, j) -> (j)) outs((i, j) -> (i, j))
         wrap (%c: f32, %b: f32) {
           %r = arith.divf %c, %b : f32
           loom.yield %r : f32 } : (!s, !r) -> !s
  %o = loom.operation @mix over <[0, 0, 0] : [8, 4, 8]> [map, map, fold] by @add
         ins(%p : (i, d, j) -> (i, j), %v : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) {
           %p = arith.mulf %a, %b : f32
           loom.yield %p : f32 } : (!s, !q) -> !q
  func.return %o : !q
}

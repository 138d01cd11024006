// RUN: tapestry-opt %s -p loom-derive --split-input-file --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-derive{separate=true} --split-input-file | filecheck %s --check-prefix=ASKED

// Weighted distances from the largest cell: the sums of %x * %w and of %w may cancel, so that they
// are taken apart only where that is asked for.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-NOT: loom.monoid
// CHECK-LABEL: @weighted
// CHECK:     @max over
// CHECK:     @sum over
// CHECK:     not_derived = "sum = sum of -max*x2 + x1*x2: sums of x1*x2 and x2 apart, put together with max, may cancel (separate=true takes them apart); relative to max, from max*x2 does not vanish where x1 is the zero of @max"
// ASKED:     loom.monoid
// ASKED-LABEL: @weighted
// ASKED-NEXT: %l = loom.operation @max_sum over
// ASKED-NOT: not_derived
func.func @weighted(%x: !x, %w: !x) -> !y {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %w : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %v: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = arith.mulf %d, %v : f32
           loom.yield %e : f32 } : (!x, !x, !y) -> !y
  func.return %l : !y
}

// -----

// Relative to a mean they do not: the sum of %w says how the distances move with it.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK:     loom.monoid
// CHECK-LABEL: @weighted_mean
// CHECK-NEXT: %l = loom.operation @mean_sum over
// CHECK:     unwrap (%mean: f32,
// CHECK:       %[[ZERO:.*]] = arith.subf %[[MEAN:.*]], %[[MEAN]] : f32
// CHECK-NEXT:  arith.addf %{{.*}}, %[[ZERO]] : f32
// CHECK:     "sum = [sum]"
// ASKED:     "sum = [sum]"
func.func @weighted_mean(%x: !x, %w: !x) -> !y {
  %m = loom.operation @mean over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32) {
           %n = arith.constant 6.0 : f32
           %r = arith.divf %s, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %w : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %v: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = arith.mulf %d, %v : f32
           loom.yield %e : f32 } : (!x, !x, !y) -> !y
  func.return %l : !y
}

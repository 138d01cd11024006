// RUN: tapestry-opt %s -p loom-derive --split-input-file --equal-each | filecheck %s

// Not of the class: a hyperbolic tangent of a cell relative to the largest one.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-NOT: loom.monoid
// CHECK-LABEL: @tanh
// CHECK: @max over
// CHECK: @sum over
func.func @tanh(%x: !x) -> !y {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.tanh %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y
  func.return %l : !y
}

// -----

// The largest cell of another row: what the two folds read, they do not read alike.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-NOT: loom.monoid
// CHECK-LABEL: @two_alignments
// CHECK: @max over
// CHECK: @sum over
func.func @two_alignments(%x: !x) -> !y {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (-i + 3)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y
  func.return %l : !y
}

// -----

// A sum over a part of the points, relative to the largest of all.
!x = !loom.tensor<[0, 0] : [6, 6], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-NOT: loom.monoid
// CHECK-LABEL: @other_points
// CHECK: @max over
// CHECK: @sum over
func.func @other_points(%x: !x) -> !y {
  %m = loom.operation @max over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @sum over <[0, 0] : [6, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i)) domain(d0 >= d1)
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y
  func.return %l : !y
}

// -----

// The sum also reads the largest cell of another row: that fold has to be there before, so that
// nothing would be saved.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-NOT: loom.monoid
// CHECK-LABEL: @needed_first
// CHECK: @max over
// CHECK: @sum over
func.func @needed_first(%x: !x) -> (!y, !y) {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %t = loom.operation @twice over <[0] : [4]> [map] ins(%m : (i) -> (i)) outs((i) -> (i))
         wrap (%b: f32) { %r = arith.addf %b, %b : f32 loom.yield %r : f32 } : (!y) -> !y
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i), %t : (i, j) -> (3 - i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32, %a: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           %f = arith.mulf %e, %a : f32
           loom.yield %f : f32 } : (!x, !y, !y) -> !y
  func.return %t, %l : !y, !y
}

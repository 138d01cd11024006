// RUN: tapestry-opt %s -p loom-simplify --equal-each | filecheck %s

// The gradient of slices of a tensor is a sum of what is zero but for its slice: a coordinate says
// which input a cell is of. Operations compute these: they stand side by side, and one is read.

// CHECK-DAG: %[[A:.*]] = loom.operation @a
// CHECK-DAG: %[[B:.*]] = loom.operation @b
// CHECK: %[[T:.*]] = loom.assemble %[[A]], %[[B]] at (d0, d1) -> (d0 + 4, d1)
// CHECK: loom.operation @fold
// CHECK-NEXT: ins(%[[T]] : (d0, d1, d2) -> (d0 + 4 * d2 - 4, d1), %w
// CHECK-NEXT: outs
// CHECK-NOT: arith.select
// CHECK: loom.yield

// What was given stays apart: to put it together would be a copy.
// CHECK: loom.operation @given
// CHECK-NEXT: ins(%x
// CHECK: arith.select

// So does what is rounded to less than it is of.
// CHECK: loom.operation @rounded
// CHECK: arith.select

// And what is chosen twice, of which one place alone could be written.
// CHECK: loom.operation @twice
// CHECK: arith.select

!x = !loom.tensor<[0, 0] : [4, 3], f32>
!w = !loom.tensor<[0] : [3], f32>
func.func @main(%x: !x, %z: !x, %w: !w) -> (!x, !x, !x, !x) {
  %a = loom.operation @a over <[0, 0] : [4, 3]> [map, map] ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%v: f32) { %e = math.exp %v : f32 loom.yield %e : f32 } : (!x) -> !x
  %b = loom.operation @b over <[0, 0] : [4, 3]> [map, map] ins(%z : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%v: f32) { %e = math.exp %v : f32 loom.yield %e : f32 } : (!x) -> !x
  %fold = loom.operation @fold over <[0, 0, 1] : [4, 3, 3]> [map, map, fold] by @add
         ins(%a : (i, j, s) -> (i, j), %b : (i, j, s) -> (i, j), %w : (i, j, s) -> (j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32, %c: f32) {
           %s = loom.index 2 : i64
           %none = arith.constant 0.0 : f32
           %one = arith.constant 1 : i64
           %two = arith.constant 2 : i64
           %first = arith.cmpi eq, %s, %one : i64
           %second = arith.cmpi ne, %s, %two : i64
           %left = arith.select %first, %p, %none : f32
           %right = arith.select %second, %none, %q : f32
           %sum = arith.addf %left, %right : f32
           %product = arith.mulf %sum, %c : f32
           loom.yield %product : f32
         } : (!x, !x, !w) -> !x
  %given = loom.operation @given over <[0, 0, 0] : [4, 3, 2]> [map, map, fold] by @add
         ins(%x : (i, j, s) -> (i, j), %z : (i, j, s) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) {
           %s = loom.index 2 : i64
           %none = arith.constant 0 : i64
           %first = arith.cmpi eq, %s, %none : i64
           %v = arith.select %first, %p, %q : f32
           loom.yield %v : f32
         } : (!x, !x) -> !x
  %rounded = loom.operation @rounded over <[0, 0, 0] : [4, 3, 2]> [map, map, fold] by @add
         ins(%a : (i, j, s) -> (i, j), %b : (i, j, s) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) {
           %s = loom.index 2 : i64
           %none = arith.constant 0 : i64
           %first = arith.cmpi eq, %s, %none : i64
           %l = arith.truncf %p : f32 to bf16
           %r = arith.truncf %q : f32 to bf16
           %v = arith.select %first, %l, %r : bf16
           %e = arith.extf %v : bf16 to f32
           loom.yield %e : f32
         } : (!x, !x) -> !x
  %twice = loom.operation @twice over <[0, 0, 0] : [4, 3, 3]> [map, map, fold] by @add
         ins(%a : (i, j, s) -> (i, j), %b : (i, j, s) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) {
           %s = loom.index 2 : i64
           %one = arith.constant 1 : i64
           %second = arith.cmpi eq, %s, %one : i64
           %v = arith.select %second, %q, %p : f32
           loom.yield %v : f32
         } : (!x, !x) -> !x
  func.return %fold, %given, %rounded, %twice : !x, !x, !x, !x
}

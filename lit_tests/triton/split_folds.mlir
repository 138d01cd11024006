// RUN: tapestry-opt %s -p 'loom-to-triton{device=h200}' | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{device=h200 split=false}' | filecheck %s --check-prefix=WHOLE
// RUN: tapestry-opt %s -p loom-to-triton | filecheck %s --check-prefix=WHOLE

// Four rows of a million cells are four programs: on a device they are folded in parts, whose states
// another kernel folds. Rows of which there are many are whole.
// CHECK-DAG: triton.kernel @few(
// CHECK-DAG: triton.kernel @few_merge(
// CHECK-DAG: triton.kernel @many(
// CHECK-NOT: @many_merge
// WHOLE-NOT: @few_merge
// WHOLE:     triton.launch @few(
// WHOLE-NOT: @few_merge

// Of what does not commute, points that are folded between others are no part of their own: parts
// are along the first dimension. How long they are counts with all that is folded in them.
// CHECK:     func.func @recurrences
// CHECK:     triton.launch @recurrence_merge({{.*}} : memref<4xf32>, memref<4xf32>, memref<f32>)
!x = !loom.tensor<[0, 0] : [4, 1048576], f32>
!y = !loom.tensor<[0] : [4], f32>
!xs = !loom.tensor<[0, 0] : [4096, 1024], f32>
!ys = !loom.tensor<[0] : [4096], f32>
func.func @main(%x: !x, %xs: !xs) -> (!y, !ys) {
  %y = loom.operation @few over <[0, 0] : [4, 1048576]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %ys = loom.operation @many over <[0, 0] : [4096, 1024]> [map, fold] by @max
         ins(%xs : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!xs) -> !ys
  func.return %y, %ys : !y, !ys
}

!r = !loom.tensor<[0, 0] : [4, 4194304], f32>
!s = !loom.tensor<[] : [], f32>
loom.monoid @affine zero [1.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %p = arith.mulf %a, %c : f32
  %q = arith.mulf %b, %c : f32
  %r = arith.addf %q, %d : f32
  loom.yield %p, %r : f32, f32
}
func.func @recurrences(%x: !r) -> !s {
  %y = loom.operation @recurrence over <[0, 0] : [4, 4194304]> [fold, fold] by @affine
         ins(%x : (i, j) -> (i, j)) outs(() -> ())
         wrap (%c: f32) { %h = arith.constant 0.9 : f32  loom.yield %h, %c : f32, f32 }
         unwrap (%s: f32, %t: f32) { loom.yield %t : f32 } : (!r) -> !s
  func.return %y : !s
}

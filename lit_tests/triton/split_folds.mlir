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

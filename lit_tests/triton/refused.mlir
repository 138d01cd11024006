// What cannot be lowered is refused at its place.

// RUN: tapestry-opt %s -p loom-to-triton --split-input-file --verify-diagnostics | filecheck %s

// CHECK: refused.mlir:6:1: error: @helper has no body, so there is nothing to lower to Triton
func.func private @helper(!loom.tensor<[0] : [4], f32>) -> ()
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  func.return %x : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK: error: @count takes or returns i64; only tensors can be lowered to Triton
func.func @count(%n: i64) { func.return }

// -----

// An unsigned 64-bit integer has a conversion of its own.
// CHECK: triton.cast %{{.*}} unsigned : tensor<{{.*}}xi64> -> tensor<{{.*}}xf32>
!x = !loom.tensor<[0] : [4], i64>
!y = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @wide over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: i64) {
           %f = arith.uitofp %c : i64 to f32
           loom.yield %f : f32
         } : (!x) -> !y
  func.return %y : !y
}

// -----

// Other functions over tensors are lowered with @main.
// CHECK: func.func @other(%x: memref<4xf32>) -> memref<4xf32>
// CHECK: func.func @main(%x: memref<4xf32>) -> memref<4xf32>
func.func @other(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  func.return %x : !loom.tensor<[0] : [4], f32>
}
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  func.return %x : !loom.tensor<[0] : [4], f32>
}

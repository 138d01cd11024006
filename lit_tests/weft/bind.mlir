// RUN: tapestry-opt %s | tapestry-opt | filecheck %s --check-prefix SYMBOLS
// RUN: tapestry-opt %s -p 'weft-bind{N=3 K=4}' | filecheck %s
// RUN: tapestry-opt %s -p 'weft-bind{N=3 K=4},weft-apply' | filecheck %s --check-prefix APPLIED

// SYMBOLS: func.func @main(%x: !weft.tensor<[N, K, 2], f32>, %w: !weft.tensor<[2, "N * K"], f32>) -> !weft.tensor<[N, K, "N * K"], f32>
// CHECK:   func.func @main(%x: !loom.tensor<[0, 0, 0] : [3, 4, 2], f32>, %w: !loom.tensor<[0, 0] : [2, 12], f32>) -> !loom.tensor<[0, 0, 0] : [3, 4, 12], f32>
// APPLIED: loom.operation @y over <[0, 0, 0, 0] : [3, 4, 12, 2]> [map, map, map, fold] by @add
func.func @main(%x: !weft.tensor<[N, K, 2], f32>, %w: !weft.tensor<[2, "N * K"], f32>)
    -> !weft.tensor<[N, K, "N * K"], f32> {
  // SYMBOLS: weft.apply @matmul(%x, %w) : (!weft.tensor<[N, K, 2], f32>, !weft.tensor<[2, "N * K"], f32>) -> !weft.tensor<[N, K, "N * K"], f32>
  // CHECK:   weft.apply @matmul(%x, %w) : (!loom.tensor<[0, 0, 0] : [3, 4, 2], f32>, !loom.tensor<[0, 0] : [2, 12], f32>) -> !loom.tensor<[0, 0, 0] : [3, 4, 12], f32>
  %y = weft.apply @matmul(%x, %w)
         : (!weft.tensor<[N, K, 2], f32>, !weft.tensor<[2, "N * K"], f32>)
           -> !weft.tensor<[N, K, "N * K"], f32>
  func.return %y : !weft.tensor<[N, K, "N * K"], f32>
}

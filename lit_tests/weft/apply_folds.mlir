// RUN: tapestry-opt %s -p weft-apply --split-input-file | filecheck %s

// A bias is read by unwrap; projections move by the starts of the tensors.

// CHECK:      %y = loom.operation @y over <[0, 0, 0] : [4, 2, 3]> [map, map, fold] by @add
// CHECK-NEXT:   ins(%x : (d0, d1, d2) -> (d0 + 1, d2 - 2), %w : (d0, d1, d2) -> (d2, d1))
// CHECK-NEXT:   extra(%b : (d0, d1) -> (d1))
// CHECK-NEXT:   outs((d0, d1) -> (d0, d1 + 7))
// CHECK-NEXT:   wrap (%{{.*}}: f32, %{{.*}}: f32) {
// CHECK-NEXT:     [[P:%.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:     loom.yield [[P]] : f32
// CHECK-NEXT:   }
// CHECK-NEXT:   unwrap (%acc: f32, [[B:%.*]]: f32) {
// CHECK-NEXT:     [[S:%.*]] = arith.addf %acc, [[B]] : f32
// CHECK-NEXT:     loom.yield [[S]] : f32
func.func @main(%x: !loom.tensor<[1, -2] : [5, 1], f32>, %w: !loom.tensor<[0, 0] : [3, 2], f32>,
                %b: !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0, 7] : [4, 9], f32> {
  %y = weft.apply @linear(%x, %w, %b)
         : (!loom.tensor<[1, -2] : [5, 1], f32>, !loom.tensor<[0, 0] : [3, 2], f32>,
            !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0, 7] : [4, 9], f32>
  func.return %y : !loom.tensor<[0, 7] : [4, 9], f32>
}

// -----

// Batches broadcast; half precision is multiplied and summed in f32, and rounded once.

// CHECK:      %y = loom.operation @y over <[0, 0, 0, 0] : [7, 4, 2, 3]> [map, map, map, fold] by @add
// CHECK-NEXT:   ins(%x : (d0, d1, d2, d3) -> (0, d1, d3), %w : (d0, d1, d2, d3) -> (d0, d3, d2))
// CHECK-NEXT:   outs((d0, d1, d2) -> (d0, d1, d2))
// CHECK-NEXT:   wrap (%{{.*}}: f16, %{{.*}}: f16) {
// CHECK-NEXT:     arith.extf
// CHECK-NEXT:     arith.extf
// CHECK-NEXT:     arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:     loom.yield %{{.*}} : f32
// CHECK:        unwrap (%acc: f32) {
// CHECK-NEXT:     arith.truncf %acc : f32 to f16
// CHECK-NEXT:     loom.yield %{{.*}} : f16
func.func @main(%x: !loom.tensor<[0, 0, 0] : [1, 4, 3], f16>,
                %w: !loom.tensor<[0, 0, 0] : [7, 3, 2], f16>)
                -> !loom.tensor<[0, 0, 0] : [7, 4, 2], f16> {
  %y = weft.apply @matmul(%x, %w)
         : (!loom.tensor<[0, 0, 0] : [1, 4, 3], f16>, !loom.tensor<[0, 0, 0] : [7, 3, 2], f16>)
           -> !loom.tensor<[0, 0, 0] : [7, 4, 2], f16>
  func.return %y : !loom.tensor<[0, 0, 0] : [7, 4, 2], f16>
}

// -----

// keepdim leaves a dimension that no index dimension moves. Integers fold in their own type.

// CHECK:      %s = loom.operation @s over <[0, 0] : [3, 2]> [map, fold] by @add
// CHECK-NEXT:   ins(%x : (d0, d1) -> (d1, d0))
// CHECK-NEXT:   outs((d0) -> (0, d0))
// CHECK-NEXT:   wrap ([[C:%.*]]: i32) {
// CHECK-NEXT:     loom.yield [[C]] : i32
// CHECK-NEXT:   }
// CHECK-NEXT:   :
func.func @main(%x: !loom.tensor<[0, 0] : [2, 3], i32>) -> !loom.tensor<[0, 0] : [1, 3], i32> {
  %s = weft.apply @sum(%x) {axis = -2, keepdim = true}
         : (!loom.tensor<[0, 0] : [2, 3], i32>) -> !loom.tensor<[0, 0] : [1, 3], i32>
  func.return %s : !loom.tensor<[0, 0] : [1, 3], i32>
}

// -----

// The state of argmax is (value, position); unwrap yields the position.

// CHECK:      %k = loom.operation @k over <[0, 0] : [2, 3]> [map, fold] by @argmax
// CHECK:        wrap ([[C:%.*]]: f32) {
// CHECK-NEXT:     [[I:%.*]] = loom.index 1 : i64
// CHECK-NEXT:     loom.yield [[C]], [[I]] : f32, i64
// CHECK:        unwrap (%acc: f32, [[A:%.*]]: i64) {
// CHECK-NEXT:     loom.yield [[A]] : i64
func.func @main(%x: !loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0] : [2], i64> {
  %k = weft.apply @argmax(%x) {axis = 1}
         : (!loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0] : [2], i64>
  func.return %k : !loom.tensor<[0] : [2], i64>
}

// -----

// The mean divides the sum by the extent, which is a constant of the body.

// CHECK:      unwrap (%acc: f64) {
// CHECK-NEXT:   [[N:%.*]] = arith.constant 3.000000e+00 : f64
// CHECK-NEXT:   [[M:%.*]] = arith.divf %acc, [[N]] : f64
func.func @main(%x: !loom.tensor<[0] : [3], f64>) -> !loom.tensor<[] : [], f64> {
  %m = weft.apply @mean(%x) {axis = 0}
         : (!loom.tensor<[0] : [3], f64>) -> !loom.tensor<[] : [], f64>
  func.return %m : !loom.tensor<[] : [], f64>
}

// -----

// A composite becomes its steps; casts that change nothing are left out.

// CHECK:      %p_peak = loom.operation @p_peak over <[0, 0] : [2, 3]> [map, fold] by @max
// CHECK:      %p_shifted = loom.operation @p_shifted
// CHECK-NEXT:   ins(%x : (d0, d1) -> (d0, d1), %p_peak : (d0, d1) -> (d0, 0))
// CHECK:      %p_weight = loom.operation @p_weight
// CHECK:        math.exp
// CHECK:      %p_total = loom.operation @p_total over <[0, 0] : [2, 3]> [map, fold] by @add
// CHECK:      %p = loom.operation @p over <[0, 0] : [2, 3]> [map, map]
// CHECK-NEXT:   ins(%p_weight : (d0, d1) -> (d0, d1), %p_total : (d0, d1) -> (d0, 0))
// CHECK-NEXT:   outs((d0, d1) -> (d0 + 5, d1))
// CHECK:      func.return %p
func.func @main(%x: !loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[5, 0] : [7, 3], f32> {
  %p = weft.apply @softmax(%x)
         : (!loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[5, 0] : [7, 3], f32>
  func.return %p : !loom.tensor<[5, 0] : [7, 3], f32>
}

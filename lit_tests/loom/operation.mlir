// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

// CHECK:       func.func @main
// CHECK-NEXT:    %y = loom.operation @linear_relu over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
// CHECK-NEXT:        ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
// CHECK-NEXT:        extra(%b : (d0, d1) -> (d1))
// CHECK-NEXT:        outs((d0, d1) -> (d0, d1))
// CHECK-NEXT{LITERAL}:        shards <grid [[0, 2, 4], [0, 5], [0, 3, 6]]>
// CHECK-NEXT:        wrap (%xe: f32, %we: f32) {
// CHECK-NEXT:          %p = arith.mulf %xe, %we : f32
// CHECK-NEXT:          loom.yield %p : f32
// CHECK-NEXT:        }
// CHECK-NEXT:        unwrap (%acc: f32, %be: f32) {
// CHECK-NEXT:          %s = arith.addf %acc, %be : f32
// CHECK-NEXT:          %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:          %r = arith.maximumf %s, %zero : f32
// CHECK-NEXT:          loom.yield %r : f32
// CHECK-NEXT:        }
// CHECK-NEXT:        : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 5], f32>, !loom.tensor<[0] : [5], f32>) -> !loom.tensor<[0, 0] : [4, 5], f32>

func.func @main(%x: !loom.tensor<[0, 0] : [4, 6], f32>, %w: !loom.tensor<[0, 0] : [6, 5], f32>,
                %b: !loom.tensor<[0] : [5], f32>)
    -> (!loom.tensor<[0, 0] : [4, 5], f32>, !loom.tensor<[-3] : [1], i64>) {
  %y = loom.operation @linear_relu over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
         extra(%b : (d0, d1) -> (d1))
         outs((d0, d1) -> (d0, d1))
         shards <grid [[0, 2, 4], [0, 5], [0, 3, 6]]>
         wrap (%xe: f32, %we: f32) {
           %p = arith.mulf %xe, %we : f32
           loom.yield %p : f32
         }
         unwrap (%acc: f32, %be: f32) {
           %s = arith.addf %acc, %be : f32
           %zero = arith.constant 0.0 : f32
           %r = arith.maximumf %s, %zero : f32
           loom.yield %r : f32
         }
         : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 5], f32>,
            !loom.tensor<[0] : [5], f32>) -> !loom.tensor<[0, 0] : [4, 5], f32>

  // A state of two parts, coordinates, and tensors that start anywhere.
  // CHECK:         %largest = loom.operation @largest over <[0, 0] : [4, 5]> [map, fold] by @argmax
  // CHECK-NEXT:        ins(%y : (d0, d1) -> (d0, d1))
  // CHECK-NEXT:        outs((d0) -> (d0 - 3))
  // CHECK-NEXT:        wrap (%c: f32) {
  // CHECK-NEXT:          %column = loom.index 1 : i64
  // CHECK-NEXT:          loom.yield %c, %column : f32, i64
  // CHECK-NEXT:        }
  // CHECK-NEXT:        unwrap (%v: f32, %at: i64) {
  // CHECK-NEXT:          loom.yield %at : i64
  %largest = loom.operation @largest over <[0, 0] : [4, 5]> [map, fold] by @argmax
         ins(%y : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0 - 3))
         wrap (%c: f32) {
           %column = loom.index 1 : i64
           loom.yield %c, %column : f32, i64
         }
         unwrap (%v: f32, %at: i64) {
           loom.yield %at : i64
         }
         : (!loom.tensor<[0, 0] : [4, 5], f32>) -> !loom.tensor<[-3] : [1], i64>
  func.return %y, %largest : !loom.tensor<[0, 0] : [4, 5], f32>, !loom.tensor<[-3] : [1], i64>
}

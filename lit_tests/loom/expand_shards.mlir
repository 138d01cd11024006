// RUN: tapestry-opt %s -p loom-expand-shards --equal-each --split-input-file | filecheck %s

!v = !loom.tensor<[0] : [8], f32>
// CHECK:      loom.kernel @double [map]
// CHECK-NEXT:     ins((d0) -> (d0))
// CHECK-NEXT:     outs((d0) -> (d0))
// CHECK-NEXT:     wrap (%c: f32) {
// CHECK-NEXT:       %d = arith.addf %c, %c : f32
// CHECK-NEXT:       loom.yield %d : f32
// CHECK-NEXT:     }
// CHECK-NEXT: func.func @main
// CHECK-NEXT:   %y = loom.application @double over <[0] : [3]> (%x <[0] : [3]>) : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [3], f32>
// CHECK-NEXT:   %y_1 = loom.application @double over <[3] : [8]> (%x <[3] : [8]>) : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[3] : [8], f32>
// CHECK-NEXT:   %y_2 = loom.assemble %y, %y_1 : !loom.tensor<[0] : [3], f32>, !loom.tensor<[3] : [8], f32> -> !loom.tensor<[0] : [8], f32>
func.func @main(%x: !v) -> !v {
  %y = loom.operation @double over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 3, 8]]>
         wrap (%c: f32) { %d = arith.addf %c, %c : f32 loom.yield %d : f32 } : (!v) -> !v
  func.return %y : !v
}

// -----

// Shards of the fold make states, merged per box of the map dimensions.
!x = !loom.tensor<[0, 0] : [2, 6], f32>
!y = !loom.tensor<[0] : [2], f32>
// CHECK:      loom.kernel @sum [map, fold] by @add
// CHECK:        %y = loom.application @sum over <[0, 0] : [1, 2]> partial (%x <[0, 0] : [1, 2]>) : (!loom.tensor<[0, 0] : [2, 6], f32>) -> !loom.tensor<[0] : [1], f32>
// CHECK-NEXT:   %y_1 = loom.application @sum over <[0, 2] : [1, 6]> partial (%x <[0, 2] : [1, 6]>)
// CHECK-NEXT:   %y_2 = loom.merge @sum over <[0] : [1]> states(%y, %y_1) extra(%b) : (!loom.tensor<[0] : [1], f32>, !loom.tensor<[0] : [1], f32>, !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [1], f32>
// CHECK-NEXT:   loom.application @sum over <[1, 0] : [2, 2]> partial
// CHECK-NEXT:   loom.application @sum over <[1, 2] : [2, 6]> partial
// CHECK-NEXT:   loom.merge @sum over <[1] : [2]>
// CHECK-NEXT:   loom.assemble
func.func @main(%x: !x, %b: !y) -> !y {
  %y = loom.operation @sum over <[0, 0] : [2, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1))
         extra(%b : (d0) -> (d0)) outs((d0) -> (d0)) shards <grid [[0, 1, 2], [0, 2, 6]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32, %d: f32) { %r = arith.addf %s, %d : f32 loom.yield %r : f32 } : (!x, !y) -> !y
  func.return %y : !y
}

// RUN: tapestry-opt %s -p loom-simplify --equal-each --split-input-file | filecheck %s

// A constant with equal cells, seen through a view, becomes a number of the body.

// CHECK-LABEL: func.func @scaled
// CHECK-NEXT:    %y = loom.operation @scale over <[0] : [8]> [map]
// CHECK-NEXT:        ins(%x : (d0) -> (d0))
// CHECK-NEXT:        outs((d0) -> (d0))
// CHECK-NEXT:        wrap (%a: f32) {
// CHECK-NEXT:          %h = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:          %p = arith.mulf %a, %h : f32
func.func @scaled(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32> {
  %half = loom.constant 0.5 : !loom.tensor<[0, 0] : [3, 4], f32>
  %row = loom.view %half : (d0) -> (d0 - 3, 0)
           : !loom.tensor<[0, 0] : [3, 4], f32> -> !loom.tensor<[3] : [5], f32>
  %y = loom.operation @scale over <[0] : [8]> [map]
         ins(%x : (d0) -> (d0), %row : (d0) -> (3)) outs((d0) -> (d0))
         wrap (%a: f32, %h: f32) {
           %p = arith.mulf %a, %h : f32
           loom.yield %p : f32
         } : (!loom.tensor<[0] : [8], f32>, !loom.tensor<[3] : [5], f32>)
             -> !loom.tensor<[0] : [8], f32>
  func.return %y : !loom.tensor<[0] : [8], f32>
}

// -----

// Cells that differ are read, and equal constants are one.

// CHECK-LABEL: func.func @added
// CHECK-NEXT:    %c = loom.constant [1, 2] : !loom.tensor<[0] : [2], i32>
// CHECK-NEXT:    %y = loom.operation @sum over <[0] : [2]> [map]
// CHECK-NEXT:        ins(%c : (d0) -> (d0), %c : (d0) -> (-d0 + 1))
func.func @added() -> !loom.tensor<[0] : [2], i32> {
  %c = loom.constant [1, 2] : !loom.tensor<[0] : [2], i32>
  %d = loom.constant [1, 2] : !loom.tensor<[0] : [2], i32>
  %y = loom.operation @sum over <[0] : [2]> [map]
         ins(%c : (d0) -> (d0), %d : (d0) -> (1 - d0)) outs((d0) -> (d0))
         wrap (%a: i32, %b: i32) {
           %s = arith.addi %a, %b : i32
           loom.yield %s : i32
         } : (!loom.tensor<[0] : [2], i32>, !loom.tensor<[0] : [2], i32>)
             -> !loom.tensor<[0] : [2], i32>
  func.return %y : !loom.tensor<[0] : [2], i32>
}

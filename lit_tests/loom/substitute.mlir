// RUN: tapestry-opt %s -p 'weft-apply,loom-substitute{rules="%S/../weft/Inputs/rules.yaml"}' --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p 'weft-apply,loom-substitute{rules="%S/../weft/Inputs/rules.yaml"}' --split-input-file --equal-each -o /dev/null 2>&1 | filecheck %s --check-prefix EQUAL
// EQUAL-COUNT-4: loom-substitute: @{{.*}}: equal (

// An operation that is what @linear expands to is read as its application; starts are kept.

// CHECK:      func.func @split
// CHECK-NEXT:   %y_z = loom.operation @y_z over <[0, 0, 0] : [4, 3, 6]> [map, map, fold] by @add
// CHECK-NOT:    unwrap
// CHECK:        %y = loom.operation @y over <[0, 0] : [4, 3]> [map, map]
// CHECK-NEXT:   ins(%y_z : (d0, d1) -> (d0, d1), %b : (d0, d1) -> (d1))
// CHECK-NEXT:   outs((d0, d1) -> (d0 + 2, d1))
func.func @split(%x: !loom.tensor<[0, 0] : [4, 6], f32>, %w: !loom.tensor<[0, 0] : [6, 3], f32>,
                 %b: !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[2, 0] : [6, 3], f32> {
  %y = weft.apply @linear(%x, %w, %b)
         : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 3], f32>,
            !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[2, 0] : [6, 3], f32>
  func.return %y : !loom.tensor<[2, 0] : [6, 3], f32>
}

// -----

// Views are read, too; their permutations are found.

// CHECK:      func.func @transposes
// CHECK-NEXT:   %b = loom.view %x : (d0, d1, d2) -> (d1, d2, d0)
// CHECK-NEXT:   func.return %b
func.func @transposes(%x: !loom.tensor<[0, 0, 0] : [2, 3, 4], i1>) -> !loom.tensor<[0, 0, 0] : [4, 2, 3], i1> {
  %a = weft.apply @transpose(%x) {perm = [1, 2, 0]}
         : (!loom.tensor<[0, 0, 0] : [2, 3, 4], i1>) -> !loom.tensor<[0, 0, 0] : [3, 4, 2], i1>
  %b = weft.apply @transpose(%a) {perm = [1, 2, 0]}
         : (!loom.tensor<[0, 0, 0] : [3, 4, 2], i1>) -> !loom.tensor<[0, 0, 0] : [4, 2, 3], i1>
  func.return %b : !loom.tensor<[0, 0, 0] : [4, 2, 3], i1>
}

// -----

// Axes are found; an operation that no rule touches keeps its label.

// CHECK:      func.func @statistics
// CHECK-NEXT:   %s = loom.operation @s over <[0, 0] : [4, 5]> [map, fold] by @add
// CHECK:        %m = loom.operation @m over <[0] : [4]> [map]
// CHECK:          arith.divf
// CHECK:        %t = loom.operation @kept
// CHECK:          arith.mulf
func.func @statistics(%x: !loom.tensor<[0, 0] : [4, 5], f32>)
                      -> (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) {
  %s = weft.apply @sum(%x) {axis = 1} : (!loom.tensor<[0, 0] : [4, 5], f32>) -> !loom.tensor<[0] : [4], f32>
  %m = weft.apply @mean(%x) {axis = 1} : (!loom.tensor<[0, 0] : [4, 5], f32>) -> !loom.tensor<[0] : [4], f32>
  %t = loom.operation @kept over <[0] : [4]> [map]
    ins(%s : (d0) -> (d0), %m : (d0) -> (d0))
    outs((d0) -> (d0))
    wrap (%a: f32, %b: f32) {
      %0 = arith.mulf %a, %b : f32
      loom.yield %0 : f32
    }
    : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %t, %m : !loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>
}

// -----

// What is split into shards is not what weft-apply makes.

// CHECK:      func.func @sharded
// CHECK-NEXT:   %y = loom.operation @y
// CHECK:          shards
// CHECK:          arith.maximumf %a, %b
func.func @sharded(%x: !loom.tensor<[0] : [4], f32>, %z: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @y over <[0] : [4]> [map]
    ins(%x : (d0) -> (d0), %z : (d0) -> (d0))
    outs((d0) -> (d0))
    shards <grid [[0, 2, 4]]>
    wrap (%a: f32, %b: f32) {
      %0 = arith.maximumf %a, %b : f32
      loom.yield %0 : f32
    }
    : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

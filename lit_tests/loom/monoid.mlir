// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

// CHECK:      loom.monoid @last zero [0 : i32, -2147483648 : i32] merge (%a: i32, %i: i32, %b: i32, %j: i32) {
// CHECK-NEXT:   %later = arith.cmpi sle, %i, %j : i32
// CHECK:        loom.yield %v, %k : i32, i32
// CHECK-NEXT: }
loom.monoid @last zero [0 : i32, -2147483648 : i32] merge (%a: i32, %i: i32, %b: i32, %j: i32) {
  %later = arith.cmpi sle, %i, %j : i32
  %v = arith.select %later, %b, %a : i32
  %k = arith.maxsi %i, %j : i32
  loom.yield %v, %k : i32, i32
}

// CHECK:      loom.monoid @largest commutative zero [{{.*}} : f32] merge (%a: f32, %b: f32) {
loom.monoid @largest commutative zero [0xFF800000 : f32] merge (%a: f32, %b: f32) {
  %m = arith.maximumf %a, %b : f32
  loom.yield %m : f32
}

// CHECK: loom.operation @rows over <[0, 0] : [2, 3]> [map, fold] by @largest
func.func @main(%x: !loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0] : [2], f32> {
  %y = loom.operation @rows over <[0, 0] : [2, 3]> [map, fold] by @largest
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0] : [2], f32>
  func.return %y : !loom.tensor<[0] : [2], f32>
}

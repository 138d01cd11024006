// RUN: tapestry-opt %s -p loom-simplify | filecheck %s

!x = !loom.tensor<[0, 2] : [4, 3], f32>
!y = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[0, 0] : [4, 2], f32>

// A fold of one point is a map, whose body wraps and unwraps.
// CHECK-LABEL: @one
// CHECK:       loom.operation @s over <[0] : [4]> [map]
// CHECK-NEXT:      ins(%x : (d0) -> (d0, 2), %y : (d0) -> (d0))
// CHECK:         %r = arith.mulf %v, %w : f32
// CHECK-NEXT:    loom.yield %r : f32
func.func @one(%x: !x, %y: !y) -> !y {
  %s = loom.operation @s over <[0, 2] : [4, 3]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) extra(%y : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%a: f32) {
           %v = math.exp %a : f32
           loom.yield %v : f32
         } unwrap (%u: f32, %w: f32) {
           %r = arith.mulf %u, %w : f32
           loom.yield %r : f32
         } : (!x, !y) -> !y
  func.return %s : !y
}

// Coordinates are those that are left.
// CHECK-LABEL: @coordinates
// CHECK:       loom.operation @s over <[0] : [4]> [map]
// CHECK:         loom.index 0
func.func @coordinates(%x: !x) -> !y {
  %s = loom.operation @s over <[2, 0] : [3, 4]> [fold, map] by @add
         ins(%x : (d0, d1) -> (d1, d0)) outs((d0) -> (d0))
         wrap (%a: f32) {
           %i = loom.index 1 : i64
           %v = arith.sitofp %i : i64 to f32
           %r = arith.mulf %a, %v : f32
           loom.yield %r : f32
         } : (!x) -> !y
  func.return %s : !y
}

// Two points are a fold; one that a domain may leave out is, too.
// CHECK-LABEL: @two
// CHECK:       loom.operation @s over <[0, 0] : [4, 2]> [map, fold]
func.func @two(%z: !z) -> !y {
  %s = loom.operation @s over <[0, 0] : [4, 2]> [map, fold] by @add
         ins(%z : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f32) { loom.yield %a : f32 } : (!z) -> !y
  func.return %s : !y
}
// CHECK-LABEL: @outside
// CHECK:       loom.operation @s over <[0, 2] : [4, 3]> [map, fold]
func.func @outside(%x: !x) -> !y {
  %s = loom.operation @s over <[0, 2] : [4, 3]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain(d0 >= d1)
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  func.return %s : !y
}

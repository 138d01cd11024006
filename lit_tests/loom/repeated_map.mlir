// RUN: tapestry-opt %s -p loom-simplify | filecheck %s

!k = !loom.tensor<[0, 0] : [2, 8], f32>
!s = !loom.tensor<[0, 0] : [8, 8], f32>
!y = !loom.tensor<[0] : [8], f32>

// What %k is scaled to is the same for four rows each: it is made once for them.
// CHECK-LABEL: @scaled
// CHECK:       loom.operation @s over <[0, 0] : [2, 8]> [map, map]
// CHECK-NEXT:    ins(%k : (d0, d1) -> (d0, d1))
// CHECK:       loom.operation @y over <[0, 0, 0] : [2, 4, 8]> [map, map, fold] by @add
// CHECK-NEXT:    ins(%s : (d0, d1, d2) -> (d0, d2))
func.func @scaled(%k: !k) -> !y {
  %s = loom.operation @s over <[0, 0, 0] : [2, 4, 8]> [map, map, map] ins(%k : (h, g, i) -> (h, i))
         outs((h, g, i) -> (4 * h + g, i)) wrap (%u: f32) { %v = math.exp %u : f32  loom.yield %v : f32 }
         : (!k) -> !s
  %y = loom.operation @y over <[0, 0, 0] : [2, 4, 8]> [map, map, fold] by @add
         ins(%s : (h, g, i) -> (4 * h + g, i)) outs((h, g) -> (4 * h + g))
         wrap (%u: f32) { loom.yield %u : f32 } : (!s) -> !y
  func.return %y : !y
}

// A body that asks where it is makes a cell of its own for each; what is returned has all cells.
// CHECK-LABEL: @coordinate
// CHECK:       loom.operation @s over <[0, 0, 0] : [2, 4, 8]>
func.func @coordinate(%k: !k) -> !y {
  %s = loom.operation @s over <[0, 0, 0] : [2, 4, 8]> [map, map, map] ins(%k : (h, g, i) -> (h, i))
         outs((h, g, i) -> (4 * h + g, i)) wrap (%u: f32) {
           %g = loom.index 1 : i64
           %f = arith.sitofp %g : i64 to f32
           %v = arith.mulf %u, %f : f32
           loom.yield %v : f32 } : (!k) -> !s
  %y = loom.operation @y over <[0, 0, 0] : [2, 4, 8]> [map, map, fold] by @add
         ins(%s : (h, g, i) -> (4 * h + g, i)) outs((h, g) -> (4 * h + g))
         wrap (%u: f32) { loom.yield %u : f32 } : (!s) -> !y
  func.return %y : !y
}
// CHECK-LABEL: @returned
// CHECK:       loom.operation @s over <[0, 0, 0] : [2, 4, 8]>
func.func @returned(%k: !k) -> !s {
  %s = loom.operation @s over <[0, 0, 0] : [2, 4, 8]> [map, map, map] ins(%k : (h, g, i) -> (h, i))
         outs((h, g, i) -> (4 * h + g, i)) wrap (%u: f32) { %v = math.exp %u : f32  loom.yield %v : f32 }
         : (!k) -> !s
  func.return %s : !s
}

// One of its readers reads another: both read what is made once.
// CHECK-LABEL: @chained
// CHECK:       loom.operation @s over <[0] : [8]> [map]
// CHECK:       %y = loom.operation @y
// CHECK-NEXT:    ins(%s : (d0, d1) -> (d0))
// CHECK:       loom.operation @z
// CHECK-NEXT:    ins(%s : (d0, d1) -> (d0), %y : (d0, d1) -> (d0))
func.func @chained(%k: !y) -> !s {
  %s = loom.operation @s over <[0, 0] : [8, 8]> [map, map] ins(%k : (h, i) -> (h))
         outs((h, i) -> (h, i)) wrap (%u: f32) { %v = math.exp %u : f32  loom.yield %v : f32 }
         : (!y) -> !s
  %y = loom.operation @y over <[0, 0] : [8, 8]> [map, fold] by @add
         ins(%s : (h, i) -> (h, i)) outs((h) -> (h))
         wrap (%u: f32) { loom.yield %u : f32 } : (!s) -> !y
  %z = loom.operation @z over <[0, 0] : [8, 8]> [map, map]
         ins(%s : (h, i) -> (h, i), %y : (h, i) -> (h)) outs((h, i) -> (h, i))
         wrap (%u: f32, %v: f32) { %w = arith.divf %u, %v : f32  loom.yield %w : f32 }
         : (!s, !y) -> !s
  func.return %z : !s
}

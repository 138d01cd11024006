// RUN: tapestry-opt %s -p loom-fuse --split-input-file --equal-each | filecheck %s

// Cells are stored in 16 bits, and widened where they are read: not widened and stored.
!x = !loom.tensor<[0, 0] : [4, 6], f16>
!w = !loom.tensor<[0, 0] : [4, 6], f32>
!h = !loom.tensor<[0] : [4], f16>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @widened
// CHECK: %s = loom.operation @s
// CHECK: -> !loom.tensor<[0] : [4], f16>
// CHECK: loom.operation @minus
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1), %s : (d0, d1) -> (d0))
func.func @widened(%x: !x) -> (!w, !w) {
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f16) { loom.yield %a : f16 } : (!x) -> !h
  %e = loom.operation @wide over <[0] : [4]> [map] ins(%s : (i) -> (i)) outs((i) -> (i))
         wrap (%a: f16) { %b = arith.extf %a : f16 to f32 loom.yield %b : f32 } : (!h) -> !y
  %p = loom.operation @minus over <[0, 0] : [4, 6]> [map, map]
         ins(%x : (i, j) -> (i, j), %e : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f16, %b: f32) {
           %c = arith.extf %a : f16 to f32  %d = arith.subf %c, %b : f32 loom.yield %d : f32 } : (!x, !y) -> !w
  %q = loom.operation @plus over <[0, 0] : [4, 6]> [map, map]
         ins(%x : (i, j) -> (3 - i, j), %e : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f16, %b: f32) {
           %c = arith.extf %a : f16 to f32  %d = arith.addf %c, %b : f32 loom.yield %d : f32 } : (!x, !y) -> !w
  func.return %p, %q : !w, !w
}

// -----

// What is returned is stored wide, so the fold writes it.
!x = !loom.tensor<[0, 0] : [4, 6], f16>
!h = !loom.tensor<[0] : [4], f16>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @stored
// CHECK: loom.operation @s_wide
func.func @stored(%x: !x) -> !y {
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f16) { loom.yield %a : f16 } : (!x) -> !h
  %e = loom.operation @wide over <[0] : [4]> [map] ins(%s : (i) -> (i)) outs((i) -> (i))
         wrap (%a: f16) { %b = arith.extf %a : f16 to f32 loom.yield %b : f32 } : (!h) -> !y
  func.return %e : !y
}

// -----

// A map that takes too long to be computed for each tile of two products is stored, but not wide.
!x = !loom.tensor<[0, 0] : [64, 64], f16>
!w = !loom.tensor<[0, 0] : [64, 64], f32>
!v = !loom.tensor<[0, 0] : [64, 1024], f32>
!y = !loom.tensor<[0, 0] : [64, 1024], f32>
// CHECK-LABEL: @narrow
// CHECK: %t = loom.operation @t
// CHECK: -> !loom.tensor<[0, 0] : [64, 64], f16>
// CHECK: loom.operation @p
// CHECK-NEXT: ins(%t : (d0, d1, d2) -> (d0, d2)
// CHECK: arith.extf
// CHECK: loom.operation @q
// CHECK-NEXT: ins(%t : (d0, d1, d2) -> (d2, d0)
// CHECK: arith.extf
func.func @narrow(%x: !x, %v: !v) -> (!y, !y) {
  %t = loom.operation @t over <[0, 0] : [64, 64]> [map, map]
         ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f16) { %b = math.exp %a : f16  %c = math.exp %b : f16 loom.yield %c : f16 } : (!x) -> !x
  %e = loom.operation @wide over <[0, 0] : [64, 64]> [map, map]
         ins(%t : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f16) { %b = arith.extf %a : f16 to f32 loom.yield %b : f32 } : (!x) -> !w
  %p = loom.operation @p over <[0, 0, 0] : [64, 1024, 64]> [map, map, fold] by @add
         ins(%e : (i, j, k) -> (i, k), %v : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %c = arith.mulf %a, %b : f32 loom.yield %c : f32 } : (!w, !v) -> !y
  %q = loom.operation @q over <[0, 0, 0] : [64, 1024, 64]> [map, map, fold] by @add
         ins(%e : (i, j, k) -> (k, i), %v : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %c = arith.mulf %a, %b : f32 loom.yield %c : f32 } : (!w, !v) -> !y
  func.return %p, %q : !y, !y
}

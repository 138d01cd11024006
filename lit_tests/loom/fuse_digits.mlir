// RUN: tapestry-opt %s -p loom-fuse --equal-each --split-input-file | filecheck %s

// Rows that are digits, as reshapes leave them, are no affine function of the cell. But what reads the
// cell by the same digits says which point writes it.
!x = !loom.tensor<[0, 0] : [6, 5], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @epilogue
func.func @epilogue(%x: !x, %b: !y) -> !y {
  // CHECK-NEXT: loom.operation @s_z over <[0, 0, 0] : [3, 2, 5]> [map, map, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1, d2) -> (2 * d0 + d1, d2))
  // CHECK-NEXT: extra(%b : (d0, d1) -> (2 * d0 - d1 + 1))
  // CHECK-NEXT: outs((d0, d1) -> (2 * d0 - d1 + 1))
  // CHECK-NOT:  loom.operation
  %s = loom.operation @s over <[0, 0, 0] : [3, 2, 5]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (2 * d0 + d1, d2)) outs((d0, d1) -> (2 * d0 + d1))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %z = loom.operation @z over <[0, 0] : [3, 2]> [map, map]
         ins(%s : (d0, d1) -> (2 * d0 - d1 + 1), %b : (d0, d1) -> (2 * d0 + d1))
         outs((d0, d1) -> (2 * d0 + d1))
         wrap (%c: f32, %e: f32) { %u = arith.addf %c, %e : f32 loom.yield %u : f32 } : (!y, !y) -> !y
  func.return %z : !y
}

// -----

// The map is computed where it is read, its digits from the reader's: only the first half of them.
!x = !loom.tensor<[0, 0] : [6, 4], f32>
!l = !loom.tensor<[0] : [24], f32>
!y = !loom.tensor<[0] : [3], f32>
// CHECK-LABEL: @prologue
func.func @prologue(%x: !x) -> !y {
  // CHECK-NEXT: loom.operation @e_s over <[0, 0] : [3, 4]> [map, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NOT:  loom.operation
  %e = loom.operation @e over <[0, 0] : [6, 4]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (4 * d0 + d1))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !l
  %s = loom.operation @s over <[0, 0] : [3, 4]> [map, fold] by @add ins(%e : (d0, d1) -> (4 * d0 + d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!l) -> !y
  func.return %s : !y
}

// -----

// Read across its digits in threes, which are no digits of fours, it is stored.
!x = !loom.tensor<[0, 0] : [6, 4], f32>
!l = !loom.tensor<[0] : [24], f32>
!y = !loom.tensor<[0] : [8], f32>
// CHECK-LABEL: @across
func.func @across(%x: !x) -> !y {
  // CHECK-NEXT: loom.operation @e over
  // CHECK:      loom.operation @s over
  %e = loom.operation @e over <[0, 0] : [6, 4]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (4 * d0 + d1))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !l
  %s = loom.operation @s over <[0, 0] : [8, 3]> [map, fold] by @add ins(%e : (d0, d1) -> (3 * d0 + d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!l) -> !y
  func.return %s : !y
}

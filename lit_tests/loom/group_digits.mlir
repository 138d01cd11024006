// RUN: tapestry-opt %s -p 'loom-group{ops=e,s}' --equal-each --split-input-file | filecheck %s

// What one member writes by two digits, another reads by the same: both are the same dimensions.
!x = !loom.tensor<[0, 0] : [6, 4], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @digits
// CHECK: loom.fused @e_s over <[0, 0, 0] : [2, 3, 4]>
// CHECK-NEXT: aligned((d0, d1, d2) -> (d0, d1, d2), (d0, d1, d2) -> (d0, d1, d2))
func.func @digits(%x: !x) -> !y {
  %e = loom.operation @e over <[0, 0, 0] : [2, 3, 4]> [map, map, map]
         ins(%x : (g, r, j) -> (3 * g + r, j)) outs((g, r, j) -> (3 * g + r, j))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @s over <[0, 0, 0] : [2, 3, 4]> [map, map, fold] by @add
         ins(%e : (g, r, j) -> (3 * g + r, j)) outs((g, r) -> (3 * g + r))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %s : !y
}

// -----

// Other digits of the same row are other dimensions.
!x = !loom.tensor<[0, 0] : [6, 4], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @other_digits
// CHECK: loom.fused @e_s over <[0, 0, 0, 0, 0] : [2, 3, 4, 3, 2]>
func.func @other_digits(%x: !x) -> !y {
  %e = loom.operation @e over <[0, 0, 0] : [2, 3, 4]> [map, map, map]
         ins(%x : (g, r, j) -> (3 * g + r, j)) outs((g, r, j) -> (3 * g + r, j))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @s over <[0, 0, 0] : [3, 2, 4]> [map, map, fold] by @add
         ins(%e : (g, r, j) -> (2 * g + r, j)) outs((g, r) -> (2 * g + r))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %s : !y
}

// RUN: tapestry-opt %s -p 'loom-fuse{kinds=keep}' --equal-each --split-input-file | filecheck %s

// What a map reads once is written all the same, because others need it: one operation writes both.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @fold
func.func @fold(%x: !x) -> (!y, !y) {
  // CHECK-NEXT: %s, %e = loom.operation @s_e over <[0, 0] : [4, 6]> [map, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: outs((d0) -> (d0), (d0) -> (-d0 + 3))
  // CHECK:      unwrap (%[[S:.*]]: f32) {
  // CHECK-NEXT:   %[[E:.*]] = math.exp %[[S]] : f32
  // CHECK-NEXT:   loom.yield %[[S]], %[[E]] : f32, f32
  // CHECK-NOT:  loom.operation
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %e = loom.operation @e over <[0] : [4]> [map] ins(%s : (d0) -> (3 - d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!y) -> !y
  func.return %s, %e : !y, !y
}

// -----

// Maps too; what stands between and reads the first is no hindrance as the second needs nothing else.
!x = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @map
func.func @map(%x: !x) -> (!y, !x) {
  // CHECK-NEXT: %e, %n = loom.operation @e_n over <[0] : [6]> [map]
  // CHECK:      loom.operation @t over <[0] : [6]> [fold]
  // CHECK-NEXT: ins(%e
  // CHECK-NOT:  loom.operation
  %e = loom.operation @e over <[0] : [6]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %t = loom.operation @t over <[0] : [6]> [fold] by @max ins(%e : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @n over <[0] : [6]> [map] ins(%e : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!x) -> !x
  func.return %t, %n : !y, !x
}

// -----

// Here it needs what stands between.
!x = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @between
func.func @between(%x: !x) -> !x {
  // CHECK-NEXT: loom.operation @e over
  // CHECK:      loom.operation @t over
  // CHECK:      loom.operation @n over
  %e = loom.operation @e over <[0] : [6]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %t = loom.operation @t over <[0] : [6]> [fold] by @max ins(%e : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @n over <[0] : [6]> [map] ins(%e : (d0) -> (d0), %t : (d0) -> ()) outs((d0) -> (d0))
         wrap (%c: f32, %d: f32) { %r = arith.subf %c, %d : f32 loom.yield %r : f32 } : (!x, !y) -> !x
  func.return %n : !x
}

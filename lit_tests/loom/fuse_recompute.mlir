// RUN: tapestry-opt %s -p loom-fuse --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p 'loom-fuse{recompute=0}' --equal-each --split-input-file | filecheck %s --check-prefix=STORED

// What two operations read is computed in both: %x is read twice instead of three times, and nothing
// is stored.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @both
// STORED-LABEL: @both
func.func @both(%x: !x) -> (!y, !y) {
  // CHECK-NEXT: loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK:      math.exp
  // CHECK:      loom.operation @t over <[0, 0] : [4, 6]> [map, fold] by @max
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK:      math.exp
  // CHECK-NOT:  loom.operation
  // STORED-NEXT: loom.operation @e over
  // STORED:      loom.operation @s over
  // STORED:      loom.operation @t over
  %e = loom.operation @e over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add ins(%e : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %t = loom.operation @t over <[0, 0] : [4, 6]> [map, fold] by @max ins(%e : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %s, %t : !y, !y
}

// -----

// One operation may read it at several points, and several outputs of it.
!x = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @twice
func.func @twice(%x: !x) -> !x {
  // CHECK-NEXT: loom.operation @e_s over <[0] : [6]> [map]
  // CHECK-NEXT: ins(%x : (d0) -> (d0), %x : (d0) -> (-d0 + 5))
  // CHECK:      wrap (%[[A:.*]]: f32, %[[B:.*]]: f32) {
  // CHECK-NEXT:   %[[N:.*]] = arith.negf %[[A]]
  // CHECK-NEXT:   %[[E:.*]] = math.exp %[[B]]
  // CHECK-NEXT:   arith.mulf %[[N]], %[[E]]
  // CHECK-NOT:  loom.operation
  %n, %e = loom.operation @e over <[0] : [6]> [map] ins(%x : (d0) -> (d0))
         outs((d0) -> (d0), (d0) -> (5 - d0)) wrap (%c: f32) {
           %r = math.exp %c : f32
           %m = arith.negf %c : f32
           loom.yield %m, %r : f32, f32
         } : (!x) -> (!x, !x)
  %s = loom.operation @s over <[0] : [6]> [map] ins(%n : (d0) -> (d0), %e : (d0) -> (d0))
         outs((d0) -> (d0)) wrap (%c: f32, %d: f32) { %r = arith.mulf %c, %d : f32 loom.yield %r : f32 }
         : (!x, !x) -> !x
  func.return %s : !x
}

// -----

// Stored all the same: it is returned.
!x = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @returned
func.func @returned(%x: !x) -> (!x, !y) {
  // CHECK-NEXT: loom.operation @e over
  // CHECK:      loom.operation @s over
  %e = loom.operation @e over <[0] : [6]> [map] ins(%x : (d0) -> (d0))
         outs((d0) -> (d0)) wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @s over <[0] : [6]> [fold] by @add ins(%e : (d0) -> (d0))
         outs(() -> ()) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %e, %s : !x, !y
}

// -----

// A function before a wide product would be computed for each of its tiles: 16 additions' worth, 24
// times per cell. Before a narrow one there is one tile.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 3072], f32>
!y = !loom.tensor<[0, 0] : [4, 3072], f32>
!v = !loom.tensor<[0, 0] : [6, 128], f32>
!z = !loom.tensor<[0, 0] : [4, 128], f32>
// CHECK-LABEL: @wide
func.func @wide(%x: !x, %w: !w, %v: !v) -> (!y, !z) {
  // CHECK-NEXT: %e = loom.operation @e over <[0, 0] : [4, 6]>
  // CHECK:      loom.operation @p over <[0, 0, 0] : [4, 3072, 6]>
  // CHECK:      loom.operation @f_q over <[0, 0, 0] : [4, 128, 6]>
  %e = loom.operation @e over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) {
           %r = math.exp %c : f32
           %s = math.log1p %r : f32
           loom.yield %s : f32
         } : (!x) -> !x
  %p = loom.operation @p over <[0, 0, 0] : [4, 3072, 6]> [map, map, fold] by @add
         ins(%e : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %r = arith.mulf %c, %d : f32 loom.yield %r : f32 } : (!x, !w) -> !y
  %f = loom.operation @f over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) {
           %r = math.log1p %c : f32
           %s = math.exp %r : f32
           loom.yield %s : f32
         } : (!x) -> !x
  %q = loom.operation @q over <[0, 0, 0] : [4, 128, 6]> [map, map, fold] by @add
         ins(%f : (d0, d1, d2) -> (d0, d2), %v : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %r = arith.mulf %c, %d : f32 loom.yield %r : f32 } : (!x, !v) -> !z
  func.return %p, %q : !y, !z
}

// RUN: tapestry-opt %s -p loom-fuse --split-input-file --equal-each | filecheck %s

// Heads of keys that serve two heads of queries each, scaled: the reader's heads become the digits
// by which they are written, and the map is computed where it is read.
// CHECK-LABEL: @heads
// CHECK-NEXT: loom.operation @scale_scores over <[0, 0, 0] : [3, 2, 5]> [map, map, fold]
// CHECK-NEXT: ins(%k : (d0, d1, d2) -> (d0, d2), %q : (d0, d1, d2) -> (2 * d0 + d1, d2))
// CHECK-NEXT: outs((d0, d1) -> (2 * d0 + d1))
// CHECK:      func.return
!k = !loom.tensor<[0, 0] : [3, 5], f32>
!q = !loom.tensor<[0, 0] : [6, 5], f32>
!s = !loom.tensor<[0] : [6], f32>
func.func @heads(%k: !k, %q: !q) -> !s {
  %kk = loom.operation @scale over <[0, 0, 0] : [3, 2, 5]> [map, map, map]
          ins(%k : (g, r, c) -> (g, c)) outs((g, r, c) -> (2 * g + r, c))
          wrap (%x: f32) {
            %h = arith.constant 0.5 : f32
            %y = arith.mulf %x, %h : f32
            loom.yield %y : f32 } : (!k) -> !q
  %s = loom.operation @scores over <[0, 0] : [6, 5]> [map, fold] by @add
         ins(%kk : (h, c) -> (h, c), %q : (h, c) -> (h, c)) outs((h) -> (h))
         wrap (%x: f32, %y: f32) { %p = arith.mulf %x, %y : f32 loom.yield %p : f32 } : (!q, !q) -> !s
  func.return %s : !s
}

// -----
// What something else reads too is stored, and a scan runs along one dimension: neither is split.
// CHECK-LABEL: @stored
// CHECK: @scores over <[0, 0] : [6, 5]>
// CHECK-LABEL: @scan
// CHECK: @sums over <[0] : [6]> [scan]
!k = !loom.tensor<[0, 0] : [3, 5], f32>
!q = !loom.tensor<[0, 0] : [6, 5], f32>
!s = !loom.tensor<[0] : [6], f32>
!t = !loom.tensor<[0] : [3], f32>
func.func @stored(%k: !k, %q: !q) -> (!s, !q) {
  %kk = loom.operation @scale over <[0, 0, 0] : [3, 2, 5]> [map, map, map]
          ins(%k : (g, r, c) -> (g, c)) outs((g, r, c) -> (2 * g + r, c))
          wrap (%x: f32) { %y = arith.addf %x, %x : f32 loom.yield %y : f32 } : (!k) -> !q
  %s = loom.operation @scores over <[0, 0] : [6, 5]> [map, fold] by @add
         ins(%kk : (h, c) -> (h, c), %q : (h, c) -> (h, c)) outs((h) -> (h))
         wrap (%x: f32, %y: f32) { %p = arith.mulf %x, %y : f32 loom.yield %p : f32 } : (!q, !q) -> !s
  func.return %s, %kk : !s, !q
}
func.func @scan(%t: !t) -> !s {
  %kk = loom.operation @scale over <[0, 0] : [3, 2]> [map, map]
          ins(%t : (g, r) -> (g)) outs((g, r) -> (2 * g + r))
          wrap (%x: f32) { %y = arith.addf %x, %x : f32 loom.yield %y : f32 } : (!t) -> !s
  %s = loom.operation @sums over <[0] : [6]> [scan] by @add
         ins(%kk : (h) -> (h)) outs((h) -> (h))
         wrap (%x: f32) { loom.yield %x : f32 } : (!s) -> !s
  func.return %s : !s
}

// -----

// A fold writes rows by digits: what reads them is split alike, so that both can be one group.
!x = !loom.tensor<[0, 0] : [6, 5], f32>
!y = !loom.tensor<[0] : [6], f32>
!z = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @fold_by_digits
func.func @fold_by_digits(%x: !x) -> (!z, !z) {
  // CHECK-NEXT: loom.operation @s over <[0, 0, 0] : [3, 2, 5]> [map, map, fold] by @add
  // CHECK:      loom.operation @m over <[0, 0] : [3, 2]> [fold, fold] by @max
  // CHECK-NEXT: ins(%s : (d0, d1) -> (2 * d0 + d1))
  // CHECK:      loom.operation @n over <[0, 0] : [3, 2]> [fold, fold] by @min
  %s = loom.operation @s over <[0, 0, 0] : [3, 2, 5]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (2 * d0 + d1, d2)) outs((d0, d1) -> (2 * d0 + d1))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %m = loom.operation @m over <[0] : [6]> [fold] by @max ins(%s : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!y) -> !z
  %n = loom.operation @n over <[0] : [6]> [fold] by @min ins(%s : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!y) -> !z
  func.return %m, %n : !z, !z
}

// RUN: tapestry-opt %s -p 'loom-pad-fold{op=conv dim=4}' --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// RUN: tapestry-opt %s -p 'loom-pad-fold{op=rows dim=2 extent=8}' --equal-each 2> %t.rows | filecheck %s --check-prefix=ROWS
// RUN: filecheck %s --check-prefix=EQUAL < %t.rows
// RUN: tapestry-opt %s -p 'loom-pad-fold{op=conv dim=5}' | filecheck %s --check-prefix=STAYS
// RUN: tapestry-opt %s -p 'loom-pad-fold{op=filled dim=4}' | filecheck %s --check-prefix=STAYS
// RUN: tapestry-opt %s -p 'loom-pad-fold{op=added dim=2}' | filecheck %s --check-prefix=STAYS
// RUN: tapestry-opt %s -p 'loom-pad-fold{op=inside dim=2}' | filecheck %s --check-prefix=STAYS
// RUN: tapestry-opt %s -p 'loom-pad-fold{op=part dim=2}' | filecheck %s --check-prefix=STAYS
// RUN: tapestry-opt %s -p 'loom-pad-fold{op=rows dim=1}' | filecheck %s --check-prefix=STAYS

// EQUAL: loom-pad-fold: @main: equal

// Channels come last, and a fourth one has zeros; so it has in the weights.
// CHECK:      %[[W:.*]] = loom.operation @copy over <[0, 0, 0, 0] : [4, 2, 3, 4]> [map, map, map, map]
// CHECK-NEXT: ins(%w : (d0, d1, d2, d3) -> (d0, d3, d1, d2) clip 0.000000e+00 : f32)
// CHECK:      %[[X:.*]] = loom.operation @copy over <[0, -1, 0, 1] : [2, 4, 6, 5]> [map, map, map, map]
// CHECK-NEXT: ins(%x : (d0, d1, d2, d3) -> (d0, d3, d1, d2) clip 0.000000e+00 : f32)
// CHECK-NEXT: outs((d0, d1, d2, d3) -> (d0, d1, d2, d3))
// CHECK:      loom.operation @conv over <[0, 0, 0, 0, 2, 0, 0] : [2, 4, 5, 3, 6, 2, 3]>
// CHECK-NEXT: ins(%[[X]] : (d0, d1, d2, d3, d4, d5, d6) -> (d0, d2 + d5 - 2, 2 * d3 + d6 - 1, d4 - 1) clip 0.000000e+00 : f32, %[[W]] : (d0, d1, d2, d3, d4, d5, d6) -> (d1, d5, d6, d4 - 2))

// What comes last already stays there; the other factor is turned.
// ROWS:      loom.operation @copy over <[0, 0] : [6, 8]>
// ROWS-NEXT: ins(%b : (d0, d1) -> (d1, d0) clip 0.000000e+00 : f32)
// ROWS:      loom.operation @copy over <[0, 0] : [4, 8]>
// ROWS-NEXT: ins(%a : (d0, d1) -> (d0, d1) clip 0.000000e+00 : f32)
// ROWS:      loom.operation @rows over <[0, 0, 0] : [4, 6, 8]>

// A place of a window is no whole axis; what lies outside is one, and infinite weights would make it
// count; sums of products with more in them, domains and parts of axes are left, as are rows.
// STAYS-NOT: @copy
!x = !loom.tensor<[0, 1, -1, 0] : [2, 4, 4, 6], f32>
!w = !loom.tensor<[0, 0, 0, 0] : [4, 3, 2, 3], f32>
!y = !loom.tensor<[0, 0, 0, 0] : [2, 4, 5, 3], f32>
!a = !loom.tensor<[0, 0] : [4, 5], f32>
!b = !loom.tensor<[0, 0] : [5, 6], f32>
!c = !loom.tensor<[0, 0] : [4, 6], f32>
func.func @main(%x: !x, %w: !w, %a: !a, %b: !b) -> (!y, !y, !c, !c, !c, !c) {
  %y = loom.operation @conv over <[0, 0, 0, 0, 2, 0, 0] : [2, 4, 5, 3, 5, 2, 3]> [map, map, map, map, fold, fold, fold] by @add
         ins(%x : (n, m, i, j, c, k, l) -> (n, c - 1, i + k - 2, 2 * j + l - 1) clip 0.0 : f32,
             %w : (n, m, i, j, c, k, l) -> (m, c - 2, k, l))
         outs((n, m, i, j) -> (n, m, i, j))
         wrap (%p: f32, %q: f32) { %r = arith.mulf %p, %q : f32  loom.yield %r : f32 } : (!x, !w) -> !y
  %z = loom.operation @filled over <[0, 0, 0, 0, 2, 0, 0] : [2, 4, 5, 3, 5, 2, 3]> [map, map, map, map, fold, fold, fold] by @add
         ins(%x : (n, m, i, j, c, k, l) -> (n, c - 1, i + k - 2, 2 * j + l - 1) clip 1.0 : f32,
             %w : (n, m, i, j, c, k, l) -> (m, c - 2, k, l))
         outs((n, m, i, j) -> (n, m, i, j))
         wrap (%p: f32, %q: f32) { %r = arith.mulf %p, %q : f32  loom.yield %r : f32 } : (!x, !w) -> !y
  %c = loom.operation @rows over <[0, 0, 0] : [4, 6, 5]> [map, map, fold] by @add
         ins(%a : (i, j, k) -> (i, k), %b : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) { %r = arith.mulf %p, %q : f32  loom.yield %r : f32 } : (!a, !b) -> !c
  %d = loom.operation @added over <[0, 0, 0] : [4, 6, 5]> [map, map, fold] by @add
         ins(%a : (i, j, k) -> (i, k), %b : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) {
           %r = arith.mulf %p, %q : f32
           %s = arith.addf %r, %q : f32
           loom.yield %s : f32
         } : (!a, !b) -> !c
  %e = loom.operation @inside over <[0, 0, 0] : [4, 6, 5]> [map, map, fold] by @add
         ins(%a : (i, j, k) -> (i, k), %b : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         domain(d0 - d2 >= 0)
         wrap (%p: f32, %q: f32) { %r = arith.mulf %p, %q : f32  loom.yield %r : f32 } : (!a, !b) -> !c
  %f = loom.operation @part over <[0, 0, 0] : [4, 6, 3]> [map, map, fold] by @add
         ins(%a : (i, j, k) -> (i, k), %b : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%p: f32, %q: f32) { %r = arith.mulf %p, %q : f32  loom.yield %r : f32 } : (!a, !b) -> !c
  func.return %y, %z, %c, %d, %e, %f : !y, !y, !c, !c, !c, !c
}

// RUN: tapestry-opt %s -p 'loom-relayout{op=conv axes=1,1}' --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// RUN: tapestry-opt %s -p 'loom-relayout{axes=-1,0}' | filecheck %s --check-prefix=FIRST

// EQUAL: loom-relayout: @main: equal

// The channels of both inputs come last: they are copied, and the rows of what reads them follow.
// Where a read leaves the tensor it has the same fill.
// CHECK:      %[[W:.*]] = loom.operation @copy over <[0, 0, 0, 0] : [4, 2, 3, 3]> [map, map, map, map]
// CHECK-NEXT: ins(%w : (d0, d1, d2, d3) -> (d0, d3, d1, d2))
// CHECK:      %[[X:.*]] = loom.operation @copy over <[0, -1, 0, 0] : [2, 4, 6, 3]> [map, map, map, map]
// CHECK-NEXT: ins(%x : (d0, d1, d2, d3) -> (d0, d3, d1, d2))
// CHECK-NEXT: outs((d0, d1, d2, d3) -> (d0, d1, d2, d3))
// CHECK:      loom.operation @conv
// CHECK-NEXT: ins(%[[X]] : (d0, d1, d2, d3, d4, d5, d6) -> (d0, d2 + d5 - 2, 2 * d3 + d6 - 1, d4) clip 1.000000e+00 : f32, %[[W]] : (d0, d1, d2, d3, d4, d5, d6) -> (d1, d5, d6, d4))

// One input stays. What points select boxes of has the axes that its body counts.
// FIRST-NOT:  ins(%x :
// FIRST:      loom.operation @copy over <[0, 0, 0, 0] : [3, 2, 3, 4]>
// FIRST-NEXT: ins(%w : (d0, d1, d2, d3) -> (d3, d0, d1, d2))
// FIRST:      loom.operation @conv
// FIRST-NEXT: ins(%x :
// FIRST:      loom.operation @boxes
// FIRST-NEXT: ins(%t : (d0) -> (d0, 0) :> [1, 3], %t : (d0) -> (d0, 0) :> [1, 3])
!x = !loom.tensor<[0, 0, -1, 0] : [2, 3, 4, 6], f32>
!w = !loom.tensor<[0, 0, 0, 0] : [4, 3, 2, 3], f32>
!y = !loom.tensor<[0, 0, 0, 0] : [2, 4, 5, 3], f32>
!t = !loom.tensor<[0, 0] : [5, 3], f32>
!u = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !x, %w: !w, %t: !t) -> (!y, !u) {
  %y = loom.operation @conv over <[0, 0, 0, 0, 0, 0, 0] : [2, 4, 5, 3, 3, 2, 3]> [map, map, map, map, fold, fold, fold] by @add
         ins(%x : (n, m, i, j, c, k, l) -> (n, c, i + k - 2, 2 * j + l - 1) clip 1.0 : f32,
             %w : (n, m, i, j, c, k, l) -> (m, c, k, l))
         outs((n, m, i, j) -> (n, m, i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32  loom.yield %p : f32 } : (!x, !w) -> !y
  %u = loom.operation @boxes over <[0] : [5]> [map]
         ins(%t : (i) -> (i, 0) :> [1, 3], %t : (i) -> (i, 0) :> [1, 3]) outs((i) -> (i))
         wrap (%a: !loom.block<[1, 3], f32>, %b: !loom.block<[1, 3], f32>) {
           %z = arith.constant 0 : i64
           %o = arith.constant 2 : i64
           %r = loom.read %a[%z, %o] : f32
           loom.yield %r : f32
         } : (!t, !t) -> !u
  func.return %y, %u : !y, !u
}

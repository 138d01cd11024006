// RUN: tapestry-opt %s -p 'loom-relayout{op=second axes=0 writers=true}' --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// RUN: tapestry-opt %s -p 'loom-relayout{op=second axes=0}' | filecheck %s --check-prefix=COPIED

// EQUAL: loom-relayout: @main: equal

// The first operation writes what a copy would hold, and all that read it follow: one copy less.
// What is returned, or an argument, is copied.
// CHECK-LABEL: @main
// CHECK:      %[[A:.*]] = loom.operation @copy over <[0, 0] : [5, 3]>
// CHECK:      %[[T:.*]] = loom.operation @first over <[0, 0] : [3, 5]> [map, map]
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
// CHECK-NEXT: outs((d0, d1) -> (d1, d0))
// CHECK-NOT:  @copy
// CHECK:      loom.operation @second over <[0, 0] : [5, 3]> [map, fold] by @add
// CHECK-NEXT: ins(%[[T]] : (d0, d1) -> (d0, d1))
// CHECK:      loom.operation @third over <[0, 0] : [3, 5]> [map, map]
// CHECK-NEXT: ins(%[[T]] : (d0, d1) -> (d1, -d0 + 2), %x : (d0, d1) -> (d0, d1))
// CHECK:      %[[R:.*]] = loom.operation @returned
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
// CHECK-NEXT: outs((d0, d1) -> (d0, d1))

// COPIED-COUNT-3: loom.operation @copy
// COPIED-NOT:     loom.operation @copy
!x = !loom.tensor<[0, 0] : [3, 5], f32>
!y = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !x) -> (!y, !x, !y, !x, !y) {
  %t = loom.operation @first over <[0, 0] : [3, 5]> [map, map]
         ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32) { %r = arith.mulf %a, %a : f32  loom.yield %r : f32 } : (!x) -> !x
  %y = loom.operation @second over <[0, 0] : [5, 3]> [map, fold] by @add
         ins(%t : (j, i) -> (i, j)) outs((j) -> (j))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %z = loom.operation @third over <[0, 0] : [3, 5]> [map, map]
         ins(%t : (i, j) -> (2 - i, j), %x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %r = arith.subf %a, %b : f32  loom.yield %r : f32 } : (!x, !x) -> !x
  %u = loom.operation @second over <[0, 0] : [5, 3]> [map, fold] by @add
         ins(%x : (j, i) -> (i, j)) outs((j) -> (j))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %v = loom.operation @returned over <[0, 0] : [3, 5]> [map, map]
         ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32) { %r = arith.addf %a, %a : f32  loom.yield %r : f32 } : (!x) -> !x
  %w = loom.operation @second over <[0, 0] : [5, 3]> [map, fold] by @add
         ins(%v : (j, i) -> (i, j)) outs((j) -> (j))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  func.return %y, %z, %u, %v, %w : !y, !x, !y, !x, !y
}

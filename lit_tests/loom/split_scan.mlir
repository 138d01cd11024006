// RUN: tapestry-opt %s -p 'loom-split-scan{parts=5}' --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// RUN: tapestry-opt %s -p 'loom-split-scan{parts=5 least=600}' | filecheck %s --check-prefix=LEAST
// RUN: tapestry-opt %s -p 'loom-split-scan{parts=4 op=recurrence}' | filecheck %s --check-prefix=ONE
// RUN: not tapestry-opt %s -p 'loom-split-scan{parts=4 least=0}' 2>&1 | filecheck %s --check-prefix=NONE

// EQUAL: loom-split-scan: @main: equal
// EQUAL: loom-split-scan: @recurrences: equal
// NONE: error: least = 0 is not possible

// Of five parts at most, four divide the columns. All but the last fold first; a scan of what these
// fold to says what is before each part, and that is merged before what the part itself scans. What
// the scan counts in its domain alone is all that is folded.
// CHECK:      %[[TOTALS:.*]] = loom.operation @running_totals over <[0, 0, 0] : [3, 3, 256]> [map, map, fold] by @add
// CHECK-NEXT: ins(%{{.*}} : (d0, d1, d2) -> (d0, 256 * d1 + d2))
// CHECK-NEXT: outs((d0, d1) -> (d0, d1))
// CHECK-NEXT: domain(256 * d1 + d2 - 100 >= 0)
// CHECK:      %[[BEFORE:.*]] = loom.operation @running_before over <[0, 0] : [3, 3]> [map, scan] by @add
// CHECK-NEXT: ins(%[[TOTALS]] : (d0, d1) -> (d0, d1))
// CHECK:      loom.operation @running over <[0, 0, 0] : [3, 4, 256]> [map, map, scan] by @add
// CHECK-NEXT: ins(%{{.*}} : (d0, d1, d2) -> (d0, 256 * d1 + d2))
// CHECK-NEXT: extra(%{{.*}} : (d0, d1, d2) -> (d0), %[[BEFORE]] : (d0, d1, d2) -> (d0, d1 - 1) clip 0.0
// CHECK-NEXT: outs((d0, d1, d2) -> (d0, 256 * d1 + d2))
// CHECK:      unwrap (%[[S:.*]]: f32, %[[F:.*]]: f32, %[[B:.*]]: f32)
// CHECK-NEXT: %[[M:.*]] = arith.addf %[[B]], %[[S]]
// CHECK-NEXT: arith.mulf %[[M]], %[[F]]

// A state that would be rounded between is left alone.
// CHECK:      @narrow over <[0, 0] : [3, 1024]> [map, scan]

// Parts of at least 600 points are the whole.
// LEAST:      @running over <[0, 0] : [3, 1024]>

// Merges keep their order: what is before comes first. A part of a state that is the same in all rows
// is stored once. Before the first part is the monoid's zero.
// ONE:        @running over <[0, 0] : [3, 1024]>
// ONE:        %[[F:.*]], %[[V:.*]] = loom.operation @recurrence_totals over <[0, 0, 0] : [3, 3, 256]> [map, map, fold] by @affine
// ONE:        outs((d0, d1) -> (d1), (d0, d1) -> (d0, d1))
// ONE:        loom.operation @recurrence_before over <[0, 0] : [3, 3]> [map, scan] by @affine
// ONE-NEXT:   ins(%[[F]] : (d0, d1) -> (d1), %[[V]] : (d0, d1) -> (d0, d1))
// ONE:        clip 1.0{{.*}} clip 0.0
// ONE:        unwrap (%[[P:.*]]: f32, %[[Q:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32)
// ONE-DAG:    arith.mulf %[[B]], %[[P]]
!x = !loom.tensor<[0, 0] : [3, 1024], f32>
!w = !loom.tensor<[0] : [3], f32>
!h = !loom.tensor<[0, 0] : [3, 1024], f16>
func.func @main(%x: !x, %w: !w, %h: !h) -> (!x, !h) {
  %y = loom.operation @running over <[0, 0] : [3, 1024]> [map, scan] by @add
         ins(%x : (i, j) -> (i, j)) extra(%w : (i, j) -> (i)) outs((i, j) -> (i, j))
         domain(d1 - 100 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32, %f: f32) { %r = arith.mulf %s, %f : f32  loom.yield %r : f32 } : (!x, !w) -> !x
  %z = loom.operation @narrow over <[0, 0] : [3, 1024]> [map, scan] by @add
         ins(%h : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f16) { loom.yield %c : f16 } : (!h) -> !h
  func.return %y, %z : !x, !h
}
loom.monoid @affine zero [1.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %p = arith.mulf %a, %c : f32
  %q = arith.mulf %b, %c : f32
  %r = arith.addf %q, %d : f32
  loom.yield %p, %r : f32, f32
}
!d = !loom.tensor<[0] : [1024], f32>
func.func @recurrences(%x: !x, %d: !d) -> !x {
  %y = loom.operation @recurrence over <[0, 0] : [3, 1024]> [map, scan] by @affine
         ins(%d : (i, j) -> (j), %x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%f: f32, %c: f32) { loom.yield %f, %c : f32, f32 }
         unwrap (%s: f32, %t: f32) { loom.yield %t : f32 } : (!d, !x) -> !x
  func.return %y : !x
}

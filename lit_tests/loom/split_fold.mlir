// RUN: tapestry-opt %s -p 'loom-split-fold{parts=5}' --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// RUN: tapestry-opt %s -p 'loom-split-fold{parts=5 least=600}' | filecheck %s --check-prefix=LEAST
// RUN: tapestry-opt %s -p 'loom-group{ops=twice,total programs=1},loom-split-fold{parts=4 op=twice_total}' | filecheck %s --check-prefix=GROUP
// RUN: tapestry-opt %s -p 'loom-group{ops=weight,mean},loom-split-fold{parts=4 op=weight_mean}' --equal-each 2> %t.mean | filecheck %s --check-prefix=MEAN
// RUN: filecheck %s --check-prefix=SAME < %t.mean
// RUN: not tapestry-opt %s -p 'loom-split-fold{parts=0}' 2>&1 | filecheck %s --check-prefix=NONE

// EQUAL: loom-split-fold: @main: equal
// SAME: loom-split-fold: @mean: equal
// NONE: error: parts = 0 is not possible

// Of five parts at most, four divide the columns. The parts are points of a fold, whose states are
// stored and folded again; what finishes the fold goes there.
// CHECK:      %[[STATES:.*]] = loom.operation @total over <[0, 0, 0] : [3, 4, 256]> [map, map, fold] by @add
// CHECK-NEXT: ins(%{{.*}} : (d0, d1, d2) -> (d0, 256 * d1 + d2))
// CHECK-NEXT: outs((d0, d1) -> (d1, d0))
// CHECK-NOT:  unwrap
// CHECK:      loom.operation @total_merge over <[0, 0] : [3, 4]> [map, fold] by @add
// CHECK-NEXT: ins(%[[STATES]] : (d0, d1) -> (d1, d0))
// CHECK-NEXT: outs((d0) -> (d0))
// CHECK:      unwrap
// CHECK:      math.sqrt

// Parts of at least 600 points are the whole. A state that would be rounded between is left alone.
// LEAST:      @total over <[0, 0] : [3, 1024]>
// CHECK:      @narrow over <[0, 0] : [3, 1024]>

// A group is refined as a whole: what it keeps inside is written and read in the same places.
// GROUP:      loom.fused @twice_total over <[0, 0, 0] : [3, 4, 256]>
// GROUP-NEXT: aligned((d0, d1, d2) -> (d0, d1, d2), (d0, d1, d2) -> (d0, d1, d2))
// GROUP:      @twice over <[0, 0, 0] : [3, 4, 256]> [map, map, map]
// GROUP:      @total over <[0, 0, 0] : [3, 4, 256]> [map, map, fold] by @add
// GROUP:      loom.operation @total_merge over <[0, 0] : [3, 4]>

// Of a fold that finishes with another's sum, parts fold side by side all the same: neither is
// finished before they have merged, and they do that in one group.
// MEAN:       %[[SUMS:.*]], %[[SUMS2:.*]] = loom.fused @weight_mean over <[0, 0] : [4, 256]>
// MEAN:       @weight over <[0, 0] : [4, 256]> [map, fold] by @add
// MEAN-NOT:   unwrap
// MEAN:       loom.fused @weight_merge_mean_merge over <[0] : [4]>
// MEAN:       ins(%[[SUMS]], %[[SUMS2]])
// MEAN:       @mean_merge over <[0] : [4]> [fold] by @add
// MEAN-NEXT:  ins(
// MEAN-NEXT:  extra(
// MEAN:       arith.divf

// Merges that do not commute are of neighbours: the longest dimension is not split, but the first.
// CHECK:      loom.operation @recurrence over <[0, 0, 0] : [4, 128, 1024]> [map, fold, fold] by @affine
// CHECK:      loom.operation @recurrence_merge over <[0] : [4]> [fold] by @affine
!x = !loom.tensor<[0, 0] : [3, 1024], f32>
!y = !loom.tensor<[0] : [3], f32>
!xh = !loom.tensor<[0, 0] : [3, 1024], f16>
!yh = !loom.tensor<[0] : [3], f16>
func.func @main(%x: !x, %h: !xh) -> (!y, !yh) {
  %t = loom.operation @twice over <[0, 0] : [3, 1024]> [map, map]
         ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f32) { %r = arith.mulf %c, %c : f32  loom.yield %r : f32 } : (!x) -> !x
  %y = loom.operation @total over <[0, 0] : [3, 1024]> [map, fold] by @add
         ins(%t : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32) { %r = math.sqrt %s : f32  loom.yield %r : f32 } : (!x) -> !y
  %z = loom.operation @narrow over <[0, 0] : [3, 1024]> [map, fold] by @add
         ins(%h : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f16) { loom.yield %c : f16 } : (!xh) -> !yh
  func.return %y, %z : !y, !yh
}
!r = !loom.tensor<[0, 0] : [512, 1024], f32>
!s = !loom.tensor<[] : [], f32>
loom.monoid @affine zero [1.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %p = arith.mulf %a, %c : f32
  %q = arith.mulf %b, %c : f32
  %r = arith.addf %q, %d : f32
  loom.yield %p, %r : f32, f32
}
func.func @recurrences(%x: !r) -> !s {
  %y = loom.operation @recurrence over <[0, 0] : [512, 1024]> [fold, fold] by @affine
         ins(%x : (i, j) -> (i, j)) outs(() -> ())
         wrap (%c: f32) { %h = arith.constant 0.9 : f32  loom.yield %h, %c : f32, f32 }
         unwrap (%s: f32, %t: f32) { loom.yield %t : f32 } : (!r) -> !s
  func.return %y : !s
}
!v = !loom.tensor<[0] : [1024], f32>
func.func @mean(%x: !v) -> !s {
  %w = loom.operation @weight over <[0] : [1024]> [fold] by @add
         ins(%x : (i) -> (i)) outs(() -> ())
         wrap (%c: f32) { %r = arith.mulf %c, %c : f32  loom.yield %r : f32 } : (!v) -> !s
  %y = loom.operation @mean over <[0] : [1024]> [fold] by @add
         ins(%x : (i) -> (i)) extra(%w : () -> ()) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32, %t: f32) { %r = arith.divf %s, %t : f32  loom.yield %r : f32 }
         : (!v, !s) -> !s
  func.return %y : !s
}

// RUN: tapestry-opt %s --split-input-file -p loom-propagate --equal-each | filecheck %s
// RUN: not tapestry-opt %s --split-input-file -p 'loom-propagate{slack=2.0}' 2>&1 | filecheck %s --check-prefix SLACK

// SLACK: error: loom-propagate: slack must be from 0 to 1, not 2.0

// A whole number is a float as well.
// RUN: tapestry-opt %s --split-input-file -p 'loom-propagate{slack=1}' | filecheck %s --check-prefix WHOLE
// WHOLE-LABEL: @chain

// Forward to what reads, backward to what feeds, through a transpose; the fold stays whole.

!x = !loom.tensor<[0, 0] : [4, 6], f32>
!t = !loom.tensor<[0, 0] : [6, 4], f32>
!s = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @chain
// CHECK: @exp over
// CHECK{LITERAL}: shards <grid [[0, 1, 4], [0, 6]]>
// CHECK: @neg over
// CHECK{LITERAL}: shards <grid [[0, 6], [0, 1, 4]]>
// CHECK: @sum over
// CHECK{LITERAL}: shards <grid [[0, 1, 4], [0, 6]]>
func.func @chain(%x: !x) -> !s {
  %e = loom.operation @exp over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %t = loom.view %e : (d0, d1) -> (d1, d0) : !x -> !t
  %n = loom.operation @neg over <[0, 0] : [6, 4]> [map, map] ins(%t : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         shards <grid [[0, 6], [0, 1, 4]]>
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!t) -> !t
  %s = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add ins(%n : (d0, d1) -> (d1, d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!t) -> !s
  func.return %s : !s
}

// -----

// Rows that a reversal and a reshape mix: cuts follow where they are exact, and are left where not.

!x = !loom.tensor<[0] : [12], f32>
!r = !loom.tensor<[0, 0] : [3, 4], f32>
// CHECK-LABEL: @mixed
// CHECK: @back over
// CHECK{LITERAL}: shards <grid [[0, 4, 12]]>
// CHECK: @rows over
// CHECK{LITERAL}: shards <grid [[0, 2, 3], [0, 4]]>
// CHECK: @columns over
// CHECK-NOT: shards
// CHECK: func.return
func.func @mixed(%x: !x) -> (!r, !r) {
  %b = loom.operation @back over <[0] : [12]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (-d0 + 11))
         shards <grid [[0, 4, 12]]>
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %r = loom.operation @rows over <[0, 0] : [3, 4]> [map, map] ins(%b : (d0, d1) -> (4 * d0 + d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!x) -> !r
  %k = loom.operation @columns over <[0, 0] : [3, 4]> [map, map] ins(%b : (d0, d1) -> (d0 + 3 * d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!x) -> !r
  func.return %r, %k : !r, !r
}

// -----

// A window reads what a neighbour wrote: its halo moves, so it needs some slack. A fold is split
// only when asked to be.

// RUN: tapestry-opt %s --split-input-file -p 'loom-propagate{slack=0.3 folds=true}' --equal-each | filecheck %s --check-prefix HALO

!x = !loom.tensor<[0] : [14], f32>
!w = !loom.tensor<[0] : [12], f32>
!s = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @window
// CHECK: @square over
// CHECK-NOT: shards
// CHECK: @mean3 over
// CHECK{LITERAL}: shards <grid [[0, 6, 12], [0, 3]]>
// CHECK: @total over
// CHECK-NOT: shards
// CHECK: func.return
// HALO-LABEL: @window
// HALO: @square over
// HALO{LITERAL}: shards <grid [[0, 7, 14]]>
// HALO: @mean3 over
// HALO{LITERAL}: shards <grid [[0, 6, 12], [0, 3]]>
// HALO: @total over
// HALO{LITERAL}: shards <grid [[0, 6, 12]]>
func.func @window(%x: !x) -> !s {
  %q = loom.operation @square over <[0] : [14]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = arith.mulf %c, %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %m = loom.operation @mean3 over <[0, 0] : [12, 3]> [map, fold] by @add ins(%q : (d0, d1) -> (d0 + d1)) outs((d0) -> (d0))
         shards <grid [[0, 6, 12], [0, 3]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !w
  %t = loom.operation @total over <[0] : [12]> [fold] by @add ins(%m : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!w) -> !s
  func.return %t : !s
}

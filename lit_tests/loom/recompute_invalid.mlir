// RUN: not tapestry-opt %s -p 'loom-recompute{op=m}' 2>&1 | filecheck %s
// RUN: not tapestry-opt %s -p 'loom-recompute{op=none}' 2>&1 | filecheck %s --check-prefix=NONE

// NONE: error: loom-recompute: there is no operation @none outside of groups
!x = !loom.tensor<[0, 0] : [6, 6], f32>
func.func @main(%x: !x) -> (!x, !x) {
  // CHECK: recompute_invalid.mlir:[[LINE:[0-9]+]]:3: error: @m is not computed again: @m is no member of a group with @e: @e reads an inner tensor under two alignments
  %m = loom.operation @m over <[0, 0] : [6, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %e = loom.operation @e over <[0, 0] : [6, 6]> [map, map]
         ins(%m : (d0, d1) -> (d0, d1), %m : (d0, d1) -> (d1, d0)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %r = arith.addf %c, %d : f32 loom.yield %r : f32 } : (!x, !x) -> !x
  %f = loom.operation @f over <[0, 0] : [6, 6]> [map, map] ins(%m : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { %e = math.log %c : f32 loom.yield %e : f32 } : (!x) -> !x
  func.return %e, %f : !x, !x
}

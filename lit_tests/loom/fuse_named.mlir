// RUN: tapestry-opt %s -p 'loom-fuse{ops=e,s}' --equal-each | filecheck %s --check-prefix=PROLOGUE
// RUN: tapestry-opt %s -p 'loom-fuse{ops=n,s}' --equal-each | filecheck %s --check-prefix=KEEP
// RUN: tapestry-opt %s -p 'loom-fuse{ops=s,m}' --equal-each | filecheck %s --check-prefix=BESIDE
// RUN: not tapestry-opt %s -p 'loom-fuse{ops=s,t}' 2>&1 | filecheck %s --check-prefix=FOLDS
// RUN: not tapestry-opt %s -p 'loom-fuse{ops=s,w}' 2>&1 | filecheck %s --check-prefix=ONCE
// RUN: not tapestry-opt %s -p 'loom-fuse{ops=s,f}' 2>&1 | filecheck %s --check-prefix=NONE

// FOLDS: fuse_named.mlir:[[LINE:[0-9]+]]:3: error: @s and @t cannot be one operation: @t folds too, over what it reads by (d0) -> (d0): a fold of a fold is two operations
// ONCE: fuse_named.mlir:[[LINE:[0-9]+]]:3: error: @s and @w cannot be one operation: @w reads (d0, d1) -> (d0) over <[0, 0] : [4, 6]>, which does not visit each cell of what @s writes once
// NONE: error: loom-fuse: there are 0 operations @f outside of groups, not one
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[] : [], f32>
func.func @main(%x: !x) -> (!y, !y, !y, !z, !x) {
  // PROLOGUE:     loom.operation @e over
  // PROLOGUE:     loom.operation @e_s over
  // PROLOGUE:     loom.operation @m over
  // KEEP:         loom.operation @e over
  // KEEP-NEXT:    ins(%x
  // KEEP:         %s, %n = loom.operation @s_n over
  // BESIDE:       loom.operation @e over
  // BESIDE:       %s, %m = loom.operation @s_m over
  // BESIDE:       loom.operation @n over
  %e = loom.operation @e over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add ins(%e : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %m = loom.operation @m over <[0, 0] : [4, 6]> [map, fold] by @max ins(%e : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @n over <[0] : [4]> [map] ins(%s : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!y) -> !y
  %t = loom.operation @t over <[0] : [4]> [fold] by @add ins(%s : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!y) -> !z
  %w = loom.operation @w over <[0, 0] : [4, 6]> [map, map] ins(%s : (d0, d1) -> (d0))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!y) -> !x
  func.return %s, %m, %n, %t, %w : !y, !y, !y, !z, !x
}

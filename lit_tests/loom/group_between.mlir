// RUN: tapestry-opt %s -p 'loom-group{ops="exp","neg"}' --equal-each | filecheck %s

// What stands between members and needs them moves behind the group, in its order.

// CHECK: %{{.*}} = loom.fused @exp_neg
// CHECK: %s = loom.operation @sum
// CHECK: %r = loom.reshape %s
// CHECK: func.return

!x = !loom.tensor<[0, 0] : [4, 4], f32>
!s = !loom.tensor<[0] : [4], f32>
!r = !loom.tensor<[0, 0] : [2, 2], f32>
func.func @main(%x: !x) -> (!x, !r) {
  %e = loom.operation @exp over <[0, 0] : [4, 4]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @sum over <[0, 0] : [4, 4]> [map, fold] by @add
         ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !s
  %r = loom.reshape %s : !s -> !r
  %n = loom.operation @neg over <[0, 0] : [4, 4]> [map, map]
         ins(%e : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = arith.negf %c : f32  loom.yield %r : f32 } : (!x) -> !x
  func.return %n, %r : !x, !r
}

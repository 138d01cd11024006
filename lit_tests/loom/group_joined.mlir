// RUN: tapestry-opt %s -p 'loom-group{ops=a,b,both}' | filecheck %s

// @a and @b share nothing until @both reads what they write at one point: their dimensions are one,
// also where one of them counts from elsewhere.

!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[2, 0] : [6, 8], f32>
!r = !loom.tensor<[0] : [4], f32>

// CHECK:      loom.fused @a_b_both over <[0, 0] : [4, 8]>
// CHECK-NEXT: aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0 + 2, d1), (d0, d1) -> (d0, d1))
func.func @main(%x: !x, %y: !y) -> !r {
  %a = loom.operation @a over <[0, 0] : [4, 8]> [map, map] ins(%x : (i, j) -> (i, j))
         outs((i, j) -> (i, j))
         wrap (%c: f32) { %e = math.exp %c : f32  loom.yield %e : f32 } : (!x) -> !x
  %b = loom.operation @b over <[2, 0] : [6, 8]> [map, map] ins(%y : (i, j) -> (i, j))
         outs((i, j) -> (i, j))
         wrap (%c: f32) { %e = math.exp %c : f32  loom.yield %e : f32 } : (!y) -> !y
  %r = loom.operation @both over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%a : (i, j) -> (i, j), %b : (i, j) -> (i + 2, j)) outs((i) -> (i))
         wrap (%u: f32, %v: f32) { %p = arith.mulf %u, %v : f32  loom.yield %p : f32 } : (!x, !y) -> !r
  func.return %r : !r
}

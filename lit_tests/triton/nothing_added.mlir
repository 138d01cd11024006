// RUN: tapestry-opt %s -p 'loom-group{ops=s,t},loom-to-triton' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-group{ops=s,t},loom-to-triton{numerics=strict}' -t triton | filecheck %s --check-prefix STRICT

// An added zero stands in no way: the scale of a score is part of its exponential's.

// CHECK:      acc_2 = tl.dot(
// CHECK-NEXT: e = tl.fma(acc_2, 0.18033688, (r * -1.442695)[:, None])
// CHECK-NEXT: tl.sum(tl.exp2(e), axis=1)

// STRICT: tl.exp(acc_2 * 0.125 + 0.0 - r[:, None])

!x = !loom.tensor<[0, 0] : [256, 64], f16>
!s = !loom.tensor<[0, 0] : [256, 256], f32>
!r = !loom.tensor<[0] : [256], f32>
func.func @main(%x: !x, %y: !x, %r: !r) -> !r {
  %s = loom.operation @s over <[0, 0, 0] : [256, 256, 64]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %y : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f16, %b: f16) {
           %u = arith.extf %a : f16 to f32
           %v = arith.extf %b : f16 to f32
           %p = arith.mulf %u, %v : f32
           loom.yield %p : f32
         } : (!x, !x) -> !s
  %t = loom.operation @t over <[0, 0] : [256, 256]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j), %r : (i, j) -> (i)) outs((i) -> (i))
         wrap (%a: f32, %b: f32) {
           %scale = arith.constant 0.125 : f32
           %zero = arith.constant 0.0 : f32
           %scaled = arith.mulf %a, %scale : f32
           %added = arith.addf %scaled, %zero : f32
           %d = arith.subf %added, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32
         } : (!s, !r) -> !r
  func.return %t : !r
}

// Complex cells: constants, clips, domains, bodies, and folds by built-in and own monoids.

// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p loom-to-triton | filecheck %s --check-prefix TRITON

// Functions take and return pairs of real numbers.
// TRITON: func.func @main(%{{.*}}: memref<4x3x2xf32>) -> (memref<4x2xf32>, memref<4xf32>, memref<4x2xf32>)

!x = !loom.tensor<[0, 0] : [4, 3], complex<f32>>
!y = !loom.tensor<[0] : [4], complex<f32>>
!r = !loom.tensor<[0] : [4], f32>

// CHECK: loom.monoid @sum commutative
// CHECK-SAME: zero [#complex.number<:f32 0.000000e+00, 0.000000e+00> : complex<f32>]
loom.monoid @sum commutative zero [#complex.number<:f32 0.0, 0.0> : complex<f32>]
    merge (%a: complex<f32>, %b: complex<f32>) {
  %m = complex.add %a, %b : complex<f32>
  loom.yield %m : complex<f32>
}
func.func @main(%x: !x) -> (!y, !r, !y) {
  // CHECK: loom.constant [(1.0, -2.0), (0.5, 0.0), (-0.0, 1.0), (3.0, 4.0)]
  %k = loom.constant [(1.0, -2.0), 0.5, (-0.0, 1.0), (3, 4)] : !y
  %y = loom.operation @scaled over <[0, 0] : [4, 3]> [map, fold] by @sum
         ins(%x : (d0, d1) -> (d0, d1), %k : (d0, d1) -> (d0)) outs((d0) -> (d0))
         wrap (%c: complex<f32>, %w: complex<f32>) {
           // CHECK: complex.mul %c, %w : complex<f32>
           %f = complex.mul %c, %w : complex<f32>
           loom.yield %f : complex<f32>
         } : (!x, !y) -> !y
  // CHECK: clip #complex.number<:f32 3.000000e+00, -4.000000e+00> : complex<f32>
  %z = loom.operation @sizes over <[0] : [4]> [map]
         ins(%y : (d0) -> (d0 + 1) clip #complex.number<:f32 3.0, -4.0> : complex<f32>)
         outs((d0) -> (d0))
         wrap (%c: complex<f32>) {
           // CHECK: complex.constant [1.000000e+00 : f32, 2.000000e+00 : f32] : complex<f32>
           %o = complex.constant [1.0 : f32, 2.0 : f32] : complex<f32>
           %i = complex.im %o : complex<f32>
           // CHECK: complex.abs %c : complex<f32>
           %f = complex.abs %c : complex<f32>
           %g = arith.mulf %f, %i : f32
           loom.yield %g : f32
         } : (!y) -> !r
  %d = loom.operation @below over <[0, 0] : [4, 3]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain(d0 - d1 >= 0)
         wrap (%c: complex<f32>) {
           loom.yield %c : complex<f32>
         } : (!x) -> !y
  func.return %y, %z, %d : !y, !r, !y
}

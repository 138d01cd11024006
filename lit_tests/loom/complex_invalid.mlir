// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Operations of arith are on real numbers.
// CHECK: complex_invalid.mlir:10:12
// CHECK: this operation is not as its dialect says: Unexpected attribute complex<f32>
!y = !loom.tensor<[0] : [4], complex<f32>>
func.func @main(%x: !y) -> !y {
  %y = loom.operation @twice over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: complex<f32>) {
           %f = arith.addf %c, %c : complex<f32>
           loom.yield %f : complex<f32>
         } : (!y) -> !y
  func.return %y : !y
}

// -----

// CHECK: error: @largest: no monoid @max folds states of type (complex<f32>);
// CHECK-SAME: of complex numbers, which have no order, add and mul
!y = !loom.tensor<[0] : [4], complex<f32>>
!s = !loom.tensor<[] : [], complex<f32>>
func.func @main(%x: !y) -> !s {
  %y = loom.operation @largest over <[0] : [4]> [fold] by @max ins(%x : (d0) -> (d0)) outs(() -> ())
         wrap (%c: complex<f32>) {
           loom.yield %c : complex<f32>
         } : (!y) -> !s
  func.return %y : !s
}

// -----

// CHECK: complex<f16> is not an element type of a tensor
func.func @main(%x: !loom.tensor<[0] : [4], complex<f16>>) { func.return }

// -----

// CHECK: error: @angle: wrap holds complex.atan2, which no executor computes
!y = !loom.tensor<[0] : [4], complex<f32>>
func.func @main(%x: !y) -> !y {
  %y = loom.operation @angle over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: complex<f32>) {
           %f = complex.atan2 %c, %c : complex<f32>
           loom.yield %f : complex<f32>
         } : (!y) -> !y
  func.return %y : !y
}

// -----

// CHECK: error: @next: input 0 is clipped to 0.000000e+00 : f32, but its cells are complex<f32>
!y = !loom.tensor<[0] : [4], complex<f32>>
func.func @main(%x: !y) -> !y {
  %y = loom.operation @next over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0 + 1) clip 0.0 : f32) outs((d0) -> (d0))
         wrap (%c: complex<f32>) {
           loom.yield %c : complex<f32>
         } : (!y) -> !y
  func.return %y : !y
}

// -----

// CHECK: error: @sum: the zero (1j) is not the identity of merge
loom.monoid @sum commutative zero [#complex.number<:f32 0.0, 1.0> : complex<f32>]
    merge (%a: complex<f32>, %b: complex<f32>) {
  %m = complex.add %a, %b : complex<f32>
  loom.yield %m : complex<f32>
}

// -----

// CHECK: (1+2j) is not a number of type f32
func.func @main() {
  %n = loom.constant (1.0, 2.0) : !loom.tensor<[0] : [4], f32>
  func.return
}

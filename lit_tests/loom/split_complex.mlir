// Complex numbers become pairs: tensors, states, fills, blocks, kernels, merges, groups, constants.

// RUN: tapestry-opt %s -p loom-split-complex --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p loom-split-complex --split-input-file | tapestry-opt --split-input-file

// A monoid of complex numbers folds two parts; what functions take and return has them innermost.
// CHECK: loom.monoid @complex_mul commutative
// CHECK-SAME: zero [1.000000e+00 : f64, 0.000000e+00 : f64]
// CHECK-SAME: merge (%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64)
// CHECK: func.func @main(%x: !loom.tensor<[0, 3, 0] : [4, 5, 2], f64>) -> !loom.tensor<[0, 0] : [4, 2], f64>
// CHECK-DAG: %x_re = loom.view %x : (d0, d1) -> (d0, d1, 0)
// CHECK-DAG: %x_im = loom.view %x : (d0, d1) -> (d0, d1, 1)
// CHECK: %y_re, %y_im = loom.operation @product {{.*}} by @complex_mul
// CHECK-NEXT: ins(%x_re : (d0, d1) -> (d0, d1 + 2) clip 3.000000e+00 : f64, %x_im : (d0, d1) -> (d0, d1 + 2) clip -4.000000e+00 : f64)
// CHECK-NEXT: outs((d0) -> (d0), (d0) -> (d0))
// CHECK: wrap (%c_re: f64, %c_im: f64)
// CHECK-NEXT: arith.negf %c_im
// CHECK: {note = "kept"}
// CHECK: %y = loom.assemble %y_re at (d0) -> (d0, 0), %y_im at (d0) -> (d0, 1)
!x = !loom.tensor<[0, 3] : [4, 5], complex<f64>>
!y = !loom.tensor<[0] : [4], complex<f64>>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @product over <[0, 0] : [4, 3]> [map, fold] by @mul
         ins(%x : (d0, d1) -> (d0, d1 + 2) clip #complex.number<:f64 3.0, -4.0> : complex<f64>)
         outs((d0) -> (d0))
         wrap (%c: complex<f64>) {
           %d = complex.conj %c : complex<f64>
           loom.yield %d : complex<f64>
         } {note = "kept"} : (!x) -> !y
  func.return %y : !y
}

// -----

// Blocks are read twice; a real input and a real result stay one.
// CHECK: %y, %z_re, %z_im = loom.operation @lookup
// CHECK: wrap (%b_re: !loom.block<[4], f32>, %b_im: !loom.block<[4], f32>, %n_1: i64)
// CHECK: %v_re = loom.read %b_re[%n_1] : f32
// CHECK-NEXT: %v_im = loom.read %b_im[%n_1] : f32
// CHECK: loom.yield %v_im, %v_re, %v_im : f32, f32, f32
!x = !loom.tensor<[0] : [4], complex<f32>>
!n = !loom.tensor<[0] : [6], i64>
!y = !loom.tensor<[0] : [6], f32>
!z = !loom.tensor<[0] : [6], complex<f32>>
func.func @main(%x: !x, %n: !n) -> (!y, !z) {
  %y, %z = loom.operation @lookup over <[0] : [6]> [map]
             ins(%x : (d0) -> (0) :> [4], %n : (d0) -> (d0)) outs((d0) -> (d0), (d0) -> (d0))
             wrap (%b: !loom.block<[4], complex<f32>>, %n: i64) {
               %v = loom.read %b[%n] : complex<f32>
               %i = complex.im %v : complex<f32>
               loom.yield %i, %v : f32, complex<f32>
             } : (!x, !n) -> (!y, !z)
  func.return %y, %z : !y, !z
}

// -----

// Kernels, applications and merges take both parts over one selection.
// CHECK: loom.kernel @sum [fold] by @complex_add
// CHECK-NEXT: ins((d0) -> (d0), (d0) -> (d0))
// CHECK: %{{.*}}, %{{.*}} = loom.application @sum over <[0] : [2]> partial (%x_re <[0] : [2]>, %x_im <[0] : [2]>)
// CHECK: loom.merge @sum over <[] : []> states(%a_re, %a_im, %b_re, %b_im)
!x = !loom.tensor<[0] : [4], complex<f32>>
!s = !loom.tensor<[] : [], complex<f32>>
loom.kernel @sum [fold] by @add ins((d0) -> (d0)) outs(() -> ())
  wrap (%c: complex<f32>) { loom.yield %c : complex<f32> }
func.func @main(%x: !x) -> !s {
  %a = loom.application @sum over <[0] : [2]> partial (%x <[0] : [2]>) : (!x) -> !s
  %b = loom.application @sum over <[2] : [4]> partial (%x <[2] : [4]>) : (!x) -> !s
  %s = loom.merge @sum over <[] : []> states(%a, %b) : (!s, !s) -> !s
  func.return %s : !s
}

// -----

// CHECK: %k_re = loom.constant 1.0 : !loom.tensor<[0] : [4], f32>
// CHECK-NEXT: %k_im = loom.constant -2.0 : !loom.tensor<[0] : [4], f32>
// CHECK: %w = loom.constant file "w.npz" entry "w" : !loom.tensor<[0, 0] : [4, 2], f32>
// CHECK: %r_re = loom.reshape %k_re
// CHECK: %j_re = loom.assemble %k_re, %r_re
!x = !loom.tensor<[0] : [4], complex<f32>>
!w = !loom.tensor<[0] : [8], complex<f32>>
!m = !loom.tensor<[4] : [8], complex<f32>>
func.func @main() -> (!w, !x) {
  %k = loom.constant (1.0, -2.0) : !x
  %w = loom.constant file "w.npz" entry "w" : !x
  %r = loom.reshape %k : !x -> !m
  %j = loom.assemble %k, %r : !x, !m -> !w
  func.return %j, %w : !w, !x
}

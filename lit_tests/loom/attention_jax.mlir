// RUN: tapestry-opt %s -p weft-apply,loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse,loom-group > %t.mlir
// RUN: filecheck %s < %t.mlir
// RUN: tapestry equal %s %t.mlir | filecheck %s --check-prefix=EQUAL

// jax.nn.dot_product_attention, as jax.jit(f).lower() gives it: contractions with one unit dimension
// per group of heads, and a maximum that is maximum(-inf, m) of what was folded.
// EQUAL: equal (
// CHECK:      zero [0xff800000 : f32, 0.000000e+00 : f32, 0.000000e+00 : f32]
// CHECK-LABEL: @main
// CHECK-NEXT: loom.fused
// CHECK-NEXT: aligned
// CHECK-NEXT: ins(%q, %k, %v)
// CHECK:      [map, map, map, map, map, fold] by @add
// CHECK:      [map, map, map, map, map, fold] by @max
// CHECK:      loom.yield %{{.*}} : f32, f32, f32
// CHECK-NOT:  loom.operation
// CHECK:      func.return
!q = !loom.tensor<[0, 0, 0, 0] : [2, 8, 4, 16], f32>
!q5 = !loom.tensor<[0, 0, 0, 0, 0] : [2, 8, 4, 1, 16], f32>
!s = !loom.tensor<[0, 0, 0, 0, 0] : [2, 4, 8, 1, 8], f32>
!t = !loom.tensor<[0, 0, 0, 0, 0] : [1, 2, 4, 8, 8], f32>
!r = !loom.tensor<[0, 0, 0, 0] : [2, 4, 8, 1], f32>
!u = !loom.tensor<[0, 0, 0, 0] : [1, 2, 4, 8], f32>
!u1 = !loom.tensor<[0, 0, 0, 0, 0] : [1, 2, 4, 8, 1], f32>
!o = !loom.tensor<[0, 0, 0, 0, 0] : [2, 4, 16, 1, 8], f32>
!o1 = !loom.tensor<[0, 0, 0, 0, 0] : [1, 2, 8, 4, 16], f32>
func.func @main(%q: !q, %k: !q, %v: !q) -> !q {
  %0 = weft.apply @reshape(%q) {shape = [2, 8, 4, 1, 16]} : (!q) -> !q5
  %1 = weft.apply @einsum([%0, %k]) {equation = "abcde,agce->acbdg"} : (!q5, !q) -> !s
  %2 = loom.constant 0.25 : !s
  %3 = weft.apply @mul(%1, %2) : (!s, !s) -> !s
  %4 = weft.apply @max(%3) {axis = [4]} : (!s) -> !r
  %5 = loom.constant "0x000080FF" : !r
  %6 = weft.apply @maximum(%5, %4) : (!r, !r) -> !r
  %7 = weft.apply @transpose(%6) {perm = [3, 0, 1, 2]} : (!r) -> !u
  %8 = loom.view %7 : (a, b, c, d, e) -> (a, b, c, d) : (!u) -> !u1
  %9 = weft.apply @transpose(%3) {perm = [3, 0, 1, 2, 4]} : (!s) -> !t
  %10 = loom.view %8 : (a, b, c, d, e) -> (a, b, c, d, 0) : (!u1) -> !t
  %11 = weft.apply @sub(%9, %10) : (!t, !t) -> !t
  %12 = weft.apply @exp(%11) : (!t) -> !t
  %13 = weft.apply @sum(%12) {axis = [4]} : (!t) -> !u
  %14 = loom.view %13 : (a, b, c, d, e) -> (a, b, c, d) : (!u) -> !u1
  %15 = loom.view %14 : (a, b, c, d, e) -> (a, b, c, d, 0) : (!u1) -> !t
  %16 = weft.apply @div(%12, %15) : (!t, !t) -> !t
  %17 = weft.apply @einsum([%v, %16]) {equation = "abcd,eachb->acdeh"} : (!q, !t) -> !o
  %18 = weft.apply @transpose(%17) {perm = [3, 0, 4, 1, 2]} : (!o) -> !o1
  %19 = weft.apply @transpose(%18) {perm = [1, 2, 3, 0, 4]} : (!o1) -> !q5
  %20 = weft.apply @reshape(%19) {shape = [2, 8, 4, 16]} : (!q5) -> !q
  func.return %20 : !q
}

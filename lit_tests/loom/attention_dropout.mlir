// RUN: tapestry-opt %s -p default > %t.mlir
// RUN: filecheck %s < %t.mlir
// RUN: tapestry equal %s %t.mlir | filecheck %s --check-prefix=EQUAL

// Dropout of weights, by numbers that belong to a query and a key: they are drawn in the one pass.
// EQUAL: equal (
// CHECK-LABEL: @main
// CHECK-NEXT: loom.fused
// CHECK-NEXT: aligned
// CHECK-NEXT: ins(%q, %k, %seed, %v)
// CHECK:      loom.random
// CHECK:      loom.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK-NOT:  loom.operation
// CHECK:      func.return
!q = !loom.tensor<[0, 0] : [6, 4], f32>
!t = !loom.tensor<[0, 0] : [4, 6], f32>
!s = !loom.tensor<[0, 0] : [6, 6], f32>
!n = !loom.tensor<[] : [], i64>
func.func @main(%q: !q, %k: !q, %v: !q, %seed: !n) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !t
  %s = weft.apply @matmul(%q, %t) : (!q, !t) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %d = weft.apply @dropout(%p, %seed) {p = 0.25} : (!s, !n) -> !s
  %o = weft.apply @matmul(%d, %v) : (!s, !q) -> !q
  func.return %o : !q
}

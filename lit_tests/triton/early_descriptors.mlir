// RUN: tapestry-opt %s -p 'weft-apply,loom-simplify,loom-to-triton{schedules="y: M = 16, N = 16, K = 16, warps = 4, stages = 2, loads = descriptor"}' | filecheck %s

// What stores the product is described before the loop, though nothing needs it before its end.
// CHECK-LABEL: triton.kernel @y
// CHECK-COUNT-3: triton.describe
// CHECK:         scf.for
// CHECK-NOT:     triton.describe
// CHECK:         triton.store_block

!t = !loom.tensor<[0, 0] : [64, 64], f16>
func.func @main(%a: !t, %b: !t) -> !t {
  %y = weft.apply @matmul(%a, %b) : (!t, !t) -> !t
  func.return %y : !t
}

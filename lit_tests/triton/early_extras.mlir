// RUN: tapestry-opt %s -p 'default,loom-to-triton{schedules="p_y: M = 16, N = 16, K = 16, warps = 4, stages = 2, loads = descriptor, extras = early"}' | filecheck %s
// RUN: not tapestry-opt %s -p 'default,loom-to-triton{schedules="z: P = 16, warps = 4, stages = 2, extras = early"}' 2>&1 | filecheck %s --check-prefix NONE

// A residual that is loaded early is loaded by pointers, behind the descriptors (their fences would
// wait for it) and before the walk; what is made of the product needs it no sooner.
// CHECK-LABEL: triton.kernel @p_y
// CHECK-COUNT-3: triton.describe
// CHECK:         triton.load %r_ptr
// CHECK:         scf.for
// CHECK:         triton.dot
// CHECK-NOT:     triton.load
// CHECK:         arith.addf
// CHECK:         triton.store_block

// NONE: @z reads nothing at the end of a walk that could be early

!t = !loom.tensor<[0, 0] : [64, 64], f16>
func.func @main(%a: !t, %b: !t, %r: !t) -> (!t, !t) {
  %p = weft.apply @matmul(%a, %b) : (!t, !t) -> !t
  %y = weft.apply @add(%p, %r) : (!t, !t) -> !t
  %z = weft.apply @exp(%a) : (!t) -> !t
  func.return %y, %z : !t, !t
}

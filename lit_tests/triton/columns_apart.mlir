// RUN: tapestry-opt %s -p 'loom-group{ops=dx,dy},loom-to-triton' -t triton | filecheck %s

// Two products fold the same rows of %p; the columns of one are none of the other's. They lie on
// axes of their own, so that a program makes both for its rows, and no more than it has to.

!p = !loom.tensor<[0, 0] : [64, 128], f16>
!x = !loom.tensor<[0, 0] : [64, 32], f16>
!y = !loom.tensor<[0, 0] : [64, 16], f16>
!dx = !loom.tensor<[0, 0] : [128, 32], f16>
!dy = !loom.tensor<[0, 0] : [128, 16], f16>

// CHECK: def dx_dy(
// CHECK: n = tl.arange(0, BLOCK_N)
// CHECK: n1 = tl.arange(0, BLOCK_N1)
// CHECK: p = tl.load(p_ptr
// CHECK: s = tl.dot(p, {{.*}})
// CHECK: s_2 = tl.dot(p, {{.*}})
// CHECK: tl.store(dx_ptr + m[:, None] * 32 + n[None, :], s.to(tl.float16))
// CHECK: tl.store(dy_ptr + m[:, None] * 16 + n1[None, :], s_2.to(tl.float16))
// CHECK: BLOCK_N=32
// CHECK: BLOCK_N1=16
func.func @main(%p: !p, %x: !x, %y: !y) -> (!dx, !dy) {
  %dx = loom.operation @dx over <[0, 0, 0] : [128, 32, 64]> [map, map, fold] by @add
         ins(%p : (j, d, i) -> (i, j), %x : (j, d, i) -> (i, d)) outs((j, d) -> (j, d))
         wrap (%a: f16, %b: f16) {
           %u = arith.extf %a : f16 to f32
           %v = arith.extf %b : f16 to f32
           %r = arith.mulf %u, %v : f32
           loom.yield %r : f32
         } unwrap (%s: f32) { %r = arith.truncf %s : f32 to f16  loom.yield %r : f16 } : (!p, !x) -> !dx
  %dy = loom.operation @dy over <[0, 0, 0] : [128, 16, 64]> [map, map, fold] by @add
         ins(%p : (j, d, i) -> (i, j), %y : (j, d, i) -> (i, d)) outs((j, d) -> (j, d))
         wrap (%a: f16, %b: f16) {
           %u = arith.extf %a : f16 to f32
           %v = arith.extf %b : f16 to f32
           %r = arith.mulf %u, %v : f32
           loom.yield %r : f32
         } unwrap (%s: f32) { %r = arith.truncf %s : f32 to f16  loom.yield %r : f16 } : (!p, !y) -> !dy
  func.return %dx, %dy : !dx, !dy
}

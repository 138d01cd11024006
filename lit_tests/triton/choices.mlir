// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s

// What a load leaves out has its fill already: it is not chosen again.

!x = !loom.tensor<[0, 0] : [64, 300], f16>
!y = !loom.tensor<[0] : [64], f32>

// CHECK:      def total(
// CHECK:        x = tl.load(x_ptr + {{.*}}, mask=(k < 300)[None, :], other=0.0)
// CHECK-NEXT:   acc = tl.sum(x.to(tl.float32), axis=1)
// What is computed of cells is chosen.
// CHECK:      def squares(
// CHECK:        tl.where(k_mask[None, :], {{.*}}, 0.0)
// Lanes that are no points have to be no greatest.
// CHECK:      def greatest(
// CHECK:        tl.where(k_mask[None, :], {{.*}}, float("-inf"))
func.func @main(%x: !x) -> (!y, !y, !y) {
  %t = loom.operation @total over <[0, 0] : [64, 300]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f16) { %w = arith.extf %a : f16 to f32  loom.yield %w : f32 } : (!x) -> !y
  %s = loom.operation @squares over <[0, 0] : [64, 300]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f16) { %w = arith.extf %a : f16 to f32  %p = arith.mulf %w, %w : f32  loom.yield %p : f32 } : (!x) -> !y
  %g = loom.operation @greatest over <[0, 0] : [64, 300]> [map, fold] by @max
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f16) { %w = arith.extf %a : f16 to f32  loom.yield %w : f32 } : (!x) -> !y
  func.return %t, %s, %g : !y, !y, !y
}

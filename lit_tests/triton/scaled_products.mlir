// RUN: tapestry-opt %s -p 'loom-group{ops=scores,total},loom-to-triton' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-group{ops=scores,total},loom-to-triton{numerics=strict}' -t triton | filecheck %s --check-prefix STRICT

// Cells of 16 bits are multiplied as they are; what scales one of them scales the finished sum.

// CHECK:      x = tl.load(x_ptr
// CHECK:      y = tl.load(y_ptr
// CHECK-NEXT: acc_2 = tl.dot(x, y)
// CHECK-NEXT: acc_block = tl.sum(tl.exp2(acc_2 * 0.36067376)

// STRICT: product = x.to(tl.float32) * 0.5 * 0.5
// STRICT: tl.dot(
// STRICT: input_precision="ieee"

!x = !loom.tensor<[0, 0] : [128, 64], f16>
!s = !loom.tensor<[0, 0] : [128, 128], f32>
!t = !loom.tensor<[0] : [128], f32>
func.func @main(%x: !x, %y: !x) -> !t {
  %s = loom.operation @scores over <[0, 0, 0] : [128, 128, 64]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %y : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%x_: f16, %y_: f16) {
           %half = arith.constant 0.5 : f32
           %a = arith.extf %x_ : f16 to f32
           %b = arith.extf %y_ : f16 to f32
           %u = arith.mulf %a, %half : f32
           %v = arith.mulf %b, %half : f32
           %r = arith.mulf %u, %v : f32
           loom.yield %r : f32
         } : (!x, !x) -> !s
  %t = loom.operation @total over <[0, 0] : [128, 128]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%s_: f32) { %e = math.exp %s_ : f32  loom.yield %e : f32 } : (!s) -> !t
  func.return %t : !t
}

// RUN: tapestry-opt %s -p loom-group,loom-to-triton -t triton | filecheck %s

// One member folds the columns of %k, another one keeps them: in one block, so that a tile of it is
// loaded once and multiplied both ways. The tensor is one argument of the kernel.

// CHECK:      def scores_mixed(
// CHECK-NEXT:     q_ptr,
// CHECK-NEXT:     k_ptr,
// CHECK-NEXT:     y_ptr,
// CHECK-NEXT:     BLOCK_M: tl.constexpr,
// CHECK-NEXT:     BLOCK_C: tl.constexpr,
// CHECK-NEXT:     BLOCK_K: tl.constexpr,
// CHECK:      for k_start in range(
// CHECK:        k = tl.load(k_ptr +
// CHECK-NOT:    tl.load(
// CHECK:        [[E:[a-z0-9_]+]] = tl.exp2({{.*}}).to(tl.bfloat16)
// CHECK:        tl.dot([[E]], tl.trans(k), acc)

!q = !loom.tensor<[0, 0] : [4096, 64], bf16>
!s = !loom.tensor<[0, 0] : [4096, 4096], f32>
func.func @main(%q: !q, %k: !q) -> !q {
  %s = loom.operation @scores over <[0, 0, 0] : [4096, 4096, 64]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%q_: bf16, %k_: bf16) {
           %a = arith.extf %q_ : bf16 to f32
           %b = arith.extf %k_ : bf16 to f32
           %r = arith.mulf %a, %b : f32
           loom.yield %r : f32
         } : (!q, !q) -> !s
  %y = loom.operation @mixed over <[0, 0, 0] : [4096, 64, 4096]> [map, map, fold] by @add
         ins(%s : (i, d, j) -> (i, j), %k : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%s_: f32, %k_: bf16) {
           %e = math.exp %s_ : f32
           %b = arith.extf %k_ : bf16 to f32
           %r = arith.mulf %e, %b : f32
           loom.yield %r : f32
         } unwrap (%acc: f32) { %r = arith.truncf %acc : f32 to bf16  loom.yield %r : bf16 }
         : (!s, !q) -> !q
  func.return %y : !q
}

// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="window: P = 512, K = 1, unroll = 16"}' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="window: P = 512, K = 1, unroll = 16" numerics=strict}' -t triton | filecheck %s --check-prefix STRICT
// RUN: tapestry-opt %s -p 'loom-to-triton{device=h200}' -t triton | filecheck %s --check-prefix CHOSEN

// A program has points of one channel alone, whose weights are then the same for all of them. What a
// step adds to an address is added last: it is a number in the instruction that loads. Products of
// two 16-bit floats are exact, and are added in one operation; those of bfloat16 but for their range.

// CHECK:      @triton.jit
// CHECK:      pid_b = pid // blocks_p
// CHECK-NEXT: p = pid % blocks_p * BLOCK_P + tl.arange(0, BLOCK_P)
// CHECK:      for k_start in tl.static_range(0, 9, BLOCK_K):
// CHECK:      x = tl.load(
// CHECK-NEXT: x_ptr + pid_b * 1024 + p[:, None] - 33 + (d4 * 32 + d5[None, :]),
// CHECK:      w = tl.load(w_ptr + d1 * 9 + (k_start + k_lanes)[None, :])
// CHECK-NEXT: s = tl.fma(x.to(tl.float32), w.to(tl.float32), s)
// STRICT:     s += x.to(tl.float32) * w.to(tl.float32)
// CHOSEN:     for k_start in tl.static_range(0, 9, BLOCK_K):
// CHOSEN:     s = tl.fma(x.to(tl.float32), w.to(tl.float32), s)

!x = !loom.tensor<[0, 0, 0, 0] : [16, 24, 32, 32], bf16>
!w = !loom.tensor<[0, 0, 0] : [24, 3, 3], bf16>
func.func @main(%x: !x, %w: !w) -> !x {
  %y = loom.operation @window over <[0, 0, 0, 0, 0, 0] : [16, 24, 32, 32, 3, 3]> [map, map, map, map, fold, fold] by @add
         ins(%x : (n, c, i, j, k, l) -> (n, c, i + k - 1, j + l - 1) clip 0.0 : bf16,
             %w : (n, c, i, j, k, l) -> (c, k, l))
         outs((n, c, i, j) -> (n, c, i, j))
         wrap (%a: bf16, %b: bf16) {
           %l = arith.extf %a : bf16 to f32
           %r = arith.extf %b : bf16 to f32
           %p = arith.mulf %l, %r : f32
           loom.yield %p : f32
         }
         unwrap (%s: f32) { %h = arith.truncf %s : f32 to bf16  loom.yield %h : bf16 }
         : (!x, !w) -> !x
  func.return %y : !x
}

// RUN: tapestry-opt %s -p default,loom-to-triton -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'default,loom-to-triton{numerics=strict}' -t triton | filecheck %s --check-prefix STRICT

// Attention by its definition is one kernel: a program has some queries, walks the keys up to its
// last query, and keeps a maximum, a sum and a mixture of values relative to that maximum.
!x = !loom.tensor<[0, 0] : [256, 64], f16>
!s = !loom.tensor<[0, 0] : [256, 256], f16>

// Strict kernels round where the program does.
// STRICT: #   numerics: strict: 
// STRICT: x_2 = x * 0.125
// STRICT: chosen = tl.where(m[:, None] - k[None, :] >= 0, x_2, float("-inf"))
// STRICT: tl.exp(chosen - centre[:, None])
// STRICT-NOT: exp2

// CHECK-LABEL: def combine_max(a, b):
// CHECK-LABEL: @triton.jit
// CHECK:         q = tl.load(q_ptr + offsets{{.*}} + c[None, :])
// CHECK:         for k_start in range(0, tl.minimum(256, m_start + BLOCK_M), BLOCK_K):
// CHECK-NEXT:        k = k_start + k_lanes
// CHECK-NEXT:        k_2 = tl.load(k_ptr + c[:, None] + k[None, :] * 64)
// CHECK-NEXT:        x = tl.dot(q, k_2)
// CHECK-NEXT:        if m_start - (k_start + (BLOCK_K - 1)) >= 0:
// CHECK-NEXT:            chosen = x
// CHECK-NEXT:        else:
// CHECK-NEXT:            chosen = tl.where(m[:, None] - k[None, :] >= 0, x, float("-inf"))
// CHECK-NEXT:        o_weights_peak_block = tl.reduce(chosen, 1, combine_max)
// CHECK:             centre = tl.where(o_weights_peak_2 == float("-inf"), 0.0, o_weights_peak_2)
// CHECK-NEXT:        exp = tl.exp2((o_weights_peak - centre) * 1.442695)
// CHECK-NEXT:        exponent = tl.fma(chosen, 0.18033688, (centre * -1.442695)[:, None])
// CHECK-NEXT:        exp_2 = tl.exp2(exponent)
// CHECK-NEXT:        o_weights_total_block = tl.sum(exp_2, axis=1)
// CHECK:             v = tl.load(v_ptr + k[:, None] * 64 + n[None, :])
// CHECK-NEXT:        o_weights_peak = o_weights_peak_2
// CHECK-NEXT:        o_weights_total = o_weights_total * exp + o_weights_total_block
// CHECK:             tl.dot(exp_2.to(tl.float16), v,
// CHECK:         tl.store(o_ptr +
// CHECK-NOT:   @triton.jit
// CHECK-LABEL: def launch(
// CHECK:         grid = (
// CHECK-NOT:     grid = (
func.func @main(%q: !x, %k: !x, %v: !x) -> !x {
  %o = weft.apply @scaled_dot_product_attention(%q, %k, %v) {causal = true} : (!x, !x, !x) -> !x
  func.return %o : !x
}

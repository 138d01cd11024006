// RUN: tapestry-opt %s -p loom-to-triton -t triton --split-input-file | filecheck %s

// Golden Python: what a user reads and runs. Each case shows a kernel, and what of the host is new.

// A contraction: a matrix unit's tile, its shards in a table.

!x = !loom.tensor<[0, 0] : [64, 784], f32>
!w = !loom.tensor<[0, 0] : [784, 32], f32>
!b = !loom.tensor<[0] : [32], f32>
!y = !loom.tensor<[0, 0] : [64, 32], f32>
func.func @main(%x: !x, %w: !w, %b: !b) -> !y {
  %y = loom.operation @linear_relu over <[0, 0, 0] : [64, 32, 784]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
         extra(%b : (d0, d1) -> (d1))
         outs((d0, d1) -> (d0, d1))
         shards <grid [[0, 20, 64], [0, 32], [0, 784]]>
         wrap (%xe: f32, %we: f32) {
           %p = arith.mulf %xe, %we : f32
           loom.yield %p : f32
         }
         unwrap (%acc: f32, %be: f32) {
           %s = arith.addf %acc, %be : f32
           %z = arith.constant 0.0 : f32
           %r = arith.maximumf %s, %z : f32
           loom.yield %r : f32
         }
         : (!x, !w, !b) -> !y
  func.return %y : !y
}

// CHECK: # linear_relu, {{.*}}print.mlir:{{[0-9]+}}
// CHECK-NEXT: #   schedule: {{.*}}
// CHECK-NEXT: #   numerics: mixed: {{.*}}
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def linear_relu(
// CHECK-NEXT:     x_ptr,
// CHECK-NEXT:     w_ptr,
// CHECK-NEXT:     b_ptr,
// CHECK-NEXT:     y_ptr,
// CHECK-NEXT:     d0_start,
// CHECK-NEXT:     d0_end,
// CHECK-NEXT:     BLOCK_M: tl.constexpr,
// CHECK-NEXT:     BLOCK_N: tl.constexpr,
// CHECK-NEXT:     BLOCK_K: tl.constexpr,
// CHECK-NEXT: ):
// CHECK-NEXT:     pid = tl.program_id(0)
// CHECK-NEXT:     blocks_n = tl.cdiv(32, BLOCK_N)
// CHECK-NEXT:     n = pid % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
// CHECK-NEXT:     m = d0_start + pid // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M)
// CHECK-NEXT:     m_mask = m < d0_end
// CHECK-NEXT:     offsets = m[:, None] * 784
// CHECK-NEXT:     k_lanes = tl.arange(0, BLOCK_K)
// CHECK-NEXT:     acc = tl.full([BLOCK_M, BLOCK_N], 0.0, tl.float32)
// CHECK-NEXT:     for k_start in range(0, 784, BLOCK_K):
// CHECK-NEXT:         k = k_start + k_lanes
// CHECK-NEXT:         k_mask = k < 784
// CHECK-NEXT:         x = tl.load(x_ptr + offsets + k[None, :], mask=m_mask[:, None] & k_mask[None, :], other=0.0)
// CHECK-NEXT:         w = tl.load(w_ptr + k[:, None] * 32 + n[None, :], mask=k_mask[:, None], other=0.0)
// CHECK-NEXT:         acc = tl.dot(x, w, acc, input_precision="ieee")
// CHECK-NEXT:     b = tl.load(b_ptr + n[None, :])
// CHECK-NEXT:     r = tl.maximum(acc + b, 0.0, propagate_nan=tl.PropagateNan.ALL)
// CHECK-NEXT:     tl.store(y_ptr + m[:, None] * 32 + n[None, :], r, mask=m_mask[:, None])

// CHECK: LINEAR_RELU = dict(
// CHECK-NEXT:     BLOCK_M=64,
// CHECK-NEXT:     BLOCK_N=32,
// CHECK-NEXT:     BLOCK_K=32,
// CHECK-NEXT:     num_warps=4,
// CHECK-NEXT:     num_stages=3,
// CHECK-NEXT:     enable_fp_fusion=False,
// CHECK-NEXT: )
// CHECK-NEXT: SHARDS = (
// CHECK-NEXT:     # d0_start, d0_end
// CHECK-NEXT:     (0, 20),
// CHECK-NEXT:     (20, 64),
// CHECK-NEXT: )

// CHECK: def launch(x, w, b, *, allocate=torch_allocate):
// CHECK-NEXT:     """Run every kernel.
// CHECK-EMPTY:
// CHECK-NEXT:     Takes:
// CHECK-NEXT:         x: float32 [64, 784]
// CHECK-NEXT:         w: float32 [784, 32]
// CHECK-NEXT:         b: float32 [32]
// CHECK-NEXT:     Gives:
// CHECK-NEXT:         float32 [64, 32]
// CHECK-NEXT:     """
// CHECK-NEXT:     y = allocate((64, 32), "float32")
// CHECK-NEXT:     # index space <[0, 0, 0] : [64, 32, 784]> in shards <grid {{\[\[}}0, 20, 64], [0, 32], [0, 784]]>
// CHECK-NEXT:     for d0_start, d0_end in SHARDS:
// CHECK-NEXT:         grid = (
// CHECK-NEXT:             triton.cdiv(d0_end - d0_start, LINEAR_RELU["BLOCK_M"])
// CHECK-NEXT:             * triton.cdiv(32, LINEAR_RELU["BLOCK_N"]),
// CHECK-NEXT:         )
// CHECK-NEXT:         linear_relu[grid](x, w, b, y, d0_start, d0_end, **LINEAR_RELU)
// CHECK-NEXT:     return y

// -----

// Elementwise: cells are one run, functions that Triton lacks come along.

!x = !loom.tensor<[-1, 3] : [9, 103], bf16>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @squash over <[-1, 3] : [9, 103]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: bf16) {
           %t = math.tanh %a : bf16
           loom.yield %t : bf16
         }
         : (!x) -> !x
  func.return %y : !x
}

// CHECK: def copy_sign(size, sign):
// CHECK: @triton.jit
// CHECK-NEXT: def expm1(x):
// CHECK-NEXT:     """exp(x) - 1, exact near zero (W. Kahan)."""
// CHECK-NEXT:     u = tl.exp(x)
// CHECK-NEXT:     less = u - 1.0
// CHECK-NEXT:     near = tl.where(u == 1.0, x, less * (x / tl.log(u)))
// CHECK-NEXT:     return tl.where((less == -1.0) | (u == float("inf")), less, near)

// CHECK: # squash, {{.*}}print.mlir:{{[0-9]+}}
// CHECK-NEXT: #   schedule: {{.*}}
// CHECK-NEXT: #   numerics: mixed: {{.*}}
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def squash(x_ptr, y_ptr, BLOCK_P: tl.constexpr):
// CHECK-NEXT:     p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
// CHECK-NEXT:     p_mask = p < 1000
// CHECK-NEXT:     x = tl.load(x_ptr + p, mask=p_mask, other=0.0)
// CHECK-NEXT:     tl.store(y_ptr + p, tanh(x.to(tl.float32)).to(tl.bfloat16), mask=p_mask)

// CHECK: def launch(x, *, allocate=torch_allocate):
// CHECK-NEXT:     """Run every kernel.
// CHECK-EMPTY:
// CHECK-NEXT:     Takes:
// CHECK-NEXT:         x: bfloat16 [10, 100]
// CHECK-NEXT:     Gives:
// CHECK-NEXT:         bfloat16 [10, 100]
// CHECK-NEXT:     """
// CHECK-NEXT:     y = allocate((10, 100), "bfloat16")
// CHECK-NEXT:     grid = (triton.cdiv(1000, SQUASH["BLOCK_P"]),)
// CHECK-NEXT:     squash[grid](x, y, **SQUASH)
// CHECK-NEXT:     return y

// -----

// A fold that NaN must survive, folded apart: its state is kept in a buffer between shards.

!x = !loom.tensor<[0, 0] : [100, 300], f32>
!y = !loom.tensor<[0] : [100], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @peak over <[0, 0] : [100, 300]> [map, fold] by @max
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         shards <grid [[0, 100], [0, 128, 300]]>
         wrap (%a: f32) { loom.yield %a : f32 }
         : (!x) -> !y
  func.return %y : !y
}

// CHECK: @triton.jit
// CHECK-NEXT: def combine_max(a, b):
// CHECK-NEXT:     return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)

// CHECK: # peak, {{.*}}print.mlir:{{[0-9]+}}
// CHECK-NEXT: #   schedule: {{.*}}
// CHECK-NEXT: #   numerics: mixed: {{.*}}
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def peak(x_ptr, state_ptr, d1_start, d1_end, BLOCK_P: tl.constexpr, BLOCK_K: tl.constexpr):
// CHECK-NEXT:     p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
// CHECK-NEXT:     p_mask = p < 100
// CHECK-NEXT:     offsets = p[:, None] * 300
// CHECK-NEXT:     acc = tl.full([BLOCK_P, BLOCK_K], float("-inf"), tl.float32)
// CHECK-NEXT:     for k_start in range(d1_start, d1_end, BLOCK_K):
// CHECK-NEXT:         k = k_start + tl.arange(0, BLOCK_K)
// CHECK-NEXT:         k_mask = k < d1_end
// CHECK-NEXT:         x = tl.load(x_ptr + offsets + k[None, :], mask=p_mask[:, None] & k_mask[None, :], other=0.0)
// CHECK-NEXT:         chosen = tl.where(k_mask[None, :], x, float("-inf"))
// CHECK-NEXT:         acc = tl.maximum(acc, chosen, propagate_nan=tl.PropagateNan.ALL)
// CHECK-NEXT:     acc_2 = tl.reduce(acc, 1, combine_max)
// CHECK-NEXT:     state_before = tl.load(state_ptr + p, mask=p_mask, other=0.0)
// CHECK-NEXT:     value = tl.maximum(state_before, acc_2, propagate_nan=tl.PropagateNan.ALL)
// CHECK-NEXT:     tl.store(state_ptr + p, value, mask=p_mask)

// CHECK: # unwraps what peak folded
// CHECK-NEXT: #   schedule: {{.*}}
// CHECK-NEXT: #   numerics: mixed: {{.*}}
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def peak_finish(state_ptr, y_ptr, BLOCK_P: tl.constexpr):
// CHECK-NEXT:     p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
// CHECK-NEXT:     p_mask = p < 100
// CHECK-NEXT:     state = tl.load(state_ptr + p, mask=p_mask, other=0.0)
// CHECK-NEXT:     tl.store(y_ptr + p, state, mask=p_mask)

// CHECK: def launch(x, *, allocate=torch_allocate):
// CHECK-NEXT:     """Run every kernel.
// CHECK-EMPTY:
// CHECK-NEXT:     Takes:
// CHECK-NEXT:         x: float32 [100, 300]
// CHECK-NEXT:     Gives:
// CHECK-NEXT:         float32 [100]
// CHECK-NEXT:     """
// CHECK-NEXT:     y = allocate((100,), "float32")
// CHECK-NEXT:     y_state = allocate((100,), "float32", float("-inf"))
// CHECK-NEXT:     # index space <[0, 0] : [100, 300]> in shards <grid {{\[\[}}0, 100], [0, 128, 300]]>
// CHECK-NEXT:     for d1_start, d1_end in SHARDS:
// CHECK-NEXT:         grid = (triton.cdiv(100, PEAK["BLOCK_P"]),)
// CHECK-NEXT:         peak[grid](x, y_state, d1_start, d1_end, **PEAK)
// CHECK-NEXT:     grid = (triton.cdiv(100, PEAK_FINISH["BLOCK_P"]),)
// CHECK-NEXT:     peak_finish[grid](y_state, y, **PEAK_FINISH)
// CHECK-NEXT:     return y

// -----

// Sums are Triton's own; equal operations share a kernel; a reshape is the same buffer.

!x = !loom.tensor<[0, 0] : [8, 10], f32>
!y = !loom.tensor<[0] : [8], f32>
!r = !loom.tensor<[0, 0] : [2, 4], f32>
func.func @main(%x: !x, %z: !x) -> (!r, !y) {
  %y = loom.operation @sum over <[0, 0] : [8, 10]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f32) { loom.yield %a : f32 }
         : (!x) -> !y
  %r = loom.reshape %y : !y -> !r
  %v = loom.operation @total over <[0, 0] : [8, 10]> [map, fold] by @add
         ins(%z : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f32) { loom.yield %a : f32 }
         : (!x) -> !y
  func.return %r, %v : !r, !y
}

// CHECK: # sum, {{.*}}print.mlir:{{[0-9]+}}
// CHECK-NEXT: # total, {{.*}}print.mlir:{{[0-9]+}}
// CHECK-NEXT: #   schedule: {{.*}}
// CHECK-NEXT: #   numerics: mixed: {{.*}}
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def sum(x_ptr, y_ptr, BLOCK_P: tl.constexpr, BLOCK_K: tl.constexpr):
// CHECK-NEXT:     p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
// CHECK-NEXT:     tl.static_assert(BLOCK_K >= 10)
// CHECK-NEXT:     k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:     x = tl.load(x_ptr + p[:, None] * 10 + k[None, :], mask=(k < 10)[None, :], other=0.0)
// CHECK-NEXT:     acc = tl.sum(x, axis=1)
// CHECK-NEXT:     tl.store(y_ptr + p, acc)

// CHECK: def launch(x, z, *, allocate=torch_allocate):
// CHECK-NEXT:     """Run every kernel.
// CHECK-EMPTY:
// CHECK-NEXT:     Takes:
// CHECK-NEXT:         x: float32 [8, 10]
// CHECK-NEXT:         z: float32 [8, 10]
// CHECK-NEXT:     Gives:
// CHECK-NEXT:         float32 [2, 4], float32 [8]
// CHECK-NEXT:     """
// CHECK-NEXT:     y = allocate((8,), "float32")
// CHECK-NEXT:     grid = (triton.cdiv(8, SUM["BLOCK_P"]),)
// CHECK-NEXT:     sum[grid](x, y, **SUM)
// CHECK-NEXT:     r = y.reshape((2, 4))
// CHECK-NEXT:     v = allocate((8,), "float32")
// CHECK-NEXT:     grid = (triton.cdiv(8, SUM["BLOCK_P"]),)
// CHECK-NEXT:     sum[grid](z, v, **SUM)
// CHECK-NEXT:     return r, v

// -----

// Batches are a program each; a view that nothing folded is a copy.

!a = !loom.tensor<[0, 0, 0] : [3, 40, 50], f16>
!b = !loom.tensor<[0, 0, 0] : [3, 50, 60], f16>
!c = !loom.tensor<[0, 0, 0] : [3, 40, 60], f32>
!t = !loom.tensor<[0, 0] : [60, 40], f32>
func.func @main(%a: !a, %b: !b) -> !t {
  %c = loom.operation @product over <[0, 0, 0, 0] : [3, 40, 60, 50]> [map, map, map, fold] by @add
         ins(%a : (d0, d1, d2, d3) -> (d0, d1, d3), %b : (d0, d1, d2, d3) -> (d0, d3, d2))
         outs((d0, d1, d2) -> (d0, d1, d2))
         wrap (%l: f16, %r: f16) {
           %lw = arith.extf %l : f16 to f32
           %rw = arith.extf %r : f16 to f32
           %p = arith.mulf %lw, %rw : f32
           loom.yield %p : f32
         }
         : (!a, !b) -> !c
  %t = loom.view %c : (d0, d1) -> (2, d1, d0) : !c -> !t
  func.return %t : !t
}

// CHECK: # product, {{.*}}print.mlir:{{[0-9]+}}
// CHECK-NEXT: #   schedule: {{.*}}
// CHECK-NEXT: #   numerics: mixed: {{.*}}
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def product(
// CHECK-NEXT:     a_ptr,
// CHECK-NEXT:     b_ptr,
// CHECK-NEXT:     c_ptr,
// CHECK-NEXT:     BLOCK_M: tl.constexpr,
// CHECK-NEXT:     BLOCK_N: tl.constexpr,
// CHECK-NEXT:     BLOCK_K: tl.constexpr,
// CHECK-NEXT: ):
// CHECK-NEXT:     pid = tl.program_id(0)
// CHECK-NEXT:     blocks_n = tl.cdiv(60, BLOCK_N)
// CHECK-NEXT:     pid_bm = pid // blocks_n
// CHECK-NEXT:     blocks_m = tl.cdiv(40, BLOCK_M)
// CHECK-NEXT:     pid_b = pid_bm // blocks_m
// CHECK-NEXT:     n = pid % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
// CHECK-NEXT:     n_mask = n < 60
// CHECK-NEXT:     m = pid_bm % blocks_m * BLOCK_M + tl.arange(0, BLOCK_M)
// CHECK-NEXT:     m_mask = m < 40
// CHECK-NEXT:     tl.static_assert(BLOCK_K >= 50)
// CHECK-NEXT:     k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:     k_mask = k < 50
// CHECK-NEXT:     offsets = pid_b * 2000 + m[:, None] * 50 + k[None, :]
// CHECK-NEXT:     a = tl.load(a_ptr + offsets, mask=m_mask[:, None] & k_mask[None, :], other=0.0)
// CHECK-NEXT:     offsets_2 = pid_b * 3000 + k[:, None] * 60 + n[None, :]
// CHECK-NEXT:     b = tl.load(b_ptr + offsets_2, mask=k_mask[:, None] & n_mask[None, :], other=0.0)
// CHECK-NEXT:     acc = tl.dot(a, b)
// CHECK-NEXT:     offsets_3 = pid_b * 2400 + m[:, None] * 60 + n[None, :]
// CHECK-NEXT:     tl.store(c_ptr + offsets_3, acc, mask=m_mask[:, None] & n_mask[None, :])

// CHECK: # copy, {{.*}}print.mlir:{{[0-9]+}}
// CHECK-NEXT: #   schedule: {{.*}}
// CHECK-NEXT: #   numerics: mixed: {{.*}}
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def copy(c_ptr, t_ptr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
// CHECK-NEXT:     pid = tl.program_id(0)
// CHECK-NEXT:     blocks_n = tl.cdiv(40, BLOCK_N)
// CHECK-NEXT:     n = pid % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
// CHECK-NEXT:     m = pid // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M)
// CHECK-NEXT:     mask = (m < 60)[:, None] & (n < 40)[None, :]
// CHECK-NEXT:     c = tl.load(c_ptr + m[:, None] + n[None, :] * 60 + 4800, mask=mask, other=0.0)
// CHECK-NEXT:     tl.store(t_ptr + m[:, None] * 40 + n[None, :], c, mask=mask)

// CHECK: def launch(a, b, *, allocate=torch_allocate):
// CHECK-NEXT:     """Run every kernel.
// CHECK-EMPTY:
// CHECK-NEXT:     Takes:
// CHECK-NEXT:         a: float16 [3, 40, 50]
// CHECK-NEXT:         b: float16 [3, 50, 60]
// CHECK-NEXT:     Gives:
// CHECK-NEXT:         float32 [60, 40]
// CHECK-NEXT:     """
// CHECK-NEXT:     c = allocate((3, 40, 60), "float32")
// CHECK-NEXT:     grid = (
// CHECK-NEXT:         3
// CHECK-NEXT:         * triton.cdiv(40, PRODUCT["BLOCK_M"])
// CHECK-NEXT:         * triton.cdiv(60, PRODUCT["BLOCK_N"]),
// CHECK-NEXT:     )
// CHECK-NEXT:     product[grid](a, b, c, **PRODUCT)
// CHECK-NEXT:     t = allocate((60, 40), "float32")
// CHECK-NEXT:     grid = (
// CHECK-NEXT:         triton.cdiv(60, COPY["BLOCK_M"])
// CHECK-NEXT:         * triton.cdiv(40, COPY["BLOCK_N"]),
// CHECK-NEXT:     )
// CHECK-NEXT:     copy[grid](c, t, **COPY)
// CHECK-NEXT:     return t

// -----

// Operations that GPUs leave undefined are total; operations on constants are done.

!i = !loom.tensor<[0] : [1000], i32>
func.func @main(%x: !i, %y: !i) -> !i {
  %r = loom.operation @total over <[0] : [1000]> [map]
         ins(%x : (d0) -> (d0), %y : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%a: i32, %b: i32) {
           %c = arith.constant -7 : i32
           %two = arith.constant 2 : i32
           %three = arith.divsi %c, %two : i32
           %q = arith.divsi %a, %b : i32
           %h = arith.divui %q, %two : i32
           %v = arith.addi %h, %three : i32
           loom.yield %v : i32
         } : (!i, !i) -> !i
  func.return %r : !i
}

// CHECK: def total(
// CHECK:      mask = y == 0
// CHECK-NEXT:     mask_2 = y == -1
// CHECK-NEXT:     chosen = tl.where(mask_2, 0 - x, x // tl.where(mask | mask_2, 1, y))
// CHECK-NEXT:     h = (
// CHECK-NEXT:         (tl.where(mask, 0, chosen).to(tl.uint32) // tl.full([], 2, tl.int32).to(tl.uint32)).to(tl.int32)
// CHECK-NEXT:     )
// CHECK-NEXT:     tl.store(r_ptr + p, h - 3, mask=p_mask)

// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="sum: P = 8, K = 64, parts = 4"}' | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="sum: P = 8, K = 64, parts = 4"}' -t triton | filecheck %s --check-prefix PRINTED

// Programs share the fold of the same points, and memory merges what each folded. A second kernel unwraps.

// CHECK:      triton.kernel @sum(
// CHECK:      triton.store %{{.*}} to %state_ptr[%p] atomic "add"
// CHECK:      triton.kernel @sum_finish(
// CHECK:      %[[STATE:.*]] = triton.allocate fill 0.000000e+00
// CHECK-NEXT: triton.launch @sum(%x, %[[STATE]] : {{.*}} grid <[4, 8 by BLOCK_P]>
// CHECK-NEXT: triton.launch @sum_finish(%[[STATE]], %y

// PRINTED: 4 programs merge what each folded, in any order
// PRINTED: offsets_2 = tl.cdiv(tl.cdiv(1000, BLOCK_K), PARTS) * BLOCK_K
// PRINTED: for k_start in range(k_first, tl.minimum(1000, k_first + offsets_2), BLOCK_K):
// PRINTED: tl.atomic_add(state_ptr + p, {{.*}}, sem="relaxed")

!x = !loom.tensor<[0, 0] : [8, 1000], f32>
!y = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @sum over <[0, 0] : [8, 1000]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 }
         unwrap (%s: f32) { %r = math.sqrt %s : f32 loom.yield %r : f32 } : (!x) -> !y
  func.return %y : !y
}

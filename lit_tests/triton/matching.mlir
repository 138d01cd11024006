// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="added: P = 64, K = 32, visits = matching"}' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{device="h200"}' | filecheck %s --check-prefix CHOSEN

// Rows of a table are added up by number: a program goes to those whose number is one of its rows. Keys that
// are no row at all are never gone to.

// CHECK:      schedule: P = 64, K = 32, warps = 4, stages = 2, visits = matching
// CHECK:      row_first = (p_start // 24).to(tl.int64)
// CHECK-NEXT: row_last = ((p_start + BLOCK_P - 1) // 24).to(tl.int64)
// CHECK:      for k_start in range(0, 200, BLOCK_K):
// CHECK:          ids = tl.load(ids_ptr + k, mask=k_mask, other=0)
// CHECK-NEXT:     match = k_mask & (ids >= row_first) & (ids <= row_last)
// CHECK-NEXT:     matches = tl.sum(match.to(tl.int32), axis=0)
// CHECK:          for match_number in range(0, matches):
// CHECK-NEXT:         k_found = tl.min(tl.where(match & (k > k_before), k, 200), axis=0)
// CHECK-NEXT:         ids_2 = tl.load(ids_ptr + k_found)
// CHECK-NEXT:         x = tl.load(x_ptr + k_found * 24 + d1)
// CHECK:              acc_2 += tl.where(ids_2 == d0, x, 0.0)

// CHOSEN: visits = matching

!i = !loom.tensor<[0] : [200], i64>
!x = !loom.tensor<[0, 0] : [200, 24], f32>
!y = !loom.tensor<[0, 0] : [5000, 24], f32>
func.func @main(%ids: !i, %x: !x) -> !y {
  %y = loom.operation @added over <[0, 0, 0] : [5000, 24, 200]> [map, map, fold] by @add
         ins(%ids : (r, c, k) -> (k), %x : (r, c, k) -> (k, c)) outs((r, c) -> (r, c))
         wrap (%ids: i64, %x: f32) {
           %row = loom.index 0 : i64
           %same = arith.cmpi eq, %ids, %row : i64
           %none = arith.constant 0.0 : f32
           %chosen = arith.select %same, %x, %none : f32
           loom.yield %chosen : f32
         } : (!i, !x) -> !y
  func.return %y : !y
}

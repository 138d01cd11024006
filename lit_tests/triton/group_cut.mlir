// RUN: tapestry-opt %s -p 'weft-apply,loom-group{ops=s,o,y},loom-to-triton' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'weft-apply,loom-group{ops=s,o,y},loom-to-triton{schedules="o: M = 16, C = 16, K = 16, N = 16, warps = 2, stages = 1"}' | filecheck %s --check-prefix=GIVEN

// The last product folds heads, of which the first one makes each alone: all three are no kernel.
// The first two are, which spares more than the last two would: scores are not stored.

!q = !loom.tensor<[0, 0, 0] : [2, 64, 8], f32>
!k = !loom.tensor<[0, 0, 0] : [2, 8, 64], f32>
!s = !loom.tensor<[0, 0, 0] : [2, 64, 64], f32>
!w = !loom.tensor<[0, 0, 0] : [2, 8, 4], f32>
!y = !loom.tensor<[0, 0] : [64, 4], f32>

// CHECK: # o, {{.*}}group_cut.mlir:{{[0-9]+}}
// CHECK-NEXT: # apart from @s_o_y: a product of @s is no product of two tiles
// CHECK-NEXT: #   s
// CHECK-NEXT: #   o
// CHECK: def o(
// CHECK: # y, {{.*}}group_cut.mlir:{{[0-9]+}}
// CHECK-NEXT: # apart from @s_o_y: a product of @s is no product of two tiles
// CHECK: def y(
// CHECK: def launch(
// CHECK: o_out = allocate
// CHECK-NEXT: grid
// CHECK: o[grid](q, k, v, o_out
// CHECK: y[grid](o_out, w, y_out

// A group is named after its last member, and has the schedule that this one is given.
// GIVEN: triton.kernel @o(
// GIVEN-SAME: schedule <M = 16, C = 16, K = 16, N = 16, warps = 2, stages = 1>
func.func @main(%q: !q, %k: !k, %v: !q, %w: !w) -> !y {
  %s = weft.apply @matmul(%q, %k) : (!q, !k) -> !s
  %o = weft.apply @matmul(%s, %v) : (!s, !q) -> !q
  %y = loom.operation @y over <[0, 0, 0, 0] : [64, 4, 2, 8]> [map, map, fold, fold] by @add
         ins(%o : (i, e, h, d) -> (h, i, d), %w : (i, e, h, d) -> (h, d, e)) outs((i, e) -> (i, e))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32  loom.yield %p : f32 }
         : (!q, !w) -> !y
  func.return %y : !y
}

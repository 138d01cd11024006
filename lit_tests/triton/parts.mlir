// RUN: tapestry-opt %s -p 'loom-shard{grid=1,2,1},loom-expand-shards,loom-to-triton' -t triton | filecheck %s

// Parts of a state over their own dimensions: written once, and merged by a kernel over those.
!s = !loom.tensor<[0, 0] : [4, 6], f32>
!v = !loom.tensor<[0, 0] : [6, 8], f32>
!o = !loom.tensor<[0, 0] : [4, 8], f32>
!e = !loom.tensor<[0] : [4], f32>
loom.monoid @scaled commutative zero [0xFF800000 : f32, 0.0 : f32]
  merge (%m0: f32, %o0: f32, %m1: f32, %o1: f32) {
    %m = arith.maximumf %m0, %m1 : f32
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.cmpf oeq, %m, %low : f32
    %ref = arith.select %none, %zero, %m : f32
    %d0 = arith.subf %m0, %ref : f32
    %a0 = math.exp %d0 : f32
    %d1 = arith.subf %m1, %ref : f32
    %a1 = math.exp %d1 : f32
    %x0 = arith.mulf %o0, %a0 : f32
    %x1 = arith.mulf %o1, %a1 : f32
    %o = arith.addf %x0, %x1 : f32
    loom.yield %m, %o : f32, f32
  }

// The greatest score has no columns d, and neither has the tile that it is stored from.
// CHECK-LABEL: def weigh(
// CHECK: acc0 = tl.reduce(chosen, 1, combine_max)
// CHECK: acc1 = tl.dot(tl.exp(chosen - ref[:, None]), v, input_precision="ieee")
// CHECK: tl.store(out0_ptr + m, acc0, mask=m_mask)
// CHECK: tl.store(out1_ptr + m[:, None] * 8 + n[None, :], acc1,

// The sum is merged first, by what the maxima were.
// CHECK-LABEL: def weigh_merge(
// CHECK: state0 = tl.load(state0_ptr + d0)
// CHECK: state0_partial = tl.load(state0_partial_ptr + d0)
// CHECK: tl.store(state1_ptr_2 + p,
// CHECK-LABEL: def weigh_merge_2(
// CHECK: state0 = tl.load(state0_ptr + p)
// CHECK: state0_partial = tl.load(state0_partial_ptr + p)
// CHECK: tl.store(state0_ptr_2 + p, m)

// So is the output that leaves d out.
// CHECK-LABEL: def weigh_finish(
// CHECK: tl.store(out1_ptr + d0, state0, mask=p % 8 < 1)

// CHECK-LABEL: def launch(
// CHECK: weigh_merge[grid](
// CHECK: weigh_merge_2[grid](
// CHECK: weigh_merge[grid](
// CHECK: weigh_merge_2[grid](
// CHECK: weigh_finish[grid](
func.func @main(%s: !s, %v: !v) -> (!o, !e) {
  %o, %e = loom.operation @weigh over <[0, 0, 0] : [4, 6, 8]> [map, fold, map] by @scaled
         ins(%s : (i, j, d) -> (i, j), %v : (i, j, d) -> (j, d)) outs((i, d) -> (i, d), (i, d) -> (i))
         wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
         unwrap (%m: f32, %t: f32) { loom.yield %t, %m : f32, f32 } : (!s, !v) -> (!o, !e)
  func.return %o, %e : !o, !e
}

// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="sum: P = 1, K = 64, unroll = 4"}' -t triton | filecheck %s --check-prefix UNROLLED
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="sum: P = 1, K = 64, stages = 3, pipeline = loads"}' | filecheck %s --check-prefix IR
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="sum: P = 1, K = 64, stages = 3, pipeline = loads"}' -t triton | filecheck %s --check-prefix AHEAD

// A loop that multiplies nothing loads several steps together, or copies them ahead of time.

// UNROLLED: for k_start in tl.range(0, 1024, BLOCK_K, loop_unroll_factor=4):
// IR: scf.for
// IR: } {pipelined}
// AHEAD: schedule: P = 1, K = 64, warps = 4, stages = 3, pipeline = loads
// AHEAD: for k_start in tl.range(0, 1024, BLOCK_K, num_stages=3):

!x = !loom.tensor<[0, 0] : [8, 1024], f32>
!y = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @sum over <[0, 0] : [8, 1024]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  func.return %y : !y
}

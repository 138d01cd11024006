// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="pool: P = 64, K = 1, unroll = 16"}' | filecheck %s --check-prefix IR
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="pool: P = 64, K = 1, unroll = 16"}' -t triton | filecheck %s --check-prefix SOURCE
// RUN: tapestry-opt %s -p 'loom-to-triton{device=h100}' -t triton | filecheck %s --check-prefix CHOSEN
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="pool: P = 64, K = 1, unroll = 4"}' -t triton | filecheck %s --check-prefix LOOP

// A loop of no more steps than are unrolled is written out, and has no bounds to find: where each
// step reads is a number. Windows are folded so, each of whose points is a load of neighbours.

// IR: scf.for
// IR: } {unroll = 16 : i64, written_out}
// SOURCE-NOT: k_first
// SOURCE: for k_start in tl.static_range(0, 9, BLOCK_K):
// SOURCE-NOT: k < 9
// CHOSEN: schedule: P = {{[0-9]+}}, K = 1, {{.*}}, unroll = 16
// CHOSEN: for k_start in tl.static_range(0, 9, BLOCK_K):
// LOOP: for k_start in tl.range({{.*}}, BLOCK_K, loop_unroll_factor=4):

!x = !loom.tensor<[0, 0, 0] : [4096, 112, 112], f16>
!y = !loom.tensor<[0, 0, 0] : [4096, 56, 56], f16>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @pool over <[0, 0, 0, 0, 0] : [4096, 56, 56, 3, 3]> [map, map, map, fold, fold] by @max
         ins(%x : (n, i, j, k, l) -> (n, 2 * i + k - 1, 2 * j + l - 1) clip 0xfc00 : f16)
         outs((n, i, j) -> (n, i, j))
         domain(2 * d1 + d3 - 1 >= 0, 2 * d2 + d4 - 1 >= 0)
         wrap (%a: f16) { loom.yield %a : f16 } : (!x) -> !y
  func.return %y : !y
}

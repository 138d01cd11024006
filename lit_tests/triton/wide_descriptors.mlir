// RUN: tapestry-opt %s -p 'default,loom-to-triton{schedules="y: M = 128, N = 128, K = 64, warps = 8, stages = 3, loads = descriptor"}' -t triton | filecheck %s

// A tensor of more than 2^31 cells is moved in blocks as any other: rows and columns are counted in 32 bits,
// offsets in 64.

// CHECK:      x_blocks = tl.make_tensor_descriptor(
// CHECK-NEXT:     x_ptr,
// CHECK-NEXT:     shape=[1048576, 4096],
// CHECK:      x = x_blocks.load([m_start, {{.*}}])
// CHECK:      w = w_blocks.load([{{.*}}, n_start])
// CHECK:      y_blocks.store([m_start, n_start]

!x = !loom.tensor<[0, 0] : [1048576, 4096], f16>
!w = !loom.tensor<[0, 0] : [4096, 512], f16>
!y = !loom.tensor<[0, 0] : [1048576, 512], f16>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = weft.apply @matmul(%x, %w) : (!x, !w) -> !y
  func.return %y : !y
}

// RUN: tapestry-opt %s -p default,loom-to-triton -t triton | filecheck %s

// A convolution is a product of matrices: rows (b, y, x), columns the output's channels, folded
// along (c, ky, kx), in one dot. A filter's cells lie in memory as they are folded, and an image's
// rows as they are walked: each is one run. Padding is a mask of its own.

// CHECK:     m = {{.*}}tl.arange(0, BLOCK_M)
// CHECK:     for k_start in range(0, 576, BLOCK_K):
// CHECK-NEXT:     k = k_start + k_lanes
// CHECK:         w = tl.load(w_ptr + k[:, None] + offsets{{(_[0-9]+)?}})
// CHECK-NEXT:    acc = tl.dot(x, w, acc)
// CHECK-NOT:  tl.dot(

!x = !loom.tensor<[0, 0, 0, 0] : [8, 64, 56, 56], f16>
!w = !loom.tensor<[0, 0, 0, 0] : [128, 64, 3, 3], f16>
!y = !loom.tensor<[0, 0, 0, 0] : [8, 128, 56, 56], f16>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = weft.apply @conv2d(%x, %w) {padding = [1, 1]} : (!x, !w) -> !y
  func.return %y : !y
}

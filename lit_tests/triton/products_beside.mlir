// RUN: tapestry-opt %s -p 'weft-apply,loom-fuse{kinds=beside},loom-to-triton' | filecheck %s

// Two matrix products of one factor are one kernel, which loads a tile of it once for both dots.

// CHECK:      triton.kernel @a_b
// CHECK:        scf.for
// CHECK-COUNT-2: triton.dot
// CHECK-NOT:  triton.dot
// CHECK:      triton.launch @a_b
// CHECK-NOT:  triton.launch
!x = !loom.tensor<[0, 0] : [256, 512], f32>
!w = !loom.tensor<[0, 0] : [512, 128], f32>
!y = !loom.tensor<[0, 0] : [256, 128], f32>
func.func @main(%x: !x, %w: !w, %u: !w) -> (!y, !y) {
  %a = weft.apply @matmul(%x, %w) : (!x, !w) -> !y
  %b = weft.apply @matmul(%x, %u) : (!x, !w) -> !y
  func.return %a, %b : !y, !y
}

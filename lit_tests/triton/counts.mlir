// RUN: tapestry-opt %s -p 'default,loom-to-triton{tile=64}' -t triton | filecheck %s

// How many cells a mean is of follows from where the walk is: ones are neither added nor carried.

!x = !loom.tensor<[0, 0] : [8, 1000], f32>
!y = !loom.tensor<[0] : [8], f32>
// CHECK:      for k_start in range(0, 1000, BLOCK_K):
// CHECK:        n = tl.minimum(k_start + BLOCK_K, 1000).to(tl.float32)
// CHECK-NEXT:   n_before = tl.cast(k_start, tl.float32)
// CHECK-NOT:    1.0, 0.0
// CHECK:        tl.where(n_before == 0.0, 1.0, n_before))
// With a block it is not zero.
// CHECK-NEXT:   quotient_2 = tl.div_rn(y_center_2, n)
// CHECK-NOT:    acc
// CHECK:      tl.div_rn(y_center, 1000.0)
func.func @main(%x: !x) -> !y {
  %y = weft.apply @var(%x) {axis = -1} : (!x) -> !y
  func.return %y : !y
}

// RUN: tapestry-opt %s -p 'default,loom-to-triton{device=h100}' | filecheck %s

// A gate and what it gates are one fold of two products, whose sums share a program's registers.
// Where both are large, they are summed one after another: the first one is stored as its epilogue
// leaves it, in the type that it is rounded to, and read before the walk of the second one.

// CHECK-LABEL: triton.kernel @b_a_y_part(
// CHECK:         triton.dot
// CHECK-NOT:     triton.dot
// CHECK:         triton.cast {{.*}} -> tensor<{{.*}}xbf16>
// CHECK:         triton.store
// CHECK-LABEL: triton.kernel @b_a_y(
// CHECK-SAME:    programs = 132, loads = descriptor
// CHECK:         triton.dot
// CHECK-NOT:     triton.dot
// CHECK:         math.exp2
// CHECK-LABEL: func.func @main
// CHECK:         %[[UP:.*]] = triton.allocate : memref<8192x5632xbf16>
// CHECK-NEXT:    triton.launch @b_a_y_part(%x, %u, %[[UP]]
// CHECK:         triton.launch @b_a_y(%x, %g, %[[UP]]

// Of few rows memory is what takes long, and one walk reads the same.
// CHECK-LABEL: func.func @few
// CHECK:         triton.launch
// CHECK-NOT:     triton.launch
// CHECK:         func.return

!x = !loom.tensor<[0, 0] : [8192, 2048], bf16>
!f = !loom.tensor<[0, 0] : [16, 2048], bf16>
!w = !loom.tensor<[0, 0] : [2048, 5632], bf16>
!y = !loom.tensor<[0, 0] : [8192, 5632], bf16>
!z = !loom.tensor<[0, 0] : [16, 5632], bf16>
func.func @main(%x: !x, %g: !w, %u: !w) -> !y {
  %a = weft.apply @matmul(%x, %g) : (!x, !w) -> !y
  %b = weft.apply @matmul(%x, %u) : (!x, !w) -> !y
  %y = weft.apply @swiglu(%a, %b) : (!y, !y) -> !y
  func.return %y : !y
}
func.func @few(%x: !f, %g: !w, %u: !w) -> !z {
  %a = weft.apply @matmul(%x, %g) : (!f, !w) -> !z
  %b = weft.apply @matmul(%x, %u) : (!f, !w) -> !z
  %y = weft.apply @swiglu(%a, %b) : (!z, !z) -> !z
  func.return %y : !z
}

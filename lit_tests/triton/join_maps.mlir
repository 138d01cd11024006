// RUN: tapestry-opt %s -p 'default,loom-to-triton{device=h100}' | filecheck %s
// RUN: tapestry-opt %s -p 'default,loom-to-triton{device=h100 store=false}' | filecheck %s --check-prefix WITHIN

// A norm that a product would compute again for each block of columns is stored; by the kernel that
// folds the statistics of its rows, which has the rows when these are known.

// CHECK-COUNT-1: triton.launch @{{.*}}factor
// CHECK-COUNT-1: triton.launch @
// CHECK-NOT:     triton.launch @
// CHECK:         func.return

// WITHIN-LABEL: func.func @main
// WITHIN-NOT:    factor
// WITHIN:        func.return

!x = !loom.tensor<[0, 0] : [8192, 768], bf16>
!s = !loom.tensor<[0] : [768], bf16>
!w = !loom.tensor<[0, 0] : [768, 3072], bf16>
!y = !loom.tensor<[0, 0] : [8192, 3072], bf16>
func.func @main(%x: !x, %s: !s, %b: !s, %w: !w) -> !y {
  %n = weft.apply @layer_norm(%x, %s, %b) {eps = 1.0e-5} : (!x, !s, !s) -> !x
  %y = weft.apply @matmul(%n, %w) : (!x, !w) -> !y
  func.return %y : !y
}

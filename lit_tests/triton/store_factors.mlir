// RUN: tapestry-opt %s -p 'default,loom-to-triton{device=h100}' | filecheck %s
// RUN: tapestry-opt %s -p 'default,loom-to-triton{device=h100 store=false}' | filecheck %s --check-prefix=WITHIN
// RUN: tapestry-opt %s -p 'default,loom-to-triton' | filecheck %s --check-prefix=WITHIN

// A factor that the product would compute again for each block of columns is stored, in the type
// that it is multiplied in. With few columns it is computed where it is multiplied.
// CHECK-LABEL: func.func @many
// CHECK:         %[[S:.*]] = triton.allocate : memref<8192x4096xbf16>
// CHECK:         triton.launch @{{.*}}_factor{{.*}}%[[S]]
// CHECK:         triton.launch @{{.*}}%[[S]]
// CHECK-LABEL: func.func @few
// CHECK:         triton.launch @
// CHECK-NOT:     triton.launch @
// What each block of queries would compute again of the keys, too: a member of the group reads it.
// CHECK-LABEL: func.func @keys
// CHECK:         %[[K:.*]] = triton.allocate : memref<64x2048x64xbf16>
// CHECK:         triton.launch @{{.*}}_factor{{.*}}%[[K]]
// CHECK:         triton.launch @{{.*}}%[[K]]
// CHECK-NOT:     triton.launch @
// WITHIN-LABEL: func.func @many
// WITHIN:         triton.launch @
// WITHIN-NOT:     triton.launch @
// WITHIN:       func.func @few
// WITHIN-LABEL: func.func @keys
// WITHIN:         triton.launch @
// WITHIN-NOT:     triton.launch @

!x = !loom.tensor<[0, 0] : [8192, 4096], bf16>
!w = !loom.tensor<[0, 0] : [4096, 8192], bf16>
!y = !loom.tensor<[0, 0] : [8192, 8192], bf16>
func.func @many(%x: !x, %w: !w) -> !y {
  %e = weft.apply @gelu(%x) : (!x) -> !x
  %y = weft.apply @matmul(%e, %w) : (!x, !w) -> !y
  func.return %y : !y
}

!v = !loom.tensor<[0, 0] : [4096, 16], bf16>
!z = !loom.tensor<[0, 0] : [8192, 16], bf16>
func.func @few(%x: !x, %v: !v) -> !z {
  %e = weft.apply @gelu(%x) : (!x) -> !x
  %z = weft.apply @matmul(%e, %v) : (!x, !v) -> !z
  func.return %z : !z
}

!k = !loom.tensor<[0, 0, 0] : [64, 2048, 64], bf16>
func.func @keys(%q: !k, %k: !k, %v: !k) -> !k {
  %g = weft.apply @gelu(%k) : (!k) -> !k
  %y = weft.apply @scaled_dot_product_attention(%q, %g, %v) {causal = true} : (!k, !k, !k) -> !k
  func.return %y : !k
}

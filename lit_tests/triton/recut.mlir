// RUN: tapestry-opt %s -p 'default,loom-to-triton{device=h200}' | filecheck %s
// RUN: tapestry-opt %s -p 'default,loom-to-triton{device=h200 split=false}' | filecheck %s --check-prefix=WHOLE
// RUN: tapestry-opt %s -p 'default,loom-to-triton' | filecheck %s --check-prefix=WHOLE

// One kernel of all would take the first product again for each block of the second, in 8 programs:
// on a device what is between is stored. Attention as such stays one kernel.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: triton.launch @
// CHECK-LABEL: func.func @attention
// CHECK:         triton.launch @
// CHECK-NOT:     triton.launch @
// WHOLE-LABEL: func.func @main
// WHOLE:         triton.launch @
// WHOLE-NOT:     triton.launch @
// WHOLE:       func.func @attention

!x = !loom.tensor<[0, 0] : [512, 256], f32>
!w = !loom.tensor<[0, 0] : [256, 256], f32>
func.func @main(%x: !x, %u: !w, %v: !w, %w: !w) -> !x {
  %a = weft.apply @matmul(%x, %u) : (!x, !w) -> !x
  %b = weft.apply @softmax(%a) : (!x) -> !x
  %c = weft.apply @matmul(%b, %v) : (!x, !w) -> !x
  %d = weft.apply @softmax(%c) : (!x) -> !x
  %y = weft.apply @matmul(%d, %w) : (!x, !w) -> !x
  func.return %y : !x
}

!q = !loom.tensor<[0, 0, 0] : [32, 1024, 64], f32>
!k = !loom.tensor<[0, 0, 0] : [32, 64, 1024], f32>
!s = !loom.tensor<[0, 0, 0] : [32, 1024, 1024], f32>
func.func @attention(%q: !q, %k: !k, %v: !q) -> !q {
  %s = weft.apply @matmul(%q, %k) : (!q, !k) -> !s
  %p = weft.apply @softmax(%s) : (!s) -> !s
  %y = weft.apply @matmul(%p, %v) : (!s, !q) -> !q
  func.return %y : !q
}

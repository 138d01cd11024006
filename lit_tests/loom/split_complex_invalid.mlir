// RUN: tapestry-opt %s -p loom-split-complex --split-input-file --verify-diagnostics | filecheck %s

// CHECK: split_complex_invalid.mlir:7:3: error: @own is on complex numbers, which cannot be split there
// CHECK-NEXT: hint: give it real and imaginary parts as tensors of their own
!x = !loom.tensor<[0] : [4], complex<f32>>
func.func @main(%x: !x) -> !x {
  %y = loom.external @own over <[] : []> ins(%x : () -> (0) :> [4]) outs(() -> (0) :> [4]) : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK: error: weft.apply is on complex numbers, which cannot be split there
// CHECK-NEXT: hint: run weft-apply first
!x = !loom.tensor<[0] : [4], complex<f32>>
func.func @main(%x: !x) -> !x {
  %y = weft.apply @identity(%x) : (!x) -> !x
  func.return %y : !x
}

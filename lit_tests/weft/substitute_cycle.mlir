// Nothing that a rule produces may be computed from what it replaces: `matmul_side_by_side` matches
// two products of one matrix, but here the second is of the first, directly and through a relu.

// RUN: tapestry-opt %s -p 'weft-substitute{rules=lists only=matmul_side_by_side}' | filecheck %s

!x = !loom.tensor<[0, 0] : [2, 2], f32>

// CHECK-LABEL: @direct
// CHECK-NOT: @concat
// CHECK: weft.apply @matmul(%x, %v)
// CHECK-NEXT: weft.apply @matmul(%x, %p)
// CHECK-NEXT: func.return
func.func @direct(%x: !x, %v: !x) -> !x {
  %p = weft.apply @matmul(%x, %v) : (!x, !x) -> !x
  %q = weft.apply @matmul(%x, %p) : (!x, !x) -> !x
  func.return %q : !x
}

// CHECK-LABEL: @through
// CHECK-NOT: @concat
// CHECK: weft.apply @matmul(%x, %v)
// CHECK-NEXT: weft.apply @relu(%p)
// CHECK-NEXT: weft.apply @matmul(%x, %r)
// CHECK-NEXT: func.return
func.func @through(%x: !x, %v: !x) -> !x {
  %p = weft.apply @matmul(%x, %v) : (!x, !x) -> !x
  %r = weft.apply @relu(%p) : (!x) -> !x
  %q = weft.apply @matmul(%x, %r) : (!x, !x) -> !x
  func.return %q : !x
}

// CHECK-LABEL: @beside
// CHECK: weft.apply @concat
// CHECK: weft.apply @split
func.func @beside(%x: !x, %v: !x, %w: !x) -> (!x, !x) {
  %p = weft.apply @matmul(%x, %v) : (!x, !x) -> !x
  %q = weft.apply @matmul(%x, %w) : (!x, !x) -> !x
  func.return %p, %q : !x, !x
}

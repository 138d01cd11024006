// RUN: tapestry-opt %s -p loom-outline --split-input-file --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-outline,loom-inline --split-input-file --equal-each | filecheck %s --check-prefix BACK
// RUN: tapestry-opt %s -p loom-outline,weft-apply,loom-fuse,loom-inline --split-input-file --equal-each | filecheck %s --check-prefix FUSED

// Three layers are one function: weights are passed, and the residual is read twice within.

!x = !loom.tensor<[0, 0] : [4, 4], f32>
// CHECK:      func.func @layers
// CHECK-NEXT:   %y0 = func.call @repeated(%x, %w0)
// CHECK-NEXT:   %y1 = func.call @repeated(%y0, %w1)
// CHECK-NEXT:   %y2 = func.call @repeated(%y1, %w2)
// CHECK-NEXT:   func.return %y2
// CHECK:      func.func private @repeated(%x: !loom.tensor<[0, 0] : [4, 4], f32>, %w0: !loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0, 0] : [4, 4], f32> {
// CHECK-NEXT:   %h0 = weft.apply @matmul(%x, %w0)
// CHECK-NEXT:   %r0 = weft.apply @relu(%h0)
// CHECK-NEXT:   %y0 = weft.apply @add(%x, %r0)
// CHECK-NEXT:   func.return %y0

// BACK:         func.func @layers
// BACK-COUNT-3:   weft.apply @matmul
// BACK-NOT:     {{call|private}}

// FUSED:          func.func @layers
// FUSED-COUNT-3:    loom.operation @h0_r0_y0
// FUSED-NEXT:         ins(
// FUSED-NOT:        loom.operation
// FUSED:          func.return
func.func @layers(%x: !x, %w0: !x, %w1: !x, %w2: !x) -> !x {
  %h0 = weft.apply @matmul(%x, %w0) : (!x, !x) -> !x
  %r0 = weft.apply @relu(%h0) : (!x) -> !x
  %y0 = weft.apply @add(%x, %r0) : (!x, !x) -> !x
  %h1 = weft.apply @matmul(%y0, %w1) : (!x, !x) -> !x
  %r1 = weft.apply @relu(%h1) : (!x) -> !x
  %y1 = weft.apply @add(%y0, %r1) : (!x, !x) -> !x
  %h2 = weft.apply @matmul(%y1, %w2) : (!x, !x) -> !x
  %r2 = weft.apply @relu(%h2) : (!x) -> !x
  %y2 = weft.apply @add(%y1, %r2) : (!x, !x) -> !x
  func.return %y2 : !x
}

// -----

// What one copy returns, all do. The second of two runs has another size, and one of its own.

!x = !loom.tensor<[0, 0] : [4, 4], f32>
!z = !loom.tensor<[0, 0] : [4, 8], f32>
!w = !loom.tensor<[0, 0] : [8, 8], f32>
// CHECK:      func.func @stages
// CHECK-NEXT:   %[[A:.*]], %[[B:.*]] = func.call @repeated(%x, %a)
// CHECK-NEXT:   %[[C:.*]], %[[D:.*]] = func.call @repeated(%[[B]], %a)
// CHECK-NEXT:   %u = weft.apply @matmul(%[[D]], %c)
// CHECK-NEXT:   %{{.*}} = func.call @repeated_1(%u, %b)
// CHECK-NEXT:   %[[G:.*]] = func.call @repeated_1(
// CHECK-NEXT:   func.return %[[G]], %[[A]]
func.func @stages(%x: !x, %a: !x, %b: !w, %c: !z) -> (!z, !x) {
  %h0 = weft.apply @matmul(%x, %a) : (!x, !x) -> !x
  %y0 = weft.apply @relu(%h0) : (!x) -> !x
  %h1 = weft.apply @matmul(%y0, %a) : (!x, !x) -> !x
  %y1 = weft.apply @relu(%h1) : (!x) -> !x
  %u = weft.apply @matmul(%y1, %c) : (!x, !z) -> !z
  %h2 = weft.apply @matmul(%u, %b) : (!z, !w) -> !z
  %y2 = weft.apply @relu(%h2) : (!z) -> !z
  %h3 = weft.apply @matmul(%y2, %b) : (!z, !w) -> !z
  %y3 = weft.apply @relu(%h3) : (!z) -> !z
  func.return %y3, %h0 : !z, !x
}

// -----

// Alike, but wired otherwise: the first squares its sum, the second multiplies it with an input.

!x = !loom.tensor<[0] : [4], f32>
// CHECK:      func.func @wired
// CHECK-NOT:    func.call
// CHECK:        func.return
func.func @wired(%x: !x, %z: !x) -> !x {
  %a = weft.apply @add(%x, %z) : (!x, !x) -> !x
  %b = weft.apply @mul(%a, %a) : (!x, !x) -> !x
  %c = weft.apply @add(%b, %z) : (!x, !x) -> !x
  %d = weft.apply @mul(%c, %z) : (!x, !x) -> !x
  func.return %d : !x
}

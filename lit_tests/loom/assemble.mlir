// RUN: tapestry-opt %s --split-input-file | tapestry-opt --split-input-file | filecheck %s
// RUN: tapestry-opt %s --split-input-file --print-op-generic | tapestry-opt --split-input-file | filecheck %s

// Parts at strided positions: interleaved. A part without a placement stands where it is.
!h = !loom.tensor<[0] : [4], f32>
!w = !loom.tensor<[0] : [8], f32>
// CHECK-LABEL: @interleave
func.func @interleave(%a: !h, %b: !h) -> !w {
  // CHECK: %y = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0 + 1) : !loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32> -> !loom.tensor<[0] : [8], f32>
  %y = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0 + 1) : !h, !h -> !w
  func.return %y : !w
}

// -----

// Placements turn, reverse and stack; `at` the identity is left out.
!m = !loom.tensor<[0, 0] : [3, 2], f32>
!v = !loom.tensor<[0] : [3], f32>
!r = !loom.tensor<[0, 0] : [3, 3], f32>
// CHECK-LABEL: @stack
func.func @stack(%a: !m, %b: !v) -> !r {
  // CHECK: loom.assemble %a, %b at (d0) -> (-d0 + 2, 2) :
  %y = loom.assemble %a at (d0, d1) -> (d0, d1), %b at (d0) -> (2 - d0, 2) : !m, !v -> !r
  func.return %y : !r
}

// -----

// Exact at any size: nothing visits cells.
!h = !loom.tensor<[0, 0] : [1099511627776, 1099511627776], i8>
!w = !loom.tensor<[0, 0] : [1099511627776, 2199023255552], i8>
// CHECK-LABEL: @large
func.func @large(%a: !h, %b: !h) -> !w {
  // CHECK: loom.assemble %a at (d0, d1) -> (d0, 2 * d1 + 1), %b at (d0, d1) -> (d0, -2 * d1 + 2199023255550) :
  %y = loom.assemble %a at (d0, d1) -> (d0, 2 * d1 + 1),
                     %b at (d0, d1) -> (d0, 2199023255550 - 2 * d1) : !h, !h -> !w
  func.return %y : !w
}

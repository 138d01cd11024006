// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case breaks one rule of an assembly, and only that one.
!h = !loom.tensor<[0] : [4], f32>
!w = !loom.tensor<[0] : [8], f32>

// CHECK{LITERAL}: the assembly: its parts do not tile <[0] : [8]>: parts 0 and 1 overlap: both hold [0]
func.func @twice(%a: !h, %b: !h) -> !w {
  %y = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0) : !h, !h -> !w
  func.return %y : !w
}

// -----

!h = !loom.tensor<[0] : [4], f32>
!g = !loom.tensor<[0] : [3], f32>
!w = !loom.tensor<[0] : [8], f32>

// The size alone would not do: 4 + 3 + 1 cells, but one of them is outside.
// CHECK{LITERAL}: the assembly: its parts do not tile <[0] : [8]>: part 1 is placed on [2] : [9], which reaches outside [0] : [8]
func.func @outside(%a: !h, %b: !h) -> !w {
  %y = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0 + 2) : !h, !h -> !w
  func.return %y : !w
}

// -----

!h = !loom.tensor<[0] : [4], f32>
!g = !loom.tensor<[0] : [3], f32>
!w = !loom.tensor<[0] : [8], f32>

// CHECK{LITERAL}: they have 7 of its 8 cells; [7] is in none of them
func.func @gap(%a: !h, %b: !g) -> !w {
  %y = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0 + 1) : !h, !g -> !w
  func.return %y : !w
}

// -----

!m = !loom.tensor<[0, 0] : [2, 4], f32>
!w = !loom.tensor<[0] : [8], f32>

// CHECK{LITERAL}: part 0 is placed on some cell more than once
func.func @onto_itself(%a: !m) -> !w {
  %y = loom.assemble %a at (d0, d1) -> (d0 + d1) : !m -> !w
  func.return %y : !w
}

// -----

!h = !loom.tensor<[0] : [4], f32>
!w = !loom.tensor<[0] : [8], f32>

// CHECK{LITERAL}: part 0 of rank 1 is placed by (d0) -> (d0, 0) in [0] : [8], of rank 1
func.func @rank(%a: !h) -> !w {
  %y = loom.assemble %a at (d0) -> (d0, 0) : !h -> !w
  func.return %y : !w
}

// -----

!h = !loom.tensor<[0] : [4], f32>
!d = !loom.tensor<[0] : [4], f64>
!w = !loom.tensor<[0] : [8], f32>

// CHECK{LITERAL}: the assembly: it makes f32 cells of f64 cells
func.func @elements(%a: !h, %b: !d) -> !w {
  %y = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0 + 1) : !h, !d -> !w
  func.return %y : !w
}

// -----

!h = !loom.tensor<[0] : [4], f32>
!w = !loom.tensor<[0] : [8], f32>

// CHECK{LITERAL}: it has 2 parts, but 1 placements
func.func @count(%a: !h, %b: !h) -> !w {
  %y = "loom.assemble"(%a, %b) {placements = [#zspace.projection<(d0) -> (2 * d0)>]} : (!h, !h) -> !w
  func.return %y : !w
}

// -----

!h = !loom.tensor<[0] : [4], f32>
!w = !loom.tensor<[0] : [8], f32>

// CHECK{LITERAL}: a part is placed cell by cell, without a box
func.func @box(%a: !h, %b: !h) -> !w {
  %y = loom.assemble %a at (d0) -> (2 * d0) :> [2] : !h -> !w
  func.return %y : !w
}

// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case breaks one rule of a view, and only that one.
!x = !loom.tensor<[0] : [4], f32>
!v = !loom.tensor<[0] : [3], f32>
// CHECK{LITERAL}: the view: source 0 reads <[0] : [5]>, outside its tensor <[0] : [4]>
func.func @step(%x: !x) -> !v {
  %v = loom.view %x : (d0) -> (2 * d0) : !x -> !v
  func.return %v : !v
}

// -----

!x = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: the view: source 0 reads <[-3] : [1]>, outside its tensor <[0] : [4]>
func.func @reverse(%x: !x) -> !x {
  %v = loom.view %x : (d0) -> (-d0) : !x -> !x
  func.return %v : !x
}

// -----

!x = !loom.tensor<[0, 0] : [4, 4], f32>
!v = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: source 0 has rank 2, but its projection makes rank 1
func.func @diagonal(%x: !x) -> !v {
  %v = loom.view %x : (d0) -> (d0) : !x -> !v
  func.return %v : !v
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!v = !loom.tensor<[0, 0] : [2, 4], f32>
// CHECK{LITERAL}: source 0 is projected from 1 dimensions, but there are 2 here
func.func @broadcast(%x: !x) -> !v {
  %v = loom.view %x : (d0) -> (d0) : !x -> !v
  func.return %v : !v
}

// RUN: tapestry-opt %s --split-input-file | tapestry-opt --split-input-file | filecheck %s
// RUN: tapestry-opt %s --split-input-file --print-op-generic | tapestry-opt --split-input-file | filecheck %s
// RUN: tapestry-opt %s --split-input-file -p loom-simplify | filecheck %s --check-prefix=READ

// A slice with steps, one of them backwards: read directly, on a tensor that starts anywhere.
!x = !loom.tensor<[-2, 3] : [6, 9], f32>
!v = !loom.tensor<[0, 0] : [3, 2], f32>
// CHECK-LABEL: @slice
// READ-LABEL: @slice
func.func @slice(%x: !x) -> !v {
  // CHECK: loom.view %x : (d0, d1) -> (3 * d0 - 2, -2 * d1 + 8) :
  // READ: ins(%x : (d0, d1) -> (3 * d0 - 2, -2 * d1 + 8))
  %v = loom.view %x : (d0, d1) -> (3 * d0 - 2, 8 - 2 * d1) : !x -> !v
  %y = loom.operation @y over <[0, 0] : [3, 2]> [map, map] ins(%v : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  func.return %y : !v
}

// -----

// Broadcast, expanded and squeezed dimensions: a row that does not move, or a dimension unread.
!x = !loom.tensor<[0, 4] : [2, 5], f32>
!s = !loom.tensor<[0] : [2], f32>
!b = !loom.tensor<[7, 0, 0] : [9, 2, 1], f32>
// CHECK-LABEL: @broadcast
// READ-LABEL: @broadcast
func.func @broadcast(%x: !x) -> !b {
  // CHECK: %s = loom.view %x : (d0) -> (d0, 4) :
  // CHECK: loom.view %s : (d0, d1, d2) -> (d1) :
  // READ: loom.operation @y over <[7, 0, 0] : [9, 2, 1]>
  // READ-NEXT: ins(%x : (d0, d1, d2) -> (d1, 4))
  %s = loom.view %x : (d0) -> (d0, 4) : !x -> !s
  %b = loom.view %s : (d0, d1, d2) -> (d1) : !s -> !b
  %y = loom.operation @y over <[7, 0, 0] : [9, 2, 1]> [map, map, map] ins(%b : (d0, d1, d2) -> (d0, d1, d2))
         outs((d0, d1, d2) -> (d0, d1, d2)) wrap (%p: f32) { loom.yield %p : f32 } : (!b) -> !b
  func.return %y : !b
}

// -----

// A diagonal: two rows move together. Folded, it is a trace.
!x = !loom.tensor<[0, 2] : [4, 6], f32>
!d = !loom.tensor<[0] : [4], f32>
!s = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @diagonal
// READ-LABEL: @diagonal
func.func @diagonal(%x: !x) -> !s {
  // CHECK: loom.view %x : (d0) -> (d0, d0 + 2) :
  // READ: loom.operation @trace over <[0] : [4]> [fold] by @add
  // READ-NEXT: ins(%x : (d0) -> (d0, d0 + 2))
  %d = loom.view %x : (d0) -> (d0, d0 + 2) : !x -> !d
  %y = loom.operation @trace over <[0] : [4]> [fold] by @add ins(%d : (d0) -> (d0)) outs(() -> ())
         wrap (%p: f32) { loom.yield %p : f32 } : (!d) -> !s
  func.return %y : !s
}

// -----

// No cells at all: a view may lead anywhere.
!x = !loom.tensor<[0] : [4], f32>
!e = !loom.tensor<[9] : [9], f32>
// CHECK-LABEL: @empty
func.func @empty(%x: !x) -> !e {
  // CHECK: loom.view %x : (d0) -> (d0 + 50) :
  %e = loom.view %x : (d0) -> (d0 + 50) : !x -> !e
  func.return %e : !e
}

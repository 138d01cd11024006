// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case breaks one rule of blocks, and only that one.

// CHECK{LITERAL}: @y: input 0 reads <[0] : [5]>, outside its tensor <[0] : [4]>
!x = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0] : [3], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @y over <[0] : [3]> [map] ins(%x : (d0) -> (d0) :> [3]) outs((d0) -> (d0))
         wrap (%b: !loom.block<[3], f32>) {
           %i = loom.index 0 : i64
           %v = loom.read %b[%i] : f32
           loom.yield %v : f32
         } : (!x) -> !y
  func.return %y : !y
}

// -----

// CHECK{LITERAL}: @y: wrap takes (!loom.block<[3], f32>), but its cells are (!loom.block<[2], f32>)
!x = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0] : [3], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @y over <[0] : [3]> [map] ins(%x : (d0) -> (d0) :> [2]) outs((d0) -> (d0))
         wrap (%b: !loom.block<[3], f32>) {
           %i = loom.index 0 : i64
           %v = loom.read %b[%i] : f32
           loom.yield %v : f32
         } : (!x) -> !y
  func.return %y : !y
}

// -----

// CHECK{LITERAL}: @y: wrap uses a block in loom.yield; only loom.read takes cells of it
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (0) :> [4]) outs((d0) -> (d0))
         wrap (%b: !loom.block<[4], f32>) { loom.yield %b : !loom.block<[4], f32> } : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK{LITERAL}: the block has rank 1, but 2 indices
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (0) :> [4]) outs((d0) -> (d0))
         wrap (%b: !loom.block<[4], f32>) {
           %i = loom.index 0 : i64
           %v = loom.read %b[%i, %i] : f32
           loom.yield %v : f32
         } : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK{LITERAL}: only a block is read; it is an argument of the body
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %v = loom.read %c[] : f32 loom.yield %v : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK{LITERAL}: the block holds f32, not f64
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (0) :> [4]) outs((d0) -> (d0))
         wrap (%b: !loom.block<[4], f32>) {
           %i = loom.index 0 : i64
           %v = loom.read %b[%i] : f64
           loom.yield %v : f64
         } : (!x) -> !x
  func.return %y : !x
}

// -----

// An index is i64, as coordinates are.
// CHECK: %i
!x = !loom.tensor<[0] : [4], i32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0), %x : (d0) -> (0) :> [4])
         outs((d0) -> (d0))
         wrap (%i: i32, %b: !loom.block<[4], i32>) {
           %v = loom.read %b[%i] : i32
           loom.yield %v : i32
         } : (!x, !x) -> !x
  func.return %y : !x
}

// -----

// CHECK{LITERAL}: @f: wrap takes !loom.block<[3], f32>, but (d0) -> (0) :> [4] selects !loom.block<[4], f32>
loom.kernel @f [map] ins((d0) -> (0) :> [4]) outs((d0) -> (d0))
  wrap (%b: !loom.block<[3], f32>) {
    %i = loom.index 0 : i64
    %v = loom.read %b[%i] : f32
    loom.yield %v : f32
  }

// -----

// Only inputs select boxes.
// CHECK{LITERAL}: source 0 is one box of shape [2] per point; only inputs of operations and kernels may select more than a cell
!x = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0] : [2], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.view %x : (d0) -> (d0) :> [2] : !x -> !y
  func.return %y : !y
}

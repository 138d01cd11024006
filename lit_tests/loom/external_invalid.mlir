// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK{LITERAL}: @sort: input 0 selects <[0, 0] : [8, 5]>, outside its tensor <[0, 0] : [8, 4]>
func.func @main(%x: !loom.tensor<[0, 0] : [8, 4], f32>) -> !loom.tensor<[0, 0] : [8, 4], f32> {
  %y = loom.external @sort over <[0] : [8]>
         ins(%x : (d0) -> (d0, 0) :> [1, 5]) outs((d0) -> (d0, 0) :> [1, 4])
         : (!loom.tensor<[0, 0] : [8, 4], f32>) -> !loom.tensor<[0, 0] : [8, 4], f32>
  func.return %y : !loom.tensor<[0, 0] : [8, 4], f32>
}

// -----

// CHECK{LITERAL}: @sort: output 1 has 32 cells, but 24 are written
func.func @main(%x: !loom.tensor<[0, 0] : [8, 4], f32>) -> !loom.tensor<[0, 0] : [8, 4], f32> {
  %y, %z = loom.external @sort over <[0] : [8]>
         ins(%x : (d0) -> (d0, 0) :> [1, 4])
         outs((d0) -> (d0, 0) :> [1, 4], (d0) -> (d0, 0) :> [1, 3])
         : (!loom.tensor<[0, 0] : [8, 4], f32>)
           -> (!loom.tensor<[0, 0] : [8, 4], f32>, !loom.tensor<[0, 0] : [8, 4], f32>)
  func.return %y : !loom.tensor<[0, 0] : [8, 4], f32>
}

// -----

// CHECK{LITERAL}: @sort: output 0 has cells that are written more than once
func.func @main(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32> {
  %y = loom.external @sort over <[0] : [4]>
         ins(%x : (d0) -> (d0) :> [2]) outs((d0) -> (d0) :> [2])
         : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32>
  func.return %y : !loom.tensor<[0] : [8], f32>
}

// -----

// CHECK{LITERAL}: @sort: the shards do not tile the index space <[0] : [8]>
func.func @main(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32> {
  %y = loom.external @sort over <[0] : [8]>
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         shards <ranges [[0] : [4], [3] : [8]]>
         : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32>
  func.return %y : !loom.tensor<[0] : [8], f32>
}

// -----

// CHECK{LITERAL}: @sort: input 0 is projected from 1 dimensions to 2, but the index space has 1 and the tensor 1
func.func @main(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32> {
  %y = loom.external @sort over <[0] : [8]>
         ins(%x : (d0) -> (d0, 0)) outs((d0) -> (d0))
         : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32>
  func.return %y : !loom.tensor<[0] : [8], f32>
}

// -----

// CHECK{LITERAL}: @sort: parameter by: affine_map<(d0) -> (d0)> is no number, truth value, string, dtype or list
func.func @main(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32> {
  %y = loom.external @sort over <[0] : [8]>
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0)) parameters {by = affine_map<(d0) -> (d0)>}
         : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32>
  func.return %y : !loom.tensor<[0] : [8], f32>
}

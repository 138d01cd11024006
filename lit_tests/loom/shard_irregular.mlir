// A partition whose boxes of the kept dimensions overlap: all states merge over the whole, however
// the output is written.

// RUN: tapestry-opt %s --split-input-file -p loom-expand-shards --equal-each | filecheck %s

!x = !loom.tensor<[0, 0] : [4, 6], f32>
// CHECK: loom.merge @rows over <[0] : [4]> states(%{{[^)]*}}) : {{.*}} -> !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @rows over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         shards <ranges [[0, 0] : [2, 3], [2, 0] : [4, 3], [0, 3] : [1, 6], [1, 3] : [4, 6]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

!x = !loom.tensor<[0, 0, 0] : [2, 2, 6], f32>
// CHECK: loom.merge @folded over <[0, 0] : [2, 2]> states(%{{[^)]*}}) : {{.*}} -> !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @folded over <[0, 0, 0] : [2, 2, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (2 * d0 + d1))
         shards <ranges [[0, 0, 0] : [2, 1, 3], [0, 1, 0] : [2, 2, 3], [0, 0, 3] : [2, 2, 6]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

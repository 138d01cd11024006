// A tensor without cells has no reads: whatever a projection would select of it lies nowhere.

// RUN: tapestry-opt %s -p loom-expand-shards | filecheck %s

// CHECK: %y = loom.application @flip over <[0] : [0]> (%x <[-1] : [-1]>)
// CHECK: loom.view
func.func @main(%x: !loom.tensor<[0] : [0], f32>) -> !loom.tensor<[0] : [0], f32> {
  %y = loom.operation @flip over <[0] : [0]> [map] ins(%x : (d0) -> (-d0 - 1)) outs((d0) -> (d0))
         shards <grid [[0, 0]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [0], f32>) -> !loom.tensor<[0] : [0], f32>
  %z = loom.view %y : (d0) -> (-d0 - 1) : !loom.tensor<[0] : [0], f32> -> !loom.tensor<[0] : [0], f32>
  func.return %z : !loom.tensor<[0] : [0], f32>
}

// Shards of nothing write nothing, even where a row of the output mixes dimensions.

// CHECK-LABEL: func.func @rows
// CHECK-COUNT-4: loom.application
func.func @rows(%x: !loom.tensor<[0, 0] : [0, 6], f32>) -> !loom.tensor<[0, 0] : [0, 6], f32> {
  %y = loom.operation @mixed over <[0, 0, 0] : [0, 2, 3]> [map, map, map]
         ins(%x : (d0, d1, d2) -> (d0, 3 * d1 + d2)) outs((d0, d1, d2) -> (d0, 3 * d1 + d2))
         shards <grid [[0, 0], [0, 1, 2], [0, 2, 3]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0, 0] : [0, 6], f32>) -> !loom.tensor<[0, 0] : [0, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [0, 6], f32>
}

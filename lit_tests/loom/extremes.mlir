// Sizes and positions at the ends: nothing counts cells, and what cannot be is refused where it is written.

// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics -p loom-simplify,loom-fuse,'loom-shard{shards=4093}' | filecheck %s

// 2^40 x 2^40 cells.
// CHECK: loom.operation @big_big over <[0, 0] : [1099511627776, 1099511627776]>
// CHECK: shards <grid
func.func @main(%x: !loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32>) -> !loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32> {
  %t = loom.view %x : (d0, d1) -> (d1, d0) : !loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32> -> !loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32>
  %y = loom.operation @big over <[0, 0] : [1099511627776, 1099511627776]> [map, map]
         ins(%t : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32>) -> !loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32>
  %z = loom.operation @big over <[0, 0] : [1099511627776, 1099511627776]> [map, map]
         ins(%y : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32>) -> !loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32>
  func.return %z : !loom.tensor<[0, 0] : [1099511627776, 1099511627776], f32>
}

// -----

// More shards than points are as many as there are points, however large the number is.
// CHECK: shards <grid {{\[\[}}0, 1, 2, 3, 4]]>
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @small over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK: 9223372036854775808 does not fit a 64-bit coordinate
func.func @main(%x: !loom.tensor<[0] : [9223372036854775808], f32>) { func.return }

// -----

// CHECK: 18446744073709551616 does not fit a 64-bit coordinate
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [1], f32> {
  %y = loom.view %x : (d0) -> (18446744073709551616 * d0) : !loom.tensor<[0] : [4], f32> -> !loom.tensor<[0] : [1], f32>
  func.return %y : !loom.tensor<[0] : [1], f32>
}

// -----

// CHECK: -9223372036854775809 does not fit a 64-bit coordinate
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @far over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[-9223372036854775809, 4]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

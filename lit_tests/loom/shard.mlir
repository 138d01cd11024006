// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1,2}' --equal-each | filecheck %s --check-prefix GRID
// RUN: tapestry-opt %s -p 'loom-shard{shards=4}' --equal-each | filecheck %s --check-prefix FOUR
// RUN: tapestry-opt %s -p 'loom-shard{shards=24 op=y}' --equal-each | filecheck %s --check-prefix FOLD
// RUN: tapestry-opt %s -p 'loom-shard{partition="ranges [[0, 0, 0] : [4, 2, 6], [0, 2, 0] : [4, 3, 6]]"}' --equal-each | filecheck %s --check-prefix RANGES
// RUN: not tapestry-opt %s -p 'loom-shard{grid=2,2}' 2>&1 | filecheck %s --check-prefix RANK
// RUN: not tapestry-opt %s -p 'loom-shard{grid=5,1,1}' 2>&1 | filecheck %s --check-prefix MANY
// RUN: not tapestry-opt %s -p 'loom-shard{partition="grid [[0, 3], [0, 3], [0, 6]]"}' 2>&1 | filecheck %s --check-prefix GAP
// RUN: not tapestry-opt %s -p 'loom-shard{partition="gird [[0, 3]]"}' 2>&1 | filecheck %s --check-prefix TEXT
// RUN: not tapestry-opt %s -p 'loom-shard{shards=2 op=z}' 2>&1 | filecheck %s --check-prefix NAME
// RUN: not tapestry-opt %s -p 'loom-shard{shards=2 grid=1,1,1}' 2>&1 | filecheck %s --check-prefix BOTH

// RUN: tapestry-opt %s -p 'loom-shard{bytes=120}' --equal-each | filecheck %s --check-prefix BYTES
// RUN: not tapestry-opt %s -p 'loom-shard{bytes=0}' 2>&1 | filecheck %s --check-prefix NONE

// NONE: error: loom-shard: bytes must be at least 1, not 0
// A whole run touches 96 + 72 + 48 bytes, half of the rows 48 + 72 + 24, a quarter 24 + 72 + 12.
// BYTES{LITERAL}: shards <grid [[0, 1, 2, 3, 4], [0, 3], [0, 6]]>
// GRID{LITERAL}: shards <grid [[0, 2, 4], [0, 3], [0, 3, 6]]>
// FOUR{LITERAL}: shards <grid [[0, 2, 4], [0, 2, 3], [0, 6]]>
// Map dimensions first; what they cannot take, the fold does.
// FOLD{LITERAL}: shards <grid [[0, 2, 3, 4], [0, 2, 3], [0, 2, 4, 5, 6]]>
// RANGES: shards <ranges {{\[\[}}0, 0, 0] : [4, 2, 6], [0, 2, 0] : [4, 3, 6]]>
// RANK: shard.mlir:[[LINE:[0-9]+]]:3: error: @y has 3 index dimensions, but the grid has 2 counts
// MANY: error: @y cannot be split so:
// GAP: error: @y cannot be split so: the shards do not tile the index space
// TEXT: error: the partition 'gird {{.*}}' is not well formed
// TEXT-NEXT: hint: write "grid
// NAME: error: loom-shard: there is no operation or group @z
// BOTH: error: loom-shard takes exactly one of shards, grid, partition and bytes

!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 3], f32>
!y = !loom.tensor<[0, 0] : [4, 3], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = loom.operation @y over <[0, 0, 0] : [4, 3, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
         outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 }
         : (!x, !w) -> !y
  func.return %y : !y
}

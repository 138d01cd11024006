// RUN: tapestry-opt %s | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p loom-simplify,loom-fuse --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-ungroup --equal-each | filecheck %s --check-prefix APART
// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1}' --equal-each | filecheck %s --check-prefix SHARD
// RUN: tapestry-opt %s -p 'loom-shard{shards=8}' --equal-each | filecheck %s --check-prefix MOST
// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1},loom-ungroup' --equal-each | filecheck %s --check-prefix CUTS
// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1},loom-expand-shards' --equal-each | filecheck %s --check-prefix EXPAND
// RUN: not tapestry-opt %s -p 'loom-shard{grid=1,2}' 2>&1 | filecheck %s --check-prefix FOLD

!x = !loom.tensor<[0, 0] : [4, 8], f32>
!r = !loom.tensor<[0] : [4], f32>

// Members are aligned with the group; inner tensors stay inside. Passes leave members alone.
// CHECK:      %y = loom.fused @softmax over <[0, 0] : [4, 8]>
// CHECK-NEXT:     aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
// CHECK-NEXT:     ins(%x)
// CHECK-NEXT:     group (%a: !loom.tensor<[0, 0] : [4, 8], f32>) {
// CHECK:            %e = loom.operation @exp
// CHECK:            %s = loom.operation @sum
// CHECK:            %d = loom.operation @div
// CHECK:            loom.yield %d

// APART-NOT:  loom.fused
// APART:      %e = loom.operation @exp
// APART:          ins(%x : (d0, d1) -> (d0, d1))
// APART:      %s = loom.operation @sum
// APART:      %y = loom.operation @div
// APART:      func.return %y

// A dimension that a member folds cannot be cut; one that all map can.
// SHARD: shards <grid [[0, 2, 4], [0, 8]]>
// MOST: shards <grid [[0, 1, 2, 3, 4], [0, 8]]>
// FOLD: fused.mlir:[[LINE:[0-9]+]]:3: error: @softmax cannot be split so: dimension 1 cannot be cut: @sum folds along it

// CUTS: loom.operation @exp
// CUTS: shards <grid [[0, 2, 4], [0, 8]]>
// CUTS: loom.operation @sum
// CUTS: shards <grid [[0, 2, 4], [0, 8]]>

// EXPAND: %[[A:.*]] = loom.fused @softmax over <[0, 0] : [2, 8]>
// EXPAND:   %e = loom.operation @exp over <[0, 0] : [2, 8]>
// EXPAND:   loom.operation @sum over <[0, 0] : [2, 8]>
// EXPAND:   -> !loom.tensor<[0] : [2], f32>
// EXPAND: %[[B:.*]] = loom.fused @softmax over <[2, 0] : [4, 8]>
// EXPAND: loom.assemble %[[A]], %[[B]]
func.func @main(%x: !x) -> !x {
  %y = loom.fused @softmax over <[0, 0] : [4, 8]>
    aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
    ins(%x) group (%a: !x) {
      %e = loom.operation @exp over <[0, 0] : [4, 8]> [map, map]
             ins(%a : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
             wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
      %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add
             ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
             wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !r
      %d = loom.operation @div over <[0, 0] : [4, 8]> [map, map]
             ins(%e : (d0, d1) -> (d0, d1), %s : (d0, d1) -> (d0)) outs((d0, d1) -> (d0, d1))
             wrap (%c: f32, %t: f32) { %r = arith.divf %c, %t : f32  loom.yield %r : f32 }
             : (!x, !r) -> !x
      loom.yield %d : !x
    } : (!x) -> !x
  func.return %y : !x
}

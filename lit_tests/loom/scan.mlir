// RUN: tapestry-opt %s -p 'loom-shard{grid=1,3}' --equal-each | filecheck %s --check-prefix SHARD
// RUN: tapestry-opt %s -p 'loom-shard{grid=1,3},loom-expand-shards' --equal-each | filecheck %s --check-prefix FLAT
// RUN: tapestry-opt %s -p 'loom-shard{grid=1,3},loom-expand-shards{arity=2}' --equal-each | filecheck %s --check-prefix TREE
// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1},loom-expand-shards' --equal-each | filecheck %s --check-prefix MAPS
// RUN: tapestry-opt %s -p 'loom-simplify,loom-fuse' --equal-each | filecheck %s --check-prefix FUSE
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

!x = !loom.tensor<[0, 0] : [4, 9], f32>

// CHECK-LABEL: func.func @main
// CHECK: over <[0, 0] : [4, 9]> [map, scan] by @add
func.func @main(%x: !x, %b: !x) -> !x {
  // Shards along a scan are in order; a part carries on from the state before it.
  // SHARD: shards <grid [[0, 4], [0, 3, 6, 9]]>

  // FLAT: loom.kernel @cumsum [map, scan] by @add
  // FLAT: %[[A:.*]] = loom.application @cumsum over <[0, 0] : [4, 3]> partial (%{{.*}} <[0, 0] : [4, 3]>)
  // FLAT: %[[B:.*]] = loom.application @cumsum over <[0, 3] : [4, 6]> partial
  // FLAT: %[[C:.*]] = loom.application @cumsum over <[0, 6] : [4, 9]> partial
  // FLAT: loom.merge @cumsum over <[0, 0] : [4, 9]> states(%[[A]], %[[B]], %[[C]])

  // TREE: %[[A:.*]] = loom.application @cumsum over <[0, 0] : [4, 3]> partial
  // TREE: %[[B:.*]] = loom.application @cumsum over <[0, 3] : [4, 6]> partial
  // TREE: %[[C:.*]] = loom.application @cumsum over <[0, 6] : [4, 9]> partial
  // TREE: %[[AB:.*]] = loom.merge @cumsum over <[0, 0] : [4, 6]> partial states(%[[A]], %[[B]])
  // TREE: loom.merge @cumsum over <[0, 0] : [4, 9]> states(%[[AB]], %[[C]])

  // Map dimensions split freely: each shard scans its own rows.
  // MAPS: loom.application @cumsum over <[0, 0] : [2, 9]> (%{{.*}} <[0, 0] : [2, 9]>)
  // MAPS: loom.application @cumsum over <[2, 0] : [4, 9]> (%{{.*}} <[2, 0] : [4, 9]>)
  // MAPS: loom.assemble

  // Maps join a scan on both sides: the prologue in wrap, the epilogue (which reads each running
  // state once, here in reverse) in unwrap.
  // FUSE: loom.operation @exp_cumsum_add over <[0, 0] : [4, 9]> [map, scan] by @add
  // FUSE-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // FUSE-NEXT: extra(%b : (d0, d1) -> (d0, -d1 + 8))
  // FUSE-NEXT: outs((d0, d1) -> (d0, -d1 + 8))
  // FUSE: unwrap
  // FUSE-NOT: loom.operation
  %e = loom.operation @exp over <[0, 0] : [4, 9]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) { %r = math.exp %a : f32  loom.yield %r : f32 } : (!x) -> !x
  %y = loom.operation @cumsum over <[0, 0] : [4, 9]> [map, scan] by @add
         ins(%e : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x
  %z = loom.operation @add over <[0, 0] : [4, 9]> [map, map]
         ins(%y : (d0, d1) -> (d0, -d1 + 8), %b : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %c: f32) { %r = arith.addf %a, %c : f32  loom.yield %r : f32 }
         : (!x, !x) -> !x
  func.return %z : !x
}

// RUN: tapestry-opt %s -p 'loom-shard{grid=1,2 op=sum},loom-group' --equal-each | filecheck %s
// RUN: not tapestry-opt %s -p 'loom-shard{grid=1,2 op=sum},loom-shard{grid=1,2 op=exp},loom-group{ops=exp,sum,scale}' 2>&1 | filecheck %s --check-prefix WHY

// Parts of @sum merge once all are done, so it is no member beside @scale, which reads it.

// CHECK:     loom.operation @sum
// CHECK:         shards <grid {{\[\[}}0, 4], [0, 2, 4]]>
// CHECK:     loom.operation @scale

// WHY: group_shards.mlir:[[LINE:[0-9]+]]:3: error: @exp, @sum, @scale cannot be a group: dimension 1 cannot be cut: @sum folds along it, and a member reads what it folds

!x = !loom.tensor<[0, 0] : [4, 4], f32>
!s = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !s {
  %e = loom.operation @exp over <[0, 0] : [4, 4]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @sum over <[0, 0] : [4, 4]> [map, fold] by @add
         ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !s
  %d = loom.operation @scale over <[0] : [4]> [map]
         ins(%s : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!s) -> !s
  func.return %d : !s
}

// RUN: tapestry-opt %s -p 'loom-group{ops=exp,sum,div label=softmax}' --equal-each | filecheck %s
// RUN: tapestry-opt %s -p 'loom-group{ops=exp,sum,div},loom-ungroup' --equal-each | filecheck %s --check-prefix BACK
// RUN: tapestry-opt %s -p 'loom-group' --equal-each | filecheck %s --check-prefix ALL
// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1 op=exp},loom-shard{grid=2,1 op=sum},loom-shard{grid=2,1 op=div},loom-group{ops=exp,sum,div}' --equal-each | filecheck %s --check-prefix SHARDS
// RUN: not tapestry-opt %s -p 'loom-shard{grid=2,1 op=exp},loom-group{ops=exp,sum,div}' 2>&1 | filecheck %s --check-prefix OTHER
// RUN: not tapestry-opt %s -p 'loom-group{ops=exp,div}' 2>&1 | filecheck %s --check-prefix BETWEEN
// RUN: not tapestry-opt %s -p 'loom-group{ops=div,turn}' 2>&1 | filecheck %s --check-prefix TWICE
// RUN: not tapestry-opt %s -p 'loom-group{ops=div,gone}' 2>&1 | filecheck %s --check-prefix GONE
// RUN: not tapestry-opt %s -p 'loom-group{ops=idle,div}' 2>&1 | filecheck %s --check-prefix IDLE

!x = !loom.tensor<[0, 0] : [4, 4], f32>
!s = !loom.tensor<[1] : [5], f32>

// CHECK:      %[[D:.*]] = loom.fused @softmax over <[0, 0] : [4, 4]>
// CHECK-NEXT:     aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0 + 1, d1), (d0, d1) -> (d0, d1))
// CHECK-NEXT:     ins(%x)
// CHECK:            loom.operation @exp
// CHECK:            loom.operation @sum over <[1, 0] : [5, 4]>
// CHECK:            loom.operation @div
// CHECK:      %t = loom.operation @turn
// CHECK-NEXT:     ins(%[[D]] : (d0, d1) -> (d0, d1), %[[D]] : (d0, d1) -> (d1, d0))

// BACK-NOT: loom.fused
// BACK: loom.operation @exp
// BACK: loom.operation @sum
// BACK: loom.operation @div
// BACK: loom.operation @turn

// Nothing reads @idle, and @turn reads @div under two alignments.
// ALL: loom.operation @idle
// ALL: loom.fused @exp_sum_div
// ALL: loom.operation @turn

// SHARDS: loom.fused @exp_sum_div
// SHARDS: shards <grid [[0, 2, 4], [0, 4]]>
// SHARDS-NOT: shards

// OTHER: group.mlir:[[LINE:[0-9]+]]:3: error: @exp, @sum, @div cannot be a group: @sum is split otherwise than a member before it
// BETWEEN: group.mlir:[[LINE:[0-9]+]]:3: error: @exp, @div cannot be a group: @sum between its members reads what one of them writes
// TWICE: group.mlir:[[LINE:[0-9]+]]:3: error: @div, @turn cannot be a group: @turn reads an inner tensor under two alignments
// IDLE: group.mlir:[[LINE:[0-9]+]]:3: error: @idle, @div cannot be a group: nothing reads what @idle writes
// GONE: error: loom-group: there are 0 operations @gone outside of groups, not one
func.func @main(%x: !x) -> !x {
  %i = loom.operation @idle over <[0, 0] : [4, 4]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  %e = loom.operation @exp over <[0, 0] : [4, 4]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @sum over <[1, 0] : [5, 4]> [map, fold] by @add
         ins(%e : (d0, d1) -> (d0 - 1, d1)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !s
  %d = loom.operation @div over <[0, 0] : [4, 4]> [map, map]
         ins(%e : (d0, d1) -> (d0, d1), %s : (d0, d1) -> (d0 + 1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %t: f32) { %r = arith.divf %c, %t : f32  loom.yield %r : f32 }
         : (!x, !s) -> !x
  %t = loom.operation @turn over <[0, 0] : [4, 4]> [map, map]
         ins(%d : (d0, d1) -> (d0, d1), %d : (d0, d1) -> (d1, d0)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %b: f32) { %r = arith.addf %a, %b : f32  loom.yield %r : f32 }
         : (!x, !x) -> !x
  func.return %t : !x
}

// RUN: tapestry-opt %s -p 'loom-shard{grid=1,5},loom-expand-shards{arity=2}' --equal-each | filecheck %s
// RUN: tapestry-opt %s -p 'loom-shard{grid=1,5},loom-expand-shards{arity=5}' --equal-each | filecheck %s --check-prefix FLAT
// RUN: not tapestry-opt %s -p 'loom-shard{grid=1,5},loom-expand-shards{arity=1}' 2>&1 | filecheck %s --check-prefix ONE
// RUN: tapestry-opt %s -p 'loom-shard{grid=1,5},loom-expand-shards{arity=2}' | tapestry-opt --print-op-generic | tapestry-opt --equal-each | filecheck %s

!x = !loom.tensor<[0, 0] : [2, 5], f32>
!y = !loom.tensor<[0] : [2], f32>

// ONE: error: loom-expand-shards: arity must be at least 2, not 1
// ONE-NEXT: hint: leave it out to merge all states of a box at once

// Partial merges yield states; the last one unwraps, and reads what only unwrap reads.
// CHECK: %[[A:.*]] = loom.application @sum over <[0, 0] : [2, 1]> partial
// CHECK: %[[B:.*]] = loom.application @sum over <[0, 1] : [2, 2]> partial
// CHECK: %[[C:.*]] = loom.application @sum over <[0, 2] : [2, 3]> partial
// CHECK: %[[D:.*]] = loom.application @sum over <[0, 3] : [2, 4]> partial
// CHECK: %[[E:.*]] = loom.application @sum over <[0, 4] : [2, 5]> partial
// CHECK: %[[AB:.*]] = loom.merge @sum over <[0] : [2]> partial states(%[[A]], %[[B]])
// CHECK: %[[CD:.*]] = loom.merge @sum over <[0] : [2]> partial states(%[[C]], %[[D]])
// CHECK: %[[ABCD:.*]] = loom.merge @sum over <[0] : [2]> partial states(%[[AB]], %[[CD]])
// CHECK: loom.merge @sum over <[0] : [2]> states(%[[ABCD]], %[[E]]) extra(%{{.*}})

// FLAT-NOT: loom.merge {{.*}} partial
// FLAT: loom.merge @sum over <[0] : [2]> states(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) extra(%{{.*}})
func.func @main(%x: !x, %b: !y) -> !y {
  %y = loom.operation @sum over <[0, 0] : [2, 5]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) extra(%b : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32, %d: f32) { %r = arith.addf %s, %d : f32  loom.yield %r : f32 }
         : (!x, !y) -> !y
  func.return %y : !y
}

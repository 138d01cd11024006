// RUN: tapestry-opt %s -p loom-expand-shards,loom-reshard --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p loom-expand-shards,loom-reshard --split-input-file > %t.once
// RUN: tapestry-opt %s -p loom-expand-shards,loom-reshard,loom-reshard --split-input-file | diff - %t.once

// A window reads one cell of its neighbour: a halo. What is outside of the tensor stays outside.

!v = !loom.tensor<[0] : [8], f32>
// CHECK-LABEL: func.func @halo
// CHECK-NEXT:   %h = loom.application @double over <[0] : [4]>
// CHECK-NEXT:   %h_1 = loom.application @double over <[4] : [8]>
// CHECK-NEXT:   %h_2 = loom.view %h_1 : (d0) -> (d0) : (!loom.tensor<[4] : [8], f32>) -> !loom.tensor<[4] : [5], f32>
// CHECK-NEXT:   %h_3 = loom.assemble %h, %h_2 : {{.*}} -> !loom.tensor<[0] : [5], f32>
// CHECK-NEXT:   %h_4 = loom.view %h : (d0) -> (d0) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[3] : [4], f32>
// CHECK-NEXT:   %h_5 = loom.assemble %h_4, %h_1 : {{.*}} -> !loom.tensor<[3] : [8], f32>
// CHECK-NEXT:   %y = loom.application @window over <[0, 0] : [4, 3]> (%h_3 <[0] : [5]>)
// CHECK-NEXT:   %y_1 = loom.application @window over <[4, 0] : [8, 3]> (%h_5 <[3] : [8]>)
// CHECK-NEXT:   %y_2 = loom.assemble %y, %y_1
func.func @halo(%x: !v) -> !v {
  %h = loom.operation @double over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 4, 8]]>
         wrap (%c: f32) { %d = arith.addf %c, %c : f32 loom.yield %d : f32 } : (!v) -> !v
  %y = loom.operation @window over <[0, 0] : [8, 3]> [map, fold] by @add
         ins(%h : (d0, d1) -> (d0 + d1 - 1) clip 1.0 : f32) outs((d0) -> (d0))
         shards <grid [[0, 4, 8], [0, 3]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!v) -> !v
  func.return %y : !v
}

// -----

// Rows are written, columns read, through a transpose: a corner of each part goes to each shard.

!x = !loom.tensor<[0, 0] : [4, 6], f32>
!t = !loom.tensor<[0, 0] : [6, 4], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: func.func @columns
// CHECK:        %[[A:.*]] = loom.view %h : (d0, d1) -> (d0, d1) : {{.*}} -> !loom.tensor<[0, 0] : [2, 3], f32>
// CHECK-NEXT:   %[[B:.*]] = loom.view %h_1 : (d0, d1) -> (d0, d1) : {{.*}} -> !loom.tensor<[2, 0] : [4, 3], f32>
// CHECK-NEXT:   %[[C:.*]] = loom.assemble %[[A]], %[[B]] : {{.*}} -> !loom.tensor<[0, 0] : [4, 3], f32>
// CHECK:        loom.assemble
// CHECK:        %[[T:.*]] = loom.view %[[C]] : (d0, d1) -> (d1, d0) : {{.*}} -> !loom.tensor<[0, 0] : [3, 4], f32>
// CHECK-NEXT:   loom.view
// CHECK-NEXT:   %y = loom.application @sum over <[0, 0] : [3, 4]> (%[[T]] <[0, 0] : [3, 4]>)
// CHECK-NEXT:   %y_1 = loom.application @sum over <[3, 0] : [6, 4]>
func.func @columns(%x: !x) -> !y {
  %h = loom.operation @double over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) shards <grid [[0, 2, 4], [0, 6]]>
         wrap (%c: f32) { %d = arith.addf %c, %c : f32 loom.yield %d : f32 } : (!x) -> !x
  %t = loom.view %h : (d0, d1) -> (d1, d0) : !x -> !t
  %y = loom.operation @sum over <[0, 0] : [6, 4]> [map, fold] by @add
         ins(%t : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) shards <grid [[0, 3, 6], [0, 4]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!t) -> !y
  func.return %y : !y
}

// -----

// Shards that agree read their own part. A group is a reader like any other, its members see what
// it reads; an assembly that is read whole stays.

!v = !loom.tensor<[0] : [8], f32>
// CHECK-LABEL: func.func @group
// CHECK-NEXT:   %h = loom.application @double over <[0] : [4]>
// CHECK-NEXT:   %h_1 = loom.application @double over <[4] : [8]>
// CHECK-NEXT:   %[[H:.*]] = loom.assemble %h, %h_1
// CHECK-NEXT:   %z = loom.operation @all over <[0] : [8]> [fold] by @add
// CHECK-NEXT:       ins(%[[H]] : (d0) -> (d0))
// CHECK:        loom.fused @pair over <[0] : [4]>
// CHECK:            ins(%h)
// CHECK-NEXT:       group (%a: !loom.tensor<[0] : [4], f32>)
// CHECK:        loom.fused @pair over <[4] : [8]>
// CHECK:            ins(%h_1)
// CHECK-NEXT:       group (%a: !loom.tensor<[4] : [8], f32>)
func.func @group(%x: !v) -> (!v, !loom.tensor<[] : [], f32>) {
  %h = loom.operation @double over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 4, 8]]>
         wrap (%c: f32) { %d = arith.addf %c, %c : f32 loom.yield %d : f32 } : (!v) -> !v
  %z = loom.operation @all over <[0] : [8]> [fold] by @add ins(%h : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!v) -> !loom.tensor<[] : [], f32>
  %y = loom.fused @pair over <[0] : [8]> aligned((d0) -> (d0), (d0) -> (d0))
         shards <grid [[0, 4, 8]]> ins(%h) group (%a: !v) {
           %e = loom.operation @exp over <[0] : [8]> [map] ins(%a : (d0) -> (d0)) outs((d0) -> (d0))
                  wrap (%c: f32) { %d = math.exp %c : f32 loom.yield %d : f32 } : (!v) -> !v
           %s = loom.operation @half over <[0] : [8]> [map] ins(%e : (d0) -> (d0)) outs((d0) -> (d0))
                  wrap (%c: f32) { %d = arith.addf %c, %c : f32 loom.yield %d : f32 } : (!v) -> !v
           loom.yield %s : !v
         } : (!v) -> !v
  func.return %y, %z : !v, !loom.tensor<[] : [], f32>
}

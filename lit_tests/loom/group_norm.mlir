// RUN: tapestry-opt %s -p default --equal-each | filecheck %s

// Groups of channels are digits of the rows that are normalized, and of what is read of them: the
// mean, the spread and the map that reads both have the same dimensions.
!x = !loom.tensor<[0, 0, 0] : [2, 6, 4], f16>
!w = !loom.tensor<[0] : [6], f16>
// CHECK-LABEL: @main
// CHECK-NEXT: loom.fused
// CHECK-SAME: over <[0, 0, 0, 0] : [2, 3, 2, 4]>
// CHECK-NEXT: aligned((d0, d1, d2, d3) -> (d0, d1, d2, d3), (d0, d1, d2, d3) -> (d0, d1, d2, d3))
// CHECK-NEXT: ins(%x, %w, %b)
// CHECK: [map, map, fold, fold]
// CHECK: [map, map, map, map]
// CHECK: loom.yield %{{.*}} : !loom.tensor<[0, 0, 0] : [2, 6, 4], f16>
// CHECK-NOT: loom.operation
func.func @main(%x: !x, %w: !w, %b: !w) -> !x {
  %y = weft.apply @group_norm(%x, %w, %b) {groups = 3} : (!x, !w, !w) -> !x
  func.return %y : !x
}

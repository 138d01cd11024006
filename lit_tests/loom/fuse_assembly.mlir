// RUN: tapestry-opt %s -p loom-fuse | filecheck %s

!x = !loom.tensor<[0, 0] : [6, 8], f32>
!h = !loom.tensor<[0, 0] : [6, 4], f32>

// Half of %x, negated, beside the other half: what reads that chooses between the two.
// CHECK-LABEL: @rotated
// CHECK-NOT:   loom.assemble
// CHECK:       loom.operation @r_y over <[0, 0] : [6, 8]> [map, map]
// CHECK-NEXT:    ins(%x : (d0, d1) -> (d0, d1 + 4) clip 0.000000e+00 : f32, %x : (d0, d1) -> (d0, d1 - 4) clip 0.000000e+00 : f32, %c : (d0, d1) -> (d0, d1))
// CHECK:         arith.negf
// CHECK:         arith.select
// CHECK:         arith.mulf
// CHECK-NOT:   loom.operation
func.func @rotated(%x: !x, %c: !x) -> !x {
  %n = loom.operation @n over <[0, 0] : [6, 4]> [map, map] ins(%x : (i, d) -> (i, d + 4))
         outs((i, d) -> (i, d)) wrap (%u: f32) { %v = arith.negf %u : f32  loom.yield %v : f32 } : (!x) -> !h
  %f = loom.view %x : (i, d) -> (i, d) : !x -> !h
  %r = loom.assemble %n, %f at (d0, d1) -> (d0, d1 + 4) : !h, !h -> !x
  %y = loom.operation @y over <[0, 0] : [6, 8]> [map, map] ins(%r : (i, d) -> (i, d), %c : (i, d) -> (i, d))
         outs((i, d) -> (i, d))
         wrap (%u: f32, %v: f32) { %p = arith.mulf %u, %v : f32  loom.yield %p : f32 } : (!x, !x) -> !x
  func.return %y : !x
}

// What is returned is stored: its parts are written where they stand.
// CHECK-LABEL: @stored
// CHECK:       loom.assemble
func.func @stored(%x: !x) -> !x {
  %n = loom.operation @n over <[0, 0] : [6, 4]> [map, map] ins(%x : (i, d) -> (i, d + 4))
         outs((i, d) -> (i, d)) wrap (%u: f32) { %v = arith.negf %u : f32  loom.yield %v : f32 } : (!x) -> !h
  %f = loom.view %x : (i, d) -> (i, d) : !x -> !h
  %r = loom.assemble %n, %f at (d0, d1) -> (d0, d1 + 4) : !h, !h -> !x
  func.return %r : !x
}

// Neither part is a view, or a map that nothing else reads.
// CHECK-LABEL: @given
// CHECK:       loom.assemble
func.func @given(%a: !h, %b: !h) -> !x {
  %r = loom.assemble %a, %b at (d0, d1) -> (d0, d1 + 4) : !h, !h -> !x
  %y = loom.operation @y over <[0, 0] : [6, 8]> [map, map] ins(%r : (i, d) -> (i, d))
         outs((i, d) -> (i, d)) wrap (%u: f32) { %v = math.exp %u : f32  loom.yield %v : f32 } : (!x) -> !x
  func.return %y : !x
}

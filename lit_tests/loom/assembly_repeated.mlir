// RUN: tapestry-opt %s -p loom-simplify | filecheck %s

// Heads of keys that serve several heads of queries: a view that repeats an assembly stays a view of
// it, which its reader reads through. The parts are not repeated.

!a = !loom.tensor<[0, 0, 0] : [2, 8, 4], f32>
!k = !loom.tensor<[0, 0, 0] : [2, 8, 8], f32>
!v = !loom.tensor<[0, 0, 0, 0] : [2, 3, 8, 8], f32>
!r = !loom.tensor<[0, 0, 0] : [6, 8, 8], f32>

// CHECK:      %k = loom.assemble %a, %b at
// CHECK-NOT:  loom.view
// CHECK:      loom.operation @y over <[0, 0, 0, 0] : [2, 3, 8, 8]>
// CHECK-NEXT:   ins(%k : (d0, d1, d2, d3) -> (d0, d2, d3))
func.func @main(%a: !a, %b: !a) -> !r {
  %k = loom.assemble %a, %b at (d0, d1, d2) -> (d0, d1, d2 + 4) : !a, !a -> !k
  %v = loom.view %k : (d0, d1, d2, d3) -> (d0, d2, d3) : !k -> !v
  %r = loom.reshape %v : !v -> !r
  %y = loom.operation @y over <[0, 0, 0] : [6, 8, 8]> [map, map, map] ins(%r : (h, i, d) -> (h, i, d))
         outs((h, i, d) -> (h, i, d))
         wrap (%u: f32) { %e = math.exp %u : f32  loom.yield %e : f32 } : (!r) -> !r
  func.return %y : !r
}

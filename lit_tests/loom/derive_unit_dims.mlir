// RUN: tapestry-opt %s -p loom-derive --equal-each | filecheck %s

// A dimension of one coordinate is a number wherever it is read: that the maximum lacks it and the
// sum has it makes no difference.
!x = !loom.tensor<[0, 0, 0] : [1, 4, 6], f32>
!m = !loom.tensor<[0, 0] : [4, 1], f32>
!y = !loom.tensor<[0, 0] : [1, 4], f32>
// CHECK-LABEL: func.func @main
func.func @main(%x: !x) -> !y {
  // CHECK-NEXT: loom.operation @m_l over <[0, 0, 0] : [1, 4, 6]> [map, map, fold] by @m_l
  // CHECK-NEXT: ins(%x : (d0, d1, d2) -> (0, d1, d2))
  // CHECK-NEXT: outs((d0, d1) -> (d0, d1))
  // CHECK-NOT:  loom.operation
  %m = loom.operation @m over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (d0, d1) -> (0, d0, d1)) outs((d0) -> (d0, 0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !m
  %l = loom.operation @l over <[0, 0, 0] : [1, 4, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2), %m : (d0, d1, d2) -> (d1, d0)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %r: f32) {
           %d = arith.subf %c, %r : f32
           %e = math.exp %d : f32
           loom.yield %e : f32
         } : (!x, !m) -> !y
  func.return %l : !y
}

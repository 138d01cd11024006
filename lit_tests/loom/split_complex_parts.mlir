// RUN: tapestry-opt %s -p 'loom-shard{grid=1,2,1},loom-expand-shards,loom-split-complex' | filecheck %s

// Both halves of a part are stored over the dimensions of the part, though one of them varies less.
!x = !loom.tensor<[0, 0] : [2, 4], f32>
!o = !loom.tensor<[0, 0] : [2, 3], complex<f32>>
// CHECK: loom.kernel @sum
// CHECK: parts((d0, d1) -> (d0), (d0, d1) -> (d0))
// CHECK: loom.application @sum over <[0, 0, 0] : [2, 2, 3]> partial
// CHECK-SAME: -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [2], f32>)
func.func @main(%x: !x) -> !o {
  %o = loom.operation @sum over <[0, 0, 0] : [2, 4, 3]> [map, fold, map] by @add
         ins(%x : (i, j, d) -> (i, j)) outs((i, d) -> (i, d))
         wrap (%c: f32) {
           %one = arith.constant 1.0 : f32
           %z = complex.create %c, %one : complex<f32>
           loom.yield %z : complex<f32>
         } : (!x) -> !o
  func.return %o : !o
}

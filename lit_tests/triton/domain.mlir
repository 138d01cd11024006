// RUN: tapestry-opt %s -p "loom-to-triton{tile=16}" -t triton | filecheck %s

!x = !loom.tensor<[0, 0] : [64, 64], f32>
!y = !loom.tensor<[0] : [64], f32>

// A sliding window: the loop walks the blocks that may hold points inside, and masks the others.
// CHECK-LABEL: def window(
// CHECK: tl.maximum(
// CHECK: for k_start in range({{.*}}, {{.*}}, BLOCK_K):
// CHECK: tl.where({{.*}}, {{.*}}, 0.0)
func.func @main(%x: !x) -> !y {
  %y = loom.operation @window over <[0, 0] : [64, 64]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         domain(d0 - d1 >= 0, d1 - d0 + 2 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %y : !y
}

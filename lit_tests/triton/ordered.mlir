// RUN: tapestry-opt %s -p 'loom-to-triton{tile=64}' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="recurrence: P = 4, K = 1"}' -t triton | filecheck %s --check-prefix=ONE

// Of a monoid that does not commute, the lanes of a block fold as a scan does, which keeps their
// order, where a reduction may take any; what the last lane has is merged after what is carried.
// CHECK:      def recurrence(
// CHECK:      for k_start in range(0, 100, BLOCK_K):
// CHECK:      = tl.associative_scan({{.*}}, 1, combine_affine)
// CHECK-NEXT: = tl.reduce({{.*}}, 1, combine_last)
// CHECK:      tl.store(

// Points one by one need neither.
// ONE:        for k_start in range(0, 100, BLOCK_K):
// ONE-NOT:    associative_scan
// ONE:        tl.store(
!x = !loom.tensor<[0, 0] : [4, 100], f32>
!y = !loom.tensor<[0] : [4], f32>
loom.monoid @affine zero [1.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %p = arith.mulf %a, %c : f32
  %q = arith.mulf %b, %c : f32
  %r = arith.addf %q, %d : f32
  loom.yield %p, %r : f32, f32
}
func.func @main(%x: !x) -> !y {
  %y = loom.operation @recurrence over <[0, 0] : [4, 100]> [map, fold] by @affine
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { %h = arith.constant 0.9 : f32  loom.yield %h, %c : f32, f32 }
         unwrap (%s: f32, %t: f32) { loom.yield %t : f32 } : (!x) -> !y
  func.return %y : !y
}

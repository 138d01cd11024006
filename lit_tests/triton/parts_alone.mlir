// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s

// Parts that merge by themselves are folded by themselves; those that read each other are not.

!x = !loom.tensor<[0, 0] : [64, 256], f32>
!y = !loom.tensor<[0] : [64], f32>
!n = !loom.tensor<[0] : [64], i64>

loom.monoid @both commutative zero [0.0 : f32, 0xff800000 : f32]
    merge (%s: f32, %m: f32, %t: f32, %n: f32) {
  %a = arith.addf %s, %t : f32
  %b = arith.maximumf %m, %n : f32
  loom.yield %a, %b : f32, f32
}

// CHECK:      def apart(
// CHECK-DAG:    tl.sum(x, axis=1)
// CHECK-DAG:    tl.reduce(x, 1, combine_max)
// CHECK:      def first(
// CHECK:        tl.reduce((x, {{.*}}), 1, combine_argmax)
// Positions of less than 32 bits are exchanged as such.
// CHECK-NEXT:   tl.store({{.*}}.to(tl.int64))
func.func @main(%x: !x) -> (!y, !y, !n) {
  %s, %m = loom.operation @apart over <[0, 0] : [64, 256]> [map, fold] by @both
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i), (i) -> (i))
         wrap (%a: f32) { loom.yield %a, %a : f32, f32 } : (!x) -> (!y, !y)
  %p = loom.operation @first over <[0, 0] : [64, 256]> [map, fold] by @argmax
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%a: f32) { %k = loom.index 1 : i64  loom.yield %a, %k : f32, i64 }
         unwrap (%g: f32, %at: i64) { loom.yield %at : i64 } : (!x) -> !n
  func.return %s, %m, %p : !y, !y, !n
}

// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s

// What changes no cell is not written, and positions that fit in 32 bits stay there.

!x = !loom.tensor<[0, 0] : [64, 256], f32>
!h = !loom.tensor<[0, 0] : [64, 256], f16>
!n = !loom.tensor<[0, 0] : [64, 256], i64>

// CHECK:      def same(
// CHECK:        h = tl.load(h_ptr + p)
// CHECK-NEXT:   tl.store({{.*}}_ptr + p, h)
// -0.0 + 0.0 is 0.0.
// CHECK:      def kept(
// CHECK:        x + 0.0 - z)
// CHECK:      def triangle(
// CHECK:        tl.where(p % 256 - p // 256 <= 0, {{.*}}, 0.0)
// The greatest product is 63 * 2^40.
// CHECK:      def wide(
// CHECK:        (p // 256).to(tl.int64) * 1099511627776
func.func @main(%h: !h, %x: !x, %z: !x) -> (!h, !x, !x, !n) {
  %s = loom.operation @same over <[0, 0] : [64, 256]> [map, map]
         ins(%h : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f16) {
           %one = arith.constant 1.0 : f16
           %zero = arith.constant 0.0 : f16
           %p = arith.mulf %a, %one : f16
           %q = arith.divf %p, %one : f16
           %d = arith.subf %q, %zero : f16
           %w = arith.extf %d : f16 to f32
           %r = arith.truncf %w : f32 to f16
           loom.yield %r : f16
         } : (!h) -> !h
  %k = loom.operation @kept over <[0, 0] : [64, 256]> [map, map]
         ins(%x : (i, j) -> (i, j), %z : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) {
           %zero = arith.constant 0.0 : f32
           %m = arith.negf %b : f32
           %p = arith.addf %a, %zero : f32
           %q = arith.addf %p, %m : f32
           loom.yield %q : f32
         } : (!x, !x) -> !x
  %t = loom.operation @triangle over <[0, 0] : [64, 256]> [map, map]
         ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %first = arith.constant 0 : i64
           %step = arith.constant 1 : i64
           %row = arith.muli %i, %step : i64
           %at = arith.addi %first, %row : i64
           %d = arith.subi %j, %at : i64
           %in = arith.cmpi sle, %d, %first : i64
           %true = arith.constant true
           %both = arith.andi %in, %true : i1
           %zero = arith.constant 0.0 : f32
           %r = arith.select %both, %a, %zero : f32
           loom.yield %r : f32
         } : (!x) -> !x
  %w = loom.operation @wide over <[0, 0] : [64, 256]> [map, map]
         outs((i, j) -> (i, j))
         wrap () {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %c = arith.constant 1099511627776 : i64
           %p = arith.muli %i, %c : i64
           %r = arith.addi %p, %j : i64
           loom.yield %r : i64
         } : () -> !n
  func.return %s, %k, %t, %w : !h, !x, !x, !n
}

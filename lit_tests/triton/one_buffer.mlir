// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-group{ops=first,second},loom-to-triton' -t triton | filecheck %s --check-prefix GROUP

// A tensor that is read at several places is one argument; a kernel that reads two is not the same.

!x = !loom.tensor<[0, 0] : [64, 64], f32>
!y = !loom.tensor<[0] : [64], f32>

// CHECK:      def symmetric(x_ptr, s_ptr,
// CHECK:      def symmetric_2(x_ptr, z_ptr, t_ptr,
// CHECK:        symmetric[grid](x, s, **SYMMETRIC)
// CHECK:        symmetric_2[grid](x, z, t, **SYMMETRIC_2)

// GROUP:      def first_second(x_ptr, a_ptr, b_ptr,
// GROUP:        first_second[grid](x, a, b, **FIRST_SECOND)
func.func @main(%x: !x, %z: !x) -> (!x, !x, !y, !x) {
  %s = loom.operation @symmetric over <[0, 0] : [64, 64]> [map, map]
         ins(%x : (i, j) -> (i, j), %x : (i, j) -> (j, i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %r = arith.addf %a, %b : f32  loom.yield %r : f32 }
         : (!x, !x) -> !x
  %t = loom.operation @symmetric over <[0, 0] : [64, 64]> [map, map]
         ins(%x : (i, j) -> (i, j), %z : (i, j) -> (j, i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %r = arith.addf %a, %b : f32  loom.yield %r : f32 }
         : (!x, !x) -> !x
  %a = loom.operation @first over <[0, 0] : [64, 64]> [map, fold] by @add
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%e: f32) { loom.yield %e : f32 } : (!x) -> !y
  %b = loom.operation @second over <[0, 0] : [64, 64]> [map, map]
         ins(%a : (i, k) -> (i), %x : (i, k) -> (i, k), %x : (i, k) -> (i, 63 - k))
         outs((i, k) -> (i, k))
         wrap (%m: f32, %e: f32, %o: f32) {
           %d = arith.subf %e, %m : f32
           %r = arith.mulf %d, %o : f32
           loom.yield %r : f32
         } : (!y, !x, !x) -> !x
  func.return %s, %t, %a, %b : !x, !x, !y, !x
}

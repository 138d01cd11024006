// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s

// What only an assembly reads is written where it stands there, also through a reshape that merges
// dimensions. Nothing is copied but %c, which is returned as well.

!a = !loom.tensor<[0, 0, 0] : [16, 4, 8], f32>
!h = !loom.tensor<[0, 0] : [16, 32], f32>
!y = !loom.tensor<[0, 0] : [16, 96], f32>

// CHECK:      def a(
// CHECK:        tl.store(a_ptr + p // 32 * 96 + p % 32,
// CHECK:      def b(
// CHECK:        tl.store(b_ptr + p // 32 * 96 + p % 32 + 32,
// CHECK:      def c(
// CHECK:        tl.store(c_ptr + p,
// CHECK:      def copy(
// CHECK:        tl.store(y_ptr + p // 32 * 96 + p % 32 + 64,
// CHECK:      def launch(
// CHECK:        y = allocate((16, 96), "float32")
// CHECK:        a[grid](x, y, **A)
// CHECK:        b[grid](x, y, **B)
// CHECK:        copy[grid](c_out, y, **COPY)
func.func @main(%x: !a) -> (!y, !h) {
  %a = loom.operation @a over <[0, 0, 0] : [16, 4, 8]> [map, map, map] ins(%x : (i, h, d) -> (i, h, d))
         outs((i, h, d) -> (i, h, d))
         wrap (%u: f32) { %r = math.exp %u : f32  loom.yield %r : f32 } : (!a) -> !a
  %af = loom.reshape %a : !a -> !h
  %b = loom.operation @b over <[0, 0, 0] : [16, 4, 8]> [map, map, map] ins(%x : (i, h, d) -> (i, h, d))
         outs((i, h, d) -> (i, 8 * h + d))
         wrap (%u: f32) { %r = math.sin %u : f32  loom.yield %r : f32 } : (!a) -> !h
  %c = loom.operation @c over <[0, 0, 0] : [16, 4, 8]> [map, map, map] ins(%x : (i, h, d) -> (i, h, d))
         outs((i, h, d) -> (i, 8 * h + d))
         wrap (%u: f32) { %r = math.cos %u : f32  loom.yield %r : f32 } : (!a) -> !h
  %y = loom.assemble %af, %b at (d0, d1) -> (d0, d1 + 32), %c at (d0, d1) -> (d0, d1 + 64) : !h, !h, !h -> !y
  func.return %y, %c : !y, !h
}

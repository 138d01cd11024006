// RUN: tapestry-opt %s -p 'loom-group,loom-to-triton' -t triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-group,loom-to-triton{numerics=strict}' -t triton | filecheck %s --check-prefix STRICT

// A side that could overflow float16 is multiplied in units of each row's own, by which the sum is
// multiplied when it is finished.

// CHECK:      u_unit = tl.full([BLOCK_M], 1.1754944e-38, tl.float32)
// CHECK:      e = tl.exp2(acc * 1.442695)
// CHECK:      u_size = tl.max(tl.abs(e), axis=1)
// CHECK-NEXT: u_found = tl.maximum(u_size * 6.1035156e-05, u_unit)
// CHECK-NEXT: u_unit_2 = tl.minimum(u_found, 1.0384594e+34)
// CHECK-NEXT: u_side = (e * (1.0 / u_unit_2)[:, None]).to(tl.float16)
// CHECK-NEXT: u = tl.dot(u_side, z, u * tl.div_rn(u_unit, u_unit_2)[:, None])
// CHECK-NEXT: u_unit = u_unit_2
// CHECK-NEXT: tl.store({{.*}}, (u * u_unit[:, None]).to(tl.float16))

// STRICT-NOT: u_unit
// STRICT:     u = tl.dot(tl.exp(acc), z.to(tl.float32), u, input_precision="ieee")

!x = !loom.tensor<[0, 0] : [128, 64], f16>
!s = !loom.tensor<[0, 0] : [128, 128], f32>
func.func @main(%x: !x, %y: !x, %z: !x) -> !x {
  %s = loom.operation @scores over <[0, 0, 0] : [128, 128, 64]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %y : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%x_: f16, %y_: f16) {
           %a = arith.extf %x_ : f16 to f32
           %b = arith.extf %y_ : f16 to f32
           %r = arith.mulf %a, %b : f32
           loom.yield %r : f32
         } : (!x, !x) -> !s
  %t = loom.operation @mix over <[0, 0, 0] : [128, 64, 128]> [map, map, fold] by @add
         ins(%s : (i, d, j) -> (i, j), %z : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%s_: f32, %z_: f16) {
           %e = math.exp %s_ : f32
           %b = arith.extf %z_ : f16 to f32
           %r = arith.mulf %e, %b : f32
           loom.yield %r : f32
         }
         unwrap (%u: f32) { %h = arith.truncf %u : f32 to f16  loom.yield %h : f16 }
         : (!s, !x) -> !x
  func.return %t : !x
}

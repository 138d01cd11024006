// RUN: tapestry-opt %s -p loom-to-triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{numerics=strict}' | filecheck %s --check-prefix STRICT
// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s --check-prefix PRINTED

// A quotient that ends in 16 bits may be approximate where numerics are not strict; another may not.
// A power of two divides as a product. The inverse root of a sum with a normal number may be the hardware's.

// CHECK:      %halves = arith.divf %a, %b fastmath<afn> : tensor<64xf32>
// CHECK-NEXT: triton.cast %halves : tensor<64xf32> -> tensor<64xf16>
// CHECK:      %scaled = arith.mulf %a, %{{.*}} : tensor<64xf32>
// CHECK:      %whole = arith.divf %b, %a : tensor<64xf32>
// CHECK:      %bounded = math.rsqrt %above fastmath<afn> : tensor<64xf32>
// CHECK:      %root = math.rsqrt %a : tensor<64xf32>

// STRICT:     %halves = arith.divf %a, %b : tensor<64xf32>

// PRINTED:      roots = tl.rsqrt(tl.abs(x) + 1e-05) + inverse_root(x)
// PRINTED-NEXT: all = x * 0.25 + floor(tl.div_rn(y, x)) + roots
// PRINTED-NEXT: tl.store(h_ptr + p, (x / y).to(tl.float16))

!x = !loom.tensor<[0] : [64], f32>
!h = !loom.tensor<[0] : [64], f16>
func.func @main(%x: !x, %y: !x) -> (!h, !x) {
  %h, %z = loom.operation @quotients over <[0] : [64]> [map]
    ins(%x : (i) -> (i), %y : (i) -> (i)) outs((i) -> (i), (i) -> (i))
    wrap (%a: f32, %b: f32) {
      %halves = arith.divf %a, %b : f32
      %half = arith.truncf %halves : f32 to f16
      %four = arith.constant 4.0 : f32
      %scaled = arith.divf %a, %four : f32
      %whole = arith.divf %b, %a : f32
      %down = math.floor %whole : f32
      %s = math.absf %a : f32
      %eps = arith.constant 1.0e-5 : f32
      %above = arith.addf %s, %eps : f32
      %bounded = math.rsqrt %above : f32
      %root = math.rsqrt %a : f32
      %roots = arith.addf %bounded, %root : f32
      %sum = arith.addf %scaled, %down : f32
      %all = arith.addf %sum, %roots : f32
      loom.yield %half, %all : f16, f32
    } : (!x, !x) -> (!h, !x)
  func.return %h, %z : !h, !x
}

// RUN: tapestry-opt %s -p loom-to-triton | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{numerics=strict}' | filecheck %s --check-prefix STRICT
// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s --check-prefix PRINTED

// A sum of 1 and an error function is the complement of another; where nothing else needs that.
// Exponentials beside floats of 16 bits are powers of two.

// CHECK:      triton.kernel @halves
// CHECK:      %{{.*}} = arith.negf %a : tensor<64xf32>
// CHECK-NEXT: %sum = triton.erfc %{{.*}} : tensor<64xf32> -> tensor<64xf32>
// CHECK:      %rest = triton.erfc %b : tensor<64xf32> -> tensor<64xf32>
// CHECK:      arith.constant 1.44269502 : f32
// CHECK:      math.exp2
// CHECK-NOT:  math.exp{{ }}
// CHECK:      triton.kernel @whole
// CHECK:      math.erf
// CHECK:      math.exp{{ }}

// STRICT-NOT: triton.erfc
// STRICT-NOT: math.exp2

// PRINTED:    def complementary_error_function(x):
// PRINTED:    complementary_error_function(y)

!x = !loom.tensor<[0] : [64], f32>
!h = !loom.tensor<[0] : [64], f16>
func.func @main(%x: !x, %y: !x) -> (!h, !x) {
  %h = loom.operation @halves over <[0] : [64]> [map]
    ins(%x : (i) -> (i), %y : (i) -> (i)) outs((i) -> (i))
    wrap (%a: f32, %b: f32) {
      %one = arith.constant 1.0 : f32
      %left = math.erf %a : f32
      %sum = arith.addf %one, %left : f32
      %right = math.erf %b : f32
      %rest = arith.subf %one, %right : f32
      %e = math.exp %b : f32
      %p = arith.mulf %sum, %rest : f32
      %q = arith.addf %p, %e : f32
      %r = arith.truncf %q : f32 to f16
      loom.yield %r : f16
    } : (!x, !x) -> !h
  %z = loom.operation @whole over <[0] : [64]> [map]
    ins(%x : (i) -> (i)) outs((i) -> (i))
    wrap (%a: f32) {
      %one = arith.constant 1.0 : f32
      %erf = math.erf %a : f32
      %sum = arith.addf %one, %erf : f32
      %e = math.exp %a : f32
      %p = arith.mulf %sum, %erf : f32
      %q = arith.addf %p, %e : f32
      loom.yield %q : f32
    } : (!x) -> !x
  func.return %h, %z : !h, !x
}

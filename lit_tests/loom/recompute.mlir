// RUN: tapestry-opt %s -p loom-recompute --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p loom-recompute,loom-recompute --split-input-file | filecheck %s

// The maxima of rows are computed in both kernels that read them, of %x, which both read anyway.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @both
func.func @both(%x: !x, %w: !x) -> (!x, !x) {
  // CHECK-NEXT: %e = loom.fused @m_e over <[0, 0] : [4, 6]>
  // CHECK-NEXT: aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
  // CHECK-NEXT: ins(%x)
  // CHECK:        loom.operation @m over
  // CHECK:        loom.operation @e over
  // CHECK:      %f = loom.fused @m_g_f over <[0, 0] : [4, 6]>
  // CHECK:      ins(%x, %w)
  // CHECK:        loom.operation @m over
  // CHECK:        loom.operation @g over
  // CHECK:        loom.operation @f over
  // CHECK-NOT:  loom.operation
  %m = loom.operation @m over <[0, 0] : [4, 6]> [map, fold] by @max ins(%x : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %e = loom.operation @e over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1), %m : (d0, d1) -> (d0))
         outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %r = arith.subf %c, %d : f32 loom.yield %r : f32 } : (!x, !y) -> !x
  %f = loom.fused @g_f over <[0, 0] : [4, 6]> aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
         ins(%x, %m, %w) group (%a: !x, %b: !y, %v: !x) {
           %g = loom.operation @g over <[0, 0] : [4, 6]> [map, map]
                  ins(%a : (d0, d1) -> (d0, d1), %b : (d0, d1) -> (d0)) outs((d0, d1) -> (d0, d1))
                  wrap (%c: f32, %d: f32) { %r = arith.addf %c, %d : f32 loom.yield %r : f32 } : (!x, !y) -> !x
           %h = loom.operation @f over <[0, 0] : [4, 6]> [map, map]
                  ins(%g : (d0, d1) -> (d0, d1), %v : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
                  wrap (%c: f32, %d: f32) { %r = arith.mulf %c, %d : f32 loom.yield %r : f32 } : (!x, !x) -> !x
           loom.yield %h : !x
         } : (!x, !y, !x) -> !x
  func.return %e, %f : !x, !x
}

// -----

// It is returned, so it is stored anyway; and reading three tensors again saves nothing.
!x = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @stored
func.func @stored(%x: !x, %w: !x, %v: !x) -> (!x, !x, !x, !x, !x) {
  // CHECK-NEXT: loom.operation @m over
  // CHECK:      loom.operation @e over
  // CHECK:      loom.operation @f over
  // CHECK:      loom.operation @n over
  // CHECK:      loom.operation @g over
  // CHECK:      loom.operation @h over
  %m = loom.operation @m over <[0] : [6]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %e = loom.operation @e over <[0] : [6]> [map] ins(%m : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %f = loom.operation @f over <[0] : [6]> [map] ins(%m : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.log %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %n = loom.operation @n over <[0] : [6]> [map] ins(%x : (d0) -> (d0), %w : (d0) -> (d0), %v : (d0) -> (d0))
         outs((d0) -> (d0))
         wrap (%c: f32, %d: f32, %e: f32) { %r = math.fma %c, %d, %e : f32 loom.yield %r : f32 } : (!x, !x, !x) -> !x
  %g = loom.operation @g over <[0] : [6]> [map] ins(%n : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %h = loom.operation @h over <[0] : [6]> [map] ins(%n : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.log %c : f32 loom.yield %e : f32 } : (!x) -> !x
  func.return %m, %e, %f, %g, %h : !x, !x, !x, !x, !x
}

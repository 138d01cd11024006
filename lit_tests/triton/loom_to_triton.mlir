// RUN: tapestry-opt %s -p loom-to-triton --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{tile=16 numerics=fast}' --split-input-file | filecheck %s --check-prefix SMALL
// RUN: tapestry-opt %s -p 'loom-to-triton{device=h200}' --split-input-file | filecheck %s --check-prefix CORES
// RUN: tapestry-opt %s -p 'loom-to-triton{device=h200 numerics=strict}' --split-input-file | filecheck %s --check-prefix EXACT

// An elementwise operation walks the cells of a tensor that starts anywhere as one run.

!x = !loom.tensor<[2, -1] : [6, 9], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @twice over <[2, -1] : [6, 9]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) {
           %s = arith.addf %a, %a : f32
           loom.yield %s : f32
         }
         : (!x) -> !x
  func.return %y : !x
}

// CHECK: triton.kernel @twice(%x_ptr: !triton.ptr<f32>, %y_ptr: !triton.ptr<f32>) schedule <P = 64
// CHECK: %p_mask = triton.compare "<" %p
// CHECK: %a = triton.load %x_ptr[%p] mask %p_mask other 0.000000e+00 : f32
// CHECK-NEXT: %s = arith.addf %a, %a : tensor<64xf32>
// CHECK-NEXT: triton.store %s to %y_ptr[%p] mask %p_mask
// CHECK: func.func @main(%x: memref<4x10xf32>) -> memref<4x10xf32> {
// CHECK-NEXT: %y = triton.allocate : memref<4x10xf32>
// CHECK-NEXT: triton.launch @twice(%x, %y : memref<4x10xf32>, memref<4x10xf32>) grid <[40 by BLOCK_P]> bounds []
// CHECK-SAME: bytes_read = 160 : i64, bytes_written = 160 : i64
// CHECK-NEXT: func.return %y : memref<4x10xf32>
// SMALL: schedule <P = 16

// -----

// Shards cut both map dimensions unevenly: their bounds are arguments, and the grid's.

!x = !loom.tensor<[0, 0] : [6, 9], f32>
!b = !loom.tensor<[0] : [9], f32>
func.func @main(%x: !x, %b: !b) -> !x {
  %y = loom.operation @shift over <[0, 0] : [6, 9]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1), %b : (d0, d1) -> (d1)) outs((d0, d1) -> (d0, d1))
         shards <ranges [[0, 0] : [6, 4], [0, 4] : [1, 9], [1, 4] : [6, 9]]>
         wrap (%a: f32, %c: f32) {
           %s = arith.addf %a, %c : f32
           loom.yield %s : f32
         }
         : (!x, !b) -> !x
  func.return %y : !x
}

// CHECK: triton.kernel @shift({{.*}}, %d0_start: i32, %d0_end: i32, %d1_start: i32, %d1_end: i32)
// CHECK: grid <[d0 * d1 by BLOCK_P]> bounds ["d0", "d1"]
// CHECK-SAME{LITERAL}: shards dense<[[0, 6, 0, 4], [0, 1, 4, 9], [1, 6, 4, 9]]> : tensor<3x4xi64>

// -----

// A product of factors that move apart, folded by add, is a dot, whatever its name is.

!x = !loom.tensor<[0, 0] : [40, 70], f32>
!w = !loom.tensor<[0, 0] : [50, 70], f32>
!y = !loom.tensor<[0, 0] : [40, 50], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = loom.operation @anything over <[0, 0, 0] : [40, 70, 50]> [map, fold, map] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1), %w : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %b: f32) {
           %e = math.exp %a : f32
           %p = arith.mulf %e, %b : f32
           loom.yield %p : f32
         }
         : (!x, !w) -> !y
  func.return %y : !y
}

// CHECK: triton.kernel @anything({{.*}}) schedule <M = 64, N = 64, K = 32
// CHECK: scf.for
// The exponential of a lane that is no point is 1: it must not be summed.
// CHECK: %e = math.exp %a : tensor<64x32xf32>
// CHECK: triton.where {{.*}}, %e, {{.*}} -> tensor<64x32xf32>
// CHECK: triton.dot {{.*}} precision "ieee"
// SMALL: triton.dot {{.*}} precision "tf32"
// CORES: triton.dot {{.*}} precision "bf16x6"
// EXACT: triton.dot {{.*}} precision "ieee"

// -----

// With a vector on one side it is not a matrix product, but a fold.

!x = !loom.tensor<[0, 0] : [40, 70], f32>
!w = !loom.tensor<[0] : [70], f32>
!y = !loom.tensor<[0] : [40], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = loom.operation @vector over <[0, 0] : [40, 70]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1), %w : (d0, d1) -> (d1)) outs((d0) -> (d0))
         wrap (%a: f32, %b: f32) {
           %p = arith.mulf %a, %b : f32
           loom.yield %p : f32
         }
         : (!x, !w) -> !y
  func.return %y : !y
}

// CHECK: triton.kernel @vector({{.*}}) schedule <P = 16, K = 128
// CHECK-NOT: triton.dot
// CHECK: triton.reduce "add" {{.*}} along 1 : i64 : (tensor<16x128xf32>) -> tensor<16xf32>

// -----

// Of a fold that does not commute, blocks are scanned, in order.

loom.monoid @line zero [1.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %m = arith.mulf %a, %c : f32
  %n = arith.mulf %c, %b : f32
  %o = arith.addf %n, %d : f32
  loom.yield %m, %o : f32, f32
}
!x = !loom.tensor<[0, 0] : [40, 70], f32>
!y = !loom.tensor<[0] : [40], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @lines over <[0, 0] : [40, 70]> [map, fold] by @line
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f32) { loom.yield %a, %a : f32, f32 }
         unwrap (%s: f32, %t: f32) { loom.yield %t : f32 }
         : (!x) -> !y
  func.return %y : !y
}

// CHECK-NOT: loom.monoid
// CHECK: triton.kernel @lines({{.*}}) schedule <P = 16, K = 128
// CHECK: triton.scan "line" {{.*}} along 1
// CHECK: triton.reduce "last" {{.*}} along 1

// -----

// Nothing is launched for an output without cells; an empty fold still writes its zero.

!x = !loom.tensor<[0, 0] : [3, 0], f32>
!e = !loom.tensor<[0, 0] : [0, 3], f32>
!y = !loom.tensor<[0] : [3], f32>
!n = !loom.tensor<[0] : [0], f32>
func.func @main(%x: !x, %z: !e) -> (!y, !n) {
  %y = loom.operation @zeros over <[0, 0] : [3, 0]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f32) { loom.yield %a : f32 }
         : (!x) -> !y
  %n = loom.operation @nothing over <[0, 0] : [0, 3]> [map, fold] by @add
         ins(%z : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%a: f32) { loom.yield %a : f32 }
         : (!e) -> !n
  func.return %y, %n : !y, !n
}

// CHECK: triton.launch @zeros
// CHECK-NOT: triton.launch @nothing

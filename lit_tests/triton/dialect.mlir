// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

// Every operation of the dialect, in its own syntax, in the generic one and back.

// CHECK: triton.kernel @halves(%x_ptr: !triton.ptr<f32>, %y_ptr: !triton.ptr<f16>, %d0_start: i32, %d0_end: i32)
// CHECK-SAME: schedule <P = 16, K = 32, warps = 4, stages = 2> ["halves, model.mlir:3"] {
triton.kernel @halves(%x_ptr: !triton.ptr<f32>, %y_ptr: !triton.ptr<f16>, %d0_start: i32, %d0_end: i32)
    schedule <P = 16, K = 32, warps = 4, stages = 2> ["halves, model.mlir:3"] {
  // CHECK-NEXT: %pid = triton.program_id 0 : i32
  %pid = triton.program_id 0 : i32
  // CHECK-NEXT: %size = triton.block_size "BLOCK_P" : i32
  %size = triton.block_size "BLOCK_P" : i32
  // CHECK-NEXT: %count = triton.cdiv %d0_end by "BLOCK_P" : i32 -> i32
  %count = triton.cdiv %d0_end by "BLOCK_P" : i32 -> i32
  // CHECK-NEXT: triton.cover "BLOCK_K" 20 : i64
  triton.cover "BLOCK_K" 20 : i64
  // CHECK-NEXT: %p = triton.arange "BLOCK_P" : tensor<16xi32>
  %p = triton.arange "BLOCK_P" : tensor<16xi32>
  // CHECK-NEXT: %k = triton.arange "BLOCK_K" : tensor<32xi32>
  %k = triton.arange "BLOCK_K" : tensor<32xi32>
  // CHECK-NEXT: %pe = triton.expand_dims %p at 1 : i64 : tensor<16xi32> -> tensor<16x1xi32>
  %pe = triton.expand_dims %p at 1 : i64 : tensor<16xi32> -> tensor<16x1xi32>
  // CHECK-NEXT: %pb = triton.broadcast %pe over ["BLOCK_P", "BLOCK_K"] : tensor<16x1xi32> -> tensor<16x32xi32>
  %pb = triton.broadcast %pe over ["BLOCK_P", "BLOCK_K"] : tensor<16x1xi32> -> tensor<16x32xi32>
  // CHECK-NEXT: %end = triton.broadcast %d0_end : i32 -> tensor<16x32xi32>
  %end = triton.broadcast %d0_end : i32 -> tensor<16x32xi32>
  // CHECK-NEXT: %inside = triton.compare "<" %pb, %end : tensor<16x32xi32>, tensor<16x32xi32> -> tensor<16x32xi1>
  %inside = triton.compare "<" %pb, %end : tensor<16x32xi32>, tensor<16x32xi32> -> tensor<16x32xi1>
  // CHECK-NEXT: %x{{[_0-9]*}} = triton.load %x_ptr[%pb] mask %inside other 0.000000e+00 : f32 : !triton.ptr<f32>, tensor<16x32xi32>, tensor<16x32xi1> -> tensor<16x32xf32>
  %x = triton.load %x_ptr[%pb] mask %inside other 0.0 : f32 : !triton.ptr<f32>, tensor<16x32xi32>, tensor<16x32xi1> -> tensor<16x32xf32>
  // CHECK-NEXT: %w = triton.load %x_ptr[%pb] : !triton.ptr<f32>, tensor<16x32xi32> -> tensor<16x32xf32>
  %w = triton.load %x_ptr[%pb] : !triton.ptr<f32>, tensor<16x32xi32> -> tensor<16x32xf32>
  // CHECK-NEXT: %z = triton.full 0.000000e+00 : f32 over ["BLOCK_P", "BLOCK_K"] : tensor<16x32xf32>
  %z = triton.full 0.0 : f32 over ["BLOCK_P", "BLOCK_K"] : tensor<16x32xf32>
  // CHECK-NEXT: %v = triton.where %inside, %x{{[_0-9]*}}, %z : tensor<16x32xi1>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  %v = triton.where %inside, %x, %z : tensor<16x32xi1>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  // CHECK-NEXT: %t = triton.transpose %v : tensor<16x32xf32> -> tensor<32x16xf32>
  %t = triton.transpose %v : tensor<16x32xf32> -> tensor<32x16xf32>
  // CHECK-NEXT: %square = triton.full 1.000000e+00 : f32 over ["BLOCK_K", "BLOCK_K"] : tensor<32x32xf32>
  %square = triton.full 1.0 : f32 over ["BLOCK_K", "BLOCK_K"] : tensor<32x32xf32>
  // CHECK-NEXT: %d = triton.dot %v, %square, %w precision "ieee" : tensor<16x32xf32>, tensor<32x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  %d = triton.dot %v, %square, %w precision "ieee" : tensor<16x32xf32>, tensor<32x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  // CHECK-NEXT: %m = triton.reduce "max" %d along 1 : i64 : (tensor<16x32xf32>) -> tensor<16xf32> {
  // CHECK-NEXT: ^{{.*}}(%a: f32, %b: f32):
  // CHECK-NEXT:   %c = arith.maximumf %a, %b : f32
  // CHECK-NEXT:   triton.yield %c : f32
  // CHECK-NEXT: }
  %m = triton.reduce "max" %d along 1 : i64 : (tensor<16x32xf32>) -> tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    triton.yield %c : f32
  }
  // CHECK-NEXT: %h = triton.cast %m : tensor<16xf32> -> tensor<16xf16>
  %h = triton.cast %m : tensor<16xf32> -> tensor<16xf16>
  // CHECK-NEXT: %bits = triton.bitcast %m : tensor<16xf32> -> tensor<16xi32>
  %bits = triton.bitcast %m : tensor<16xf32> -> tensor<16xi32>
  // CHECK-NEXT: %uf = triton.cast %bits unsigned : tensor<16xi32> -> tensor<16xf64>
  %uf = triton.cast %bits unsigned : tensor<16xi32> -> tensor<16xf64>
  // CHECK-NEXT: triton.store %h to %y_ptr[%p] : tensor<16xf16>, !triton.ptr<f16>, tensor<16xi32>
  triton.store %h to %y_ptr[%p] : tensor<16xf16>, !triton.ptr<f16>, tensor<16xi32>
}

// CHECK: func.func @main(%x: memref<2x6xf32>) -> memref<12xf16> {
func.func @main(%x: memref<2x6xf32>) -> memref<12xf16> {
  // CHECK-NEXT: %flat = triton.alias %x : memref<2x6xf32> -> memref<12xf32>
  %flat = triton.alias %x : memref<2x6xf32> -> memref<12xf32>
  // CHECK-NEXT: %y = triton.allocate fill 0.000000e+00 : f16 : memref<12xf16>
  %y = triton.allocate fill 0.0 : f16 : memref<12xf16>
  // CHECK-NEXT: triton.launch @halves(%flat, %y : memref<12xf32>, memref<12xf16>) grid <[d0 * 4 by BLOCK_P, 3]> bounds ["d0"]
  // CHECK-SAME{LITERAL}: shards dense<[[0, 5], [5, 12]]> : tensor<2x2xi64>
  triton.launch @halves(%flat, %y : memref<12xf32>, memref<12xf16>) grid <[d0 * 4 by BLOCK_P, 3]> bounds ["d0"]
    shards dense<[[0, 5], [5, 12]]> : tensor<2x2xi64> {bytes_read = 48 : i64, bytes_written = 24 : i64}
  func.return %y : memref<12xf16>
}

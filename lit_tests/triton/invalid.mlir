// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case breaks one rule of the dialect, and only that one.

// CHECK{LITERAL}: P = 12 is not a power of two
triton.kernel @k() schedule <P = 12, warps = 4, stages = 2> [] {
}

// -----

// CHECK{LITERAL}: "BLOCK_P" is not the size of tensor<8xi32>
triton.kernel @k() schedule <P = 16, warps = 4, stages = 2> [] {
  %p = triton.arange "BLOCK_P" : tensor<8xi32>
}

// -----

// CHECK{LITERAL}: the kernel has no block named 'BLOCK_Q'
triton.kernel @k() schedule <P = 16, warps = 4, stages = 2> [] {
  %p = triton.arange "BLOCK_Q" : tensor<16xi32>
}

// -----

// CHECK{LITERAL}: it is only allowed in a triton.kernel
func.func @f() {
  %p = triton.arange "BLOCK_P" : tensor<16xi32>
  func.return
}

// -----

// CHECK{LITERAL}: "BLOCK_K" does not cover 33
triton.kernel @k() schedule <K = 32, warps = 4, stages = 2> [] {
  triton.cover "BLOCK_K" 33 : i64
}

// -----

// CHECK{LITERAL}: tensor<16x1xi32> does not broadcast to tensor<32x32xi32>
triton.kernel @k(%a: tensor<16x1xi32>) schedule <warps = 4, stages = 2> [] {
  %b = triton.broadcast %a : tensor<16x1xi32> -> tensor<32x32xi32>
}

// -----

// CHECK{LITERAL}: tensor<16x32xi32> transposed is not tensor<16x32xi32>
triton.kernel @k(%a: tensor<16x32xi32>) schedule <warps = 4, stages = 2> [] {
  %b = triton.transpose %a : tensor<16x32xi32> -> tensor<16x32xi32>
}

// -----

// CHECK{LITERAL}: "=<" is not one of <, <=, >, >=, ==, !=
triton.kernel @k(%a: tensor<16xi32>) schedule <warps = 4, stages = 2> [] {
  %b = triton.compare "=<" %a, %a : tensor<16xi32>, tensor<16xi32> -> tensor<16xi1>
}

// -----

// CHECK{LITERAL}: a mask and what masked lanes hold go together
triton.kernel @k(%x: !triton.ptr<f32>, %p: tensor<16xi32>, %m: tensor<16xi1>) schedule <warps = 4, stages = 2> [] {
  %v = triton.load %x[%p] mask %m : !triton.ptr<f32>, tensor<16xi32>, tensor<16xi1> -> tensor<16xf32>
}

// -----

// CHECK{LITERAL}: a mask tensor<16x1xi1> does not fit tensor<16xi32>
triton.kernel @k(%x: !triton.ptr<f32>, %p: tensor<16xi32>, %v: tensor<16xf32>, %m: tensor<16x1xi1>) schedule <warps = 4, stages = 2> [] {
  triton.store %v to %x[%p] mask %m : tensor<16xf32>, !triton.ptr<f32>, tensor<16xi32>, tensor<16x1xi1>
}

// -----

// CHECK{LITERAL}: !triton.ptr<f32> does not store tensor<16xf16>
triton.kernel @k(%x: !triton.ptr<f32>, %p: tensor<16xi32>, %v: tensor<16xf16>) schedule <warps = 4, stages = 2> [] {
  triton.store %v to %x[%p] : tensor<16xf16>, !triton.ptr<f32>, tensor<16xi32>
}

// -----

// CHECK{LITERAL}: every side of a dot must be at least 16
triton.kernel @k(%a: tensor<8x16xf32>, %b: tensor<16x16xf32>, %c: tensor<8x16xf32>) schedule <warps = 4, stages = 2> [] {
  %d = triton.dot %a, %b, %c precision "ieee" : tensor<8x16xf32>, tensor<16x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// CHECK{LITERAL}: the combiner must yield a state of (f32)
triton.kernel @k(%x: tensor<16x16xf32>) schedule <warps = 4, stages = 2> [] {
  %m = triton.reduce "max" %x along 1 : i64 : (tensor<16x16xf32>) -> tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    triton.yield
  }
}

// -----

// CHECK{LITERAL}: memref<5xf32> does not hold the cells of memref<2x3xf32>
func.func @f(%x: memref<2x3xf32>) {
  %y = triton.alias %x : memref<2x3xf32> -> memref<5xf32>
  func.return
}

// -----

// CHECK{LITERAL}: there is no triton.kernel @missing
func.func @f(%x: memref<4xf32>) {
  triton.launch @missing(%x : memref<4xf32>) grid <[4]> bounds [] {bytes_read = 0 : i64, bytes_written = 0 : i64}
  func.return
}

// -----

// CHECK{LITERAL}: @k takes (!triton.ptr<f16>), but is given (!triton.ptr<f32>) and 0 bounds
triton.kernel @k(%x: !triton.ptr<f16>) schedule <warps = 4, stages = 2> [] {
}
func.func @f(%x: memref<4xf32>) {
  triton.launch @k(%x : memref<4xf32>) grid <[4]> bounds [] {bytes_read = 0 : i64, bytes_written = 0 : i64}
  func.return
}

// -----

// CHECK{LITERAL}: the grid uses ['d1'], which has no bounds
triton.kernel @k(%a: i32, %b: i32) schedule <warps = 4, stages = 2> [] {
}
func.func @f() {
  triton.launch @k() grid <[d1]> bounds ["d0"] shards dense<[[0, 4]]> : tensor<1x2xi64> {bytes_read = 0 : i64, bytes_written = 0 : i64}
  func.return
}

// -----

// CHECK{LITERAL}: a shard needs 2 numbers
triton.kernel @k(%a: i32, %b: i32) schedule <warps = 4, stages = 2> [] {
}
func.func @f() {
  triton.launch @k() grid <[d0]> bounds ["d0"] shards dense<[[0, 4, 8]]> : tensor<1x3xi64> {bytes_read = 0 : i64, bytes_written = 0 : i64}
  func.return
}

// -----

// CHECK{LITERAL}: tensor<16xf32> is not the bits of tensor<16xi64>
func.func @bits(%a: tensor<16xf32>) {
  %b = triton.bitcast %a : tensor<16xf32> -> tensor<16xi64>
  func.return
}

// -----

// CHECK{LITERAL}: an unsigned cast is between an integer and a float
func.func @unsigned(%a: tensor<16xf32>) {
  %b = triton.cast %a unsigned : tensor<16xf32> -> tensor<16xf16>
  func.return
}

// -----

// CHECK{LITERAL}: rows, of blocks as well, take multiples of 16 bytes
triton.kernel @k(%x: !triton.ptr<f16>, %n: i32) schedule <M = 16, K = 16, warps = 4, stages = 2> [] {
  %d = triton.describe %x at %n shape %n, %n stride 100 blocks ["BLOCK_M", "BLOCK_K"] : !triton.ptr<f16>, i32, i32, i32 -> !triton.descriptor<f16>
}

// -----

// CHECK{LITERAL}: tensor<16x32xf16> is not a block of !triton.descriptor<f16>
triton.kernel @k(%x: !triton.ptr<f16>, %n: i32) schedule <M = 16, K = 16, warps = 4, stages = 2> [] {
  %d = triton.describe %x at %n shape %n, %n stride 64 blocks ["BLOCK_M", "BLOCK_K"] : !triton.ptr<f16>, i32, i32, i32 -> !triton.descriptor<f16>
  %b = triton.load_block %d[%n, %n] : !triton.descriptor<f16>, i32, i32 -> tensor<16x32xf16>
}

// -----

// CHECK{LITERAL}: the kernel has no block named 'GROUP_M'
triton.kernel @k(%n: i32) schedule <M = 16, N = 16, warps = 4, stages = 2> [] {
  %i, %j = triton.swizzle %n, %n of %n, %n by "GROUP_M" : i32, i32, i32, i32 -> i32, i32
}

// -----

// CHECK{LITERAL}: M is said twice
triton.kernel @k() schedule <M = 16, M = 16> [] {
}

// -----

// CHECK{LITERAL}: speed is no parameter of a schedule
triton.kernel @k() schedule <speed = 16> [] {
}

// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case has a body that breaks one rule; invalid.mlir has those of one operation's types.

// CHECK{LITERAL}: @narrow: wrap holds values of type i4; bodies compute on (f64, f32, f16, bf16, i64
func.func @main(%x: !loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32> {
  %y = loom.operation @narrow over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: i32) {
           %n = arith.trunci %c : i32 to i4
           %w = arith.extsi %n : i4 to i32
           loom.yield %w : i32
         } : (!loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32>
  func.return %y : !loom.tensor<[0] : [4], i32>
}

// -----

// CHECK{LITERAL}: @vector: wrap holds values of type vector<4xf32>; bodies compute on
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @vector over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) {
           %v = arith.constant dense<1.0> : vector<4xf32>
           loom.yield %c : f32
         } : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @branches: wrap has 2 blocks; a body is a single one, without branches
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @branches over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) {
           cf.br ^next
         ^next:
           loom.yield %c : f32
         } : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: the wrap body is missing
"loom.kernel"() <{sym_name = "empty", iterators = #loom.iterators<[map]>, in_projections = [],
  extra_projections = [], out_projections = []}> ({}, {}) : () -> ()

// -----

// CHECK: a coordinate is i64
loom.kernel @typed [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: i32) {
  %i = loom.index 0 : i32
  loom.yield %i : i32
}

// -----

// CHECK: property 'dim': Expected attribute i64 but got i32
loom.kernel @typed [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: i64) {
  %i = "loom.index"() <{dim = 0 : i32}> : () -> i64
  loom.yield %i : i64
}

// -----

// CHECK{LITERAL}: @open: wrap does not end with loom.yield
loom.kernel @open [map] ins((d0) -> (d0)) outs() wrap (%c: i64) { "test.termop"(%c) : (i64) -> () }

// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK{LITERAL}: a counter gives words 0 to 3, not 4
func.func @main(%seed: !loom.tensor<[0] : [4], i64>) -> !loom.tensor<[0] : [4], i32> {
  %y = loom.operation @draw over <[0] : [4]> [map]
         ins(%seed : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%s: i64) {
           %bits = loom.random word 4 of %s, %s : i32
           loom.yield %bits : i32
         } : (!loom.tensor<[0] : [4], i64>) -> !loom.tensor<[0] : [4], i32>
  func.return %y : !loom.tensor<[0] : [4], i32>
}

// -----

// CHECK: operand 'seed' at position 0 does not verify
// CHECK: Expected attribute i64 but got i32
func.func @main(%seed: !loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32> {
  %y = "loom.operation"(%seed) <{index_range = #zspace.range<[0] : [4]>, iterators = #loom.iterators<[map]>,
         label = "draw", in_projections = [#zspace.projection<(d0) -> (d0)>], extra_projections = [],
         out_projections = [#zspace.projection<(d0) -> (d0)>], operandSegmentSizes = array<i32: 1, 0>}> ({
    ^bb0(%s: i32):
      %bits = "loom.random"(%s, %s) <{word = 0 : i64}> : (i32, i32) -> i32
      "loom.yield"(%bits) : (i32) -> ()
  }, {}) : (!loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32>
  func.return %y : !loom.tensor<[0] : [4], i32>
}

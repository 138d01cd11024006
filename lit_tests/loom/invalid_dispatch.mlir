// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case applies or merges a kernel wrongly, in one way; expand_shards.mlir has right ones.

// CHECK{LITERAL}: @double: operand 0 holds f64, but the kernel takes f32
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f64>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.application @double over <[0] : [4]> (%x <[0] : [4]>)
         : (!loom.tensor<[0] : [4], f64>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @double: operand 0 has rank 2, but its projection makes rank 1
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.application @double over <[0] : [4]> (%x <[0] : [4]>)
         : (!loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @double: it has 1 operands and 0 selections; the kernel reads 1
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = "loom.application"(%x) <{kernel = @double, index_range = #zspace.range<[0] : [4]>, selections = []}>
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @double: it has 2 operands and 2 selections; the kernel reads 1
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.application @double over <[0] : [4]> (%x <[0] : [4]>, %x <[0] : [4]>)
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @double: operand 0 selects <[2] : [6]>, outside its tensor <[0] : [4]>
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[2] : [6], f32> {
  %y = loom.application @double over <[2] : [6]> (%x <[2] : [6]>)
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[2] : [6], f32>
  func.return %y : !loom.tensor<[2] : [6], f32>
}

// -----

// CHECK{LITERAL}: @double: it has 0 results where the kernel writes 1
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) {
  loom.application @double over <[0] : [4]> (%x <[0] : [4]>) : (!loom.tensor<[0] : [4], f32>) -> ()
  func.return
}

// -----

// CHECK{LITERAL}: @double: <[0, 0] : [4, 4]> has rank 2, but the kernel runs over rank 1
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.application @double over <[0, 0] : [4, 4]> (%x <[0] : [4]>)
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @double: the kernel folds nothing, so it has no states; apply it, not `partial`
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.application @double over <[0] : [4]> partial (%x <[0] : [4]>)
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @double: the kernel folds nothing, so it has no states
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.merge @double over <[0] : [4]> states(%x)
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: property 'partial': false should be of base attribute unit
loom.kernel @total [fold] by @add ins((d0) -> (d0)) outs(() -> ()) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = "loom.application"(%x) <{kernel = @total, index_range = #zspace.range<[0] : [4]>,
         selections = [#zspace.range<[0] : [4]>], partial = false}>
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @total: the merged states do not tile <[0] : [4]>
loom.kernel @total [map, fold] by @add ins((d0, d1) -> (d0, d1)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.merge @total over <[0] : [4]> states(%x, %x)
         : (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @first: state 1 is on <[0] : [2]>, but state 0, a part of the same application's result, is on <[0] : [4]>
loom.kernel @first [map, fold] by @argmax ins((d0, d1) -> (d0, d1)) outs((d0) -> (d0)) wrap (%c: f32) {
  %i = loom.index 1 : i64
  loom.yield %c, %i : f32, i64
} unwrap (%v: f32, %i: i64) { loom.yield %i : i64 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>, %i: !loom.tensor<[0] : [2], i64>) -> !loom.tensor<[0] : [4], i64> {
  %y = loom.merge @first over <[0] : [4]> states(%x, %i)
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [2], i64>) -> !loom.tensor<[0] : [4], i64>
  func.return %y : !loom.tensor<[0] : [4], i64>
}

// -----

// CHECK{LITERAL}: @total: 3 states do not make states of 2 parts
loom.kernel @total [fold] by @argmax ins((d0) -> (d0)) outs(() -> (), () -> ()) wrap (%c: f32) {
  %i = loom.index 0 : i64
  loom.yield %c, %i : f32, i64
}
func.func @main(%x: !loom.tensor<[] : [], f32>, %i: !loom.tensor<[] : [], i64>) -> !loom.tensor<[] : [], i64> {
  %v, %y = loom.merge @total over <[] : []> states(%x, %i, %x)
         : (!loom.tensor<[] : [], f32>, !loom.tensor<[] : [], i64>, !loom.tensor<[] : [], f32>)
         -> (!loom.tensor<[] : [], f32>, !loom.tensor<[] : [], i64>)
  func.return %y : !loom.tensor<[] : [], i64>
}

// -----

// CHECK{LITERAL}: @total: state 0 holds f64, but must hold f32
loom.kernel @total [fold] by @add ins((d0) -> (d0)) outs(() -> ()) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[] : [], f64>) -> !loom.tensor<[] : [], f32> {
  %y = loom.merge @total over <[] : []> states(%x) : (!loom.tensor<[] : [], f64>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @total: state 0 is on <[0] : [2]>, outside <[0] : [1]>
loom.kernel @total [map, fold] by @add ins((d0, d1) -> (d0, d1)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [1], f32> {
  %y = loom.merge @total over <[0] : [1]> states(%x) : (!loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [1], f32>
  func.return %y : !loom.tensor<[0] : [1], f32>
}

// -----

// CHECK{LITERAL}: @total: extra input 0 holds f64, but the kernel takes f32
loom.kernel @total [fold] by @add ins((d0) -> (d0)) extra(() -> ()) outs(() -> ()) wrap (%c: f32) { loom.yield %c : f32 }
  unwrap (%s: f32, %e: f32) { loom.yield %e : f32 }
func.func @main(%x: !loom.tensor<[] : [], f32>, %e: !loom.tensor<[] : [], f64>) -> !loom.tensor<[] : [], f32> {
  %y = loom.merge @total over <[] : []> states(%x) extra(%e)
         : (!loom.tensor<[] : [], f32>, !loom.tensor<[] : [], f64>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// A merge of states that are given, not applied here, is right when they tile.
// CHECK: loom.merge @total over <[0] : [4]> states(%x, %z, %x)
loom.kernel @total [map, fold] by @add ins((d0, d1) -> (d0, d1)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [2], f32>, %z: !loom.tensor<[2] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.merge @total over <[0] : [4]> states(%x, %z, %x)
         : (!loom.tensor<[0] : [2], f32>, !loom.tensor<[2] : [4], f32>, !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

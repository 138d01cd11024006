// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case breaks one rule of the dialect, and only that one.

// CHECK{LITERAL}: @iterators: 1 iterators for an index space of rank 2
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @iterators over <[0, 0] : [4, 4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: unknown iterator 'each'; an index dimension is map, fold or scan
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @bad over <[0] : [4]> [each]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: i13 is not an element type of a tensor
func.func @main(%x: !loom.tensor<[0] : [4], i13>) -> !loom.tensor<[0] : [4], i13> {
  func.return %x : !loom.tensor<[0] : [4], i13>
}

// -----

// CHECK{LITERAL}: @inputs: input 0 is projected from 2 dimensions, but there are 1 here
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @inputs over <[0] : [4]> [map]
         ins(%x : (d0, d1) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @rank: input 0 has rank 1, but its projection makes rank 2
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @rank over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0, d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @bounds: input 0 reads <[1] : [5]>, outside its tensor <[0] : [4]>
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @bounds over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0 + 1))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @writes: output 0 writes <[0] : [8]>, outside its tensor <[0] : [4]>
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @writes over <[0] : [8]> [map]
         ins(%x : (d0) -> (0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @missing: output 0 has 4 cells, but 3 are written
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @missing over <[0] : [3]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @twice: output 0 has cells that are written more than once
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @twice over <[0, 0] : [2, 2]> [map, map]
         ins(%x : (d0, d1) -> (d0))  outs((d0, d1) -> (d0 + d1))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @gap: the shards do not tile the index space
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @gap over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0)) shards <ranges [[0] : [2], [3] : [4]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @overlap: the shards do not tile the index space
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @overlap over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0)) shards <ranges [[0] : [3], [2] : [4]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @outside: the shards do not tile the index space
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @outside over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0)) shards <grid [[0, 5]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @boxes: the shards do not write output 0 as boxes
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @boxes over <[0, 0] : [2, 2]> [map, map]
         ins(%x : (d0, d1) -> (d0))  outs((d0, d1) -> (2 * d0 + d1)) shards <grid [[0, 2], [0, 1, 2]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @cells: wrap takes (f64), but its cells are (f32)
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @cells over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f64) { %d = arith.truncf %c : f64 to f32 loom.yield %d : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @yields: wrap yields (f64), but the outputs hold (f32)
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @yields over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { %d = arith.extf %c : f32 to f64 loom.yield %d : f64 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @scalars: wrap holds test.op; only scalar arith, math and complex operations may
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @scalars over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { %d = "test.op"(%c) : (f32) -> f32 loom.yield %d : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @coordinate: wrap asks for the coordinate of dimension 1; it has [0]
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @coordinate over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { %d = loom.index 1 : i64 loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @fold: it folds, but names no monoid
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = loom.operation @fold over <[0] : [4]> [fold]
         ins(%x : (d0) -> (d0))  outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @mapped: it names the monoid @add, but no dimension is folded
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @mapped over <[0] : [4]> [map] by @add
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @unknown: no monoid @sum folds states of type (f32); built in are add, mul
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = loom.operation @unknown over <[0] : [4]> [fold] by @sum
         ins(%x : (d0) -> (d0))  outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @typed: no monoid @and folds states of type (f32)
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = loom.operation @typed over <[0] : [4]> [fold] by @and
         ins(%x : (d0) -> (d0))  outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @state: unwrap takes (f64), but its cells are (f32)
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = loom.operation @state over <[0] : [4]> [fold] by @add
         ins(%x : (d0) -> (d0))  outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f64) { %d = arith.truncf %s : f64 to f32 loom.yield %d : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @folded: unwrap asks for the coordinate of dimension 0; it has []
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = loom.operation @folded over <[0] : [4]> [fold] by @add
         ins(%x : (d0) -> (d0))  outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32) { %d = loom.index 0 : i64 loom.yield %s : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @unread: it has extra inputs, but no unwrap body that reads them
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32> {
  %y = loom.operation @unread over <[0] : [4]> [fold] by @add
         ins(%x : (d0) -> (d0)) extra(%x : () -> (0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @pointless: it has an unwrap body, but folds nothing
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @pointless over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32) { loom.yield %s : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: there are 1 operands, but 2 operand types
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @bad over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: operand 0 (%y) is used before it is defined
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %z = loom.operation @early over <[0] : [4]> [map]
         ins(%y : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  %y = loom.operation @late over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %z : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: the view: source 0 reads <[1] : [5]>, outside its tensor <[0] : [4]>
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.view %x : (d0) -> (d0 + 1) : !loom.tensor<[0] : [4], f32> -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: the view: it makes f64 cells of f32 cells
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f64> {
  %y = loom.view %x : (d0) -> (d0) : !loom.tensor<[0] : [4], f32> -> !loom.tensor<[0] : [4], f64>
  func.return %y : !loom.tensor<[0] : [4], f64>
}

// -----

// CHECK{LITERAL}: the reshape: it makes 5 cells of 4
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [5], f32> {
  %y = loom.reshape %x : !loom.tensor<[0] : [4], f32> -> !loom.tensor<[0] : [5], f32>
  func.return %y : !loom.tensor<[0] : [5], f32>
}

// -----

// CHECK{LITERAL}: the assembly: its parts do not tile <[0] : [5]>
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [5], f32> {
  %y = loom.assemble %x : !loom.tensor<[0] : [4], f32> -> !loom.tensor<[0] : [5], f32>
  func.return %y : !loom.tensor<[0] : [5], f32>
}

// -----

// CHECK{LITERAL}: @add: this name is a built-in monoid; choose another
loom.monoid @add zero [0 : i32] merge (%a: i32, %b: i32) { loom.yield %a : i32 }

// -----

// CHECK{LITERAL}: @short: merge takes (i32), but its cells are (i32, i32)
loom.monoid @short zero [0 : i32] merge (%a: i32) { loom.yield %a : i32 }

// -----

// CHECK{LITERAL}: @wide: merge yields (i64), but the state is (i32)
loom.monoid @wide zero [0 : i32] merge (%a: i32, %b: i32) { %c = arith.extsi %a : i32 to i64 loom.yield %c : i64 }

// -----

// CHECK{LITERAL}: there is no loom.kernel @gone
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.application @gone over <[0] : [4]> (%x <[0] : [4]>) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @half: operand 0 records <[0] : [4]>, but its projection selects <[0] : [2]>
loom.kernel @half [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [2], f32> {
  %y = loom.application @half over <[0] : [2]> (%x <[0] : [4]>) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [2], f32>
  func.return %y : !loom.tensor<[0] : [2], f32>
}

// -----

// CHECK{LITERAL}: @half: result 0 is !loom.tensor<[0] : [4], f32>, but must be <[0] : [2]> of f32
loom.kernel @half [map] ins((d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.application @half over <[0] : [2]> (%x <[0] : [2]>) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: Operation loom.operaton is not registered
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operaton @bad over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @order: wrap uses a value from outside itself, or before it is defined
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @order over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) {
           %late = math.exp %early : f32
           %early = math.exp %c : f32
           loom.yield %late : f32
         } : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK{LITERAL}: @ranks: input 0 is projected from 2 dimensions, but there are 1 here
loom.kernel @ranks [map] ins((d0, d1) -> (d0)) outs((d0) -> (d0))
  wrap (%c: f32) { loom.yield %c : f32 }

// -----

// CHECK{LITERAL}: @spread: output 0 has 3 cells, but 2 are written
loom.kernel @spread [map] ins((d0) -> (d0)) outs((d0) -> (2 * d0))
  wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [3], f32> {
  %y = loom.application @spread over <[0] : [2]> (%x <[0] : [2]>)
         : (!loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [3], f32>
  func.return %y : !loom.tensor<[0] : [3], f32>
}

// -----

// CHECK{LITERAL}: @total: the merged states do not tile <[0] : [8]>: the ranges do not cover
loom.kernel @total [fold] by @add ins((d0) -> (d0)) outs(() -> ())
  wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[] : [], f32> {
  %a = loom.application @total over <[0] : [3]> partial (%x <[0] : [3]>)
         : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[] : [], f32>
  %b = loom.application @total over <[5] : [8]> partial (%x <[5] : [8]>)
         : (!loom.tensor<[0] : [8], f32>) -> !loom.tensor<[] : [], f32>
  %y = loom.merge @total over <[] : []> states(%a, %b)
         : (!loom.tensor<[] : [], f32>, !loom.tensor<[] : [], f32>) -> !loom.tensor<[] : [], f32>
  func.return %y : !loom.tensor<[] : [], f32>
}

// -----

// CHECK{LITERAL}: @powers: wrap holds math.ipowi, which no executor computes
func.func @main(%x: !loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32> {
  %y = loom.operation @powers over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: i32) { %p = math.ipowi %c, %c : i32 loom.yield %p : i32 }
         : (!loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32>
  func.return %y : !loom.tensor<[0] : [4], i32>
}

// -----

// CHECK{LITERAL}: @stored: wrap computes arith.addf on f8E5M2, which is only stored; arith.extf makes numbers of it to compute with
func.func @main(%x: !loom.tensor<[0] : [4], f8E5M2>) -> !loom.tensor<[0] : [4], f8E5M2> {
  %y = loom.operation @stored over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0))  outs((d0) -> (d0))
         wrap (%c: f8E5M2) { %p = arith.addf %c, %c : f8E5M2 loom.yield %p : f8E5M2 }
         : (!loom.tensor<[0] : [4], f8E5M2>) -> !loom.tensor<[0] : [4], f8E5M2>
  func.return %y : !loom.tensor<[0] : [4], f8E5M2>
}

// A monoid that does not commute folds in row-major order: shards must follow it.

// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1}' --equal-each | filecheck %s --check-prefix ROWS
// RUN: not tapestry-opt %s -p 'loom-shard{grid=1,2}' 2>&1 | filecheck %s --check-prefix COLUMNS
// RUN: not tapestry-opt %s -p 'loom-shard{partition="ranges [[1, 0] : [2, 4], [0, 0] : [1, 4]]"}' 2>&1 | filecheck %s --check-prefix COLUMNS

// ROWS{LITERAL}: shards <grid [[0, 1, 2], [0, 4]]>
// COLUMNS: error: @y cannot be split so: the shards of the fold are not in row-major order, and its monoid does not commute

loom.monoid @last zero [0 : i32, 0 : i32] merge (%a: i32, %p: i32, %b: i32, %q: i32) {
  %zero = arith.constant 0 : i32
  %empty = arith.cmpi eq, %q, %zero : i32
  %v = arith.select %empty, %a, %b : i32
  %r = arith.ori %p, %q : i32
  loom.yield %v, %r : i32, i32
}
func.func @main(%x: !loom.tensor<[0, 0] : [2, 4], i32>) -> !loom.tensor<[] : [], i32> {
  %y = loom.operation @y over <[0, 0] : [2, 4]> [fold, fold] by @last
         ins(%x : (d0, d1) -> (d0, d1)) outs(() -> ())
         wrap (%c: i32) { %one = arith.constant 1 : i32 loom.yield %c, %one : i32, i32 }
         unwrap (%v: i32, %p: i32) { loom.yield %v : i32 }
         : (!loom.tensor<[0, 0] : [2, 4], i32>) -> !loom.tensor<[] : [], i32>
  func.return %y : !loom.tensor<[] : [], i32>
}

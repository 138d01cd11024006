// RUN: tapestry-opt %s -p loom-fuse --split-input-file --equal-each | filecheck %s

// Of a row that is scaled and counted from its end, one cell is computed: the row's factor is read
// beside it. Another reader, of all cells, computes them itself; nothing is stored.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0, 0] : [4, 9], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK-NOT: @scaled over
// CHECK: loom.operation @gather over <[0] : [4]> [map]
// CHECK-NEXT: ins(%ids : (d0) -> (d0), %x : (d0) -> (d0, 0) :> [1, 9], %f : (d0) -> (d0))
// CHECK: wrap (%id: i64, %c: !loom.block<[1, 9], f32>, %g: f32)
// CHECK: loom.operation @sum over <[0, 0] : [4, 9]> [map, fold] by @add
func.func @main(%ids: !ids, %x: !x, %f: !y) -> (!y, !y) {
  %s = loom.operation @scaled over <[0, 0] : [4, 9]> [map, map]
         ins(%x : (i, j) -> (i, j), %f : (i, j) -> (i)) outs((i, j) -> (i, 8 - j))
         wrap (%c: f32, %g: f32) {
           %j = loom.index 1 : i64
           %n = arith.sitofp %j : i64 to f32
           %p = arith.mulf %c, %g : f32
           %r = arith.addf %p, %n : f32
           loom.yield %r : f32
         } : (!x, !y) -> !x
  %a = loom.operation @gather over <[0] : [4]> [map]
         ins(%ids : (i) -> (i), %s : (i) -> (i, 0) :> [1, 9]) outs((i) -> (i))
         wrap (%id: i64, %row: !loom.block<[1, 9], f32>) {
           %nine = arith.constant 9 : i64
           %zero = arith.constant 0 : i64
           %at = arith.remui %id, %nine : i64
           %v = loom.read %row[%zero, %at] : f32
           loom.yield %v : f32
         } : (!ids, !x) -> !y
  %b = loom.operation @sum over <[0, 0] : [4, 9]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %a, %b : !y, !y
}

// -----

// What is folded is read at an index in unwrap; each of the four parts of a row is read there, at
// every other cell.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0, 0] : [4, 18], f32>
!h = !loom.tensor<[0, 0] : [4, 9], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @odd_last over
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
// CHECK-NEXT: extra(%ids : (d0) -> (d0), %x : (d0) -> (d0, 1) :> [1, 17])
// CHECK: loom.read
func.func @main(%ids: !ids, %x: !x) -> !y {
  %e = loom.operation @odd over <[0, 0] : [4, 9]> [map, map]
         ins(%x : (i, j) -> (i, 2 * j + 1)) outs((i, j) -> (i, j))
         wrap (%c: f32) { %r = math.absf %c : f32  loom.yield %r : f32 } : (!x) -> !h
  %y = loom.operation @last over <[0, 0] : [4, 18]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) extra(%ids : (i) -> (i), %e : (i) -> (i, 0) :> [1, 9])
         outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%sum: f32, %id: i64, %row: !loom.block<[1, 9], f32>) {
           %nine = arith.constant 9 : i64
           %zero = arith.constant 0 : i64
           %at = arith.remui %id, %nine : i64
           %v = loom.read %row[%zero, %at] : f32
           %r = arith.addf %sum, %v : f32
           loom.yield %r : f32
         } : (!x, !ids, !h) -> !y
  func.return %y : !y
}

// -----

// An index past the end of a row is an error, and would be none in the tensor that the row is
// computed of: what is a cell of a row there, is one of all rows.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0] : [36], f32>
!h = !loom.tensor<[0, 0] : [4, 9], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @flat over
// CHECK: loom.operation @gather over
func.func @main(%ids: !ids, %x: !x) -> !y {
  %e = loom.operation @flat over <[0, 0] : [4, 9]> [map, map]
         ins(%x : (i, j) -> (9 * i + j)) outs((i, j) -> (i, j))
         wrap (%c: f32) { %r = math.absf %c : f32  loom.yield %r : f32 } : (!x) -> !h
  %y = loom.operation @gather over <[0] : [4]> [map]
         ins(%ids : (i) -> (i), %e : (i) -> (0, 0) :> [4, 9]) outs((i) -> (i))
         wrap (%id: i64, %rows: !loom.block<[4, 9], f32>) {
           %four = arith.constant 4 : i64
           %at = arith.remui %id, %four : i64
           %v = loom.read %rows[%at, %at] : f32
           loom.yield %v : f32
         } : (!ids, !h) -> !y
  func.return %y : !y
}

// -----

// Rows are taken at places, and columns of what is taken: both are, of the tensor itself.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0, 0] : [7, 9], f32>
!h = !loom.tensor<[0, 0] : [4, 9], f32>
!y = !loom.tensor<[0, 0] : [4, 4], f32>
// CHECK-LABEL: @main
// CHECK-NOT: @rows over
// CHECK: loom.operation @rows_columns over <[0, 0] : [4, 4]> [map, map]
// CHECK-NEXT: ins(%ids : (d0, d1) -> (d1), %ids : (d0, d1) -> (d0), %x : (d0, d1) -> (0, 0) :> [7, 9])
// CHECK: wrap (%column: i64, %row: i64, %block: !loom.block<[7, 9], f32>)
// CHECK: %[[TWICE:.*]] = arith.muli %row
// CHECK: loom.read %block[%[[TWICE]], %column] : f32
func.func @main(%ids: !ids, %x: !x) -> !y {
  %r = loom.operation @rows over <[0, 0] : [4, 9]> [map, map]
         ins(%ids : (i, j) -> (i), %x : (i, j) -> (0, j) :> [7, 1]) outs((i, j) -> (i, j))
         wrap (%row: i64, %block: !loom.block<[7, 1], f32>) {
           %zero = arith.constant 0 : i64
           %two = arith.constant 2 : i64
           %at = arith.muli %row, %two : i64
           %v = loom.read %block[%at, %zero] : f32
           loom.yield %v : f32
         } : (!ids, !x) -> !h
  %y = loom.operation @columns over <[0, 0] : [4, 4]> [map, map]
         ins(%ids : (i, j) -> (j), %r : (i, j) -> (i, 0) :> [1, 9]) outs((i, j) -> (i, j))
         wrap (%column: i64, %row: !loom.block<[1, 9], f32>) {
           %zero = arith.constant 0 : i64
           %v = loom.read %row[%zero, %column] : f32
           loom.yield %v : f32
         } : (!ids, !h) -> !y
  func.return %y : !y
}

// -----

// A column past the end of a row is an error, and would be none where two neighbours are read.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0] : [10], f32>
!h = !loom.tensor<[0] : [9], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @pairs over
// CHECK: loom.operation @gather over
func.func @main(%ids: !ids, %x: !x) -> !y {
  %p = loom.operation @pairs over <[0] : [9]> [map]
         ins(%x : (i) -> (i) :> [2]) outs((i) -> (i))
         wrap (%pair: !loom.block<[2], f32>) {
           %zero = arith.constant 0 : i64
           %one = arith.constant 1 : i64
           %a = loom.read %pair[%zero] : f32
           %b = loom.read %pair[%one] : f32
           %c = arith.mulf %a, %b : f32
           loom.yield %c : f32
         } : (!x) -> !h
  %y = loom.operation @gather over <[0] : [4]> [map]
         ins(%ids : (i) -> (i), %p : (i) -> (0) :> [9]) outs((i) -> (i))
         wrap (%id: i64, %all: !loom.block<[9], f32>) {
           %v = loom.read %all[%id] : f32
           loom.yield %v : f32
         } : (!ids, !h) -> !y
  func.return %y : !y
}

// -----

// Nor where a place outside is something else, as the row before the first one is here.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0, 0] : [7, 9], f32>
!h = !loom.tensor<[0, 0] : [4, 9], f32>
!y = !loom.tensor<[0, 0] : [4, 4], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @rows over
// CHECK: loom.operation @columns over
func.func @main(%ids: !ids, %x: !x) -> !y {
  %r = loom.operation @rows over <[0, 0] : [4, 9]> [map, map]
         ins(%ids : (i, j) -> (i), %x : (i, j) -> (0, j) :> [7, 1]) outs((i, j) -> (i, j))
         wrap (%row: i64, %block: !loom.block<[7, 1], f32>) {
           %zero = arith.constant 0 : i64
           %one = arith.constant 1 : i64
           %nothing = arith.constant 0.0 : f32
           %at = arith.subi %row, %one : i64
           %v = loom.read %block[%at, %zero] else %nothing : f32
           loom.yield %v : f32
         } : (!ids, !x) -> !h
  %y = loom.operation @columns over <[0, 0] : [4, 4]> [map, map]
         ins(%ids : (i, j) -> (j), %r : (i, j) -> (i, 0) :> [1, 9]) outs((i, j) -> (i, j))
         wrap (%column: i64, %row: !loom.block<[1, 9], f32>) {
           %zero = arith.constant 0 : i64
           %v = loom.read %row[%zero, %column] : f32
           loom.yield %v : f32
         } : (!ids, !h) -> !y
  func.return %y : !y
}

// -----

// A row has one cell along its first dimension: to ask for another is an error, which would be
// forgotten where that one is read instead.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0, 0] : [7, 9], f32>
!h = !loom.tensor<[0, 0] : [4, 9], f32>
!y = !loom.tensor<[0, 0] : [4, 4], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @rows over
// CHECK: loom.operation @columns over
func.func @main(%ids: !ids, %x: !x) -> !y {
  %r = loom.operation @rows over <[0, 0] : [4, 9]> [map, map]
         ins(%ids : (i, j) -> (i), %x : (i, j) -> (0, j) :> [7, 1]) outs((i, j) -> (i, j))
         wrap (%row: i64, %block: !loom.block<[7, 1], f32>) {
           %zero = arith.constant 0 : i64
           %v = loom.read %block[%row, %zero] : f32
           loom.yield %v : f32
         } : (!ids, !x) -> !h
  %y = loom.operation @columns over <[0, 0] : [4, 4]> [map, map]
         ins(%ids : (i, j) -> (j), %r : (i, j) -> (i, 0) :> [1, 9]) outs((i, j) -> (i, j))
         wrap (%column: i64, %row: !loom.block<[1, 9], f32>) {
           %zero = arith.constant 0 : i64
           %v = loom.read %row[%column, %column] : f32
           loom.yield %v : f32
         } : (!ids, !h) -> !y
  func.return %y : !y
}

// -----

// And a neighbour read, where what moves along it moves along the row too.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0] : [12], f32>
!h = !loom.tensor<[0, 0] : [4, 9], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @hankel over
// CHECK: loom.operation @gather over
func.func @main(%ids: !ids, %x: !x) -> !y {
  %r = loom.operation @hankel over <[0, 0] : [4, 9]> [map, map]
         ins(%x : (i, j) -> (i + j)) outs((i, j) -> (i, j))
         wrap (%c: f32) { %v = math.absf %c : f32 loom.yield %v : f32 } : (!x) -> !h
  %y = loom.operation @gather over <[0] : [4]> [map]
         ins(%ids : (i) -> (i), %r : (i) -> (0, 0) :> [1, 9]) outs((i) -> (i))
         wrap (%column: i64, %row: !loom.block<[1, 9], f32>) {
           %zero = arith.constant 0 : i64
           %v = loom.read %row[%column, %zero] : f32
           loom.yield %v : f32
         } : (!ids, !h) -> !y
  func.return %y : !y
}

// -----

// What is read, but not for the value that is wanted, is not read there: no index is checked.
!ids = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0] : [9], f32>
!s = !loom.tensor<[] : [], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @two over
// CHECK: loom.operation @gather over
func.func @main(%ids: !ids, %x: !x, %f: !s) -> !y {
  %r, %q = loom.operation @two over <[0] : [9]> [map]
         ins(%x : (i) -> (i), %f : (i) -> ()) outs((i) -> (i), (i) -> (i))
         wrap (%c: f32, %g: f32) {
           %v = math.absf %c : f32
           %w = math.absf %g : f32
           loom.yield %v, %w : f32, f32
         } : (!x, !s) -> (!x, !x)
  %y = loom.operation @gather over <[0] : [4]> [map]
         ins(%ids : (i) -> (i), %q : (i) -> (0) :> [9]) outs((i) -> (i))
         wrap (%column: i64, %row: !loom.block<[9], f32>) {
           %v = loom.read %row[%column] : f32
           loom.yield %v : f32
         } : (!ids, !x) -> !y
  func.return %y : !y
}

// -----

// What is taken at places is not taken twice for each that is read of it: that moves more.
!ids = !loom.tensor<[0] : [4096], i64>
!x = !loom.tensor<[0] : [4096], f32>
// CHECK-LABEL: @main
// CHECK: loom.operation @take over
// CHECK: loom.operation @both over
func.func @main(%p: !ids, %q: !ids, %x: !x) -> !x {
  %t = loom.operation @take over <[0] : [4096]> [map]
         ins(%p : (i) -> (i), %x : (i) -> (0) :> [4096]) outs((i) -> (i))
         wrap (%at: i64, %all: !loom.block<[4096], f32>) {
           %v = loom.read %all[%at] : f32
           loom.yield %v : f32
         } : (!ids, !x) -> !x
  %y = loom.operation @both over <[0] : [4096]> [map]
         ins(%p : (i) -> (i), %q : (i) -> (i), %t : (i) -> (0) :> [4096]) outs((i) -> (i))
         wrap (%at: i64, %other: i64, %all: !loom.block<[4096], f32>) {
           %a = loom.read %all[%at] : f32
           %b = loom.read %all[%other] : f32
           %c = arith.addf %a, %b : f32
           loom.yield %c : f32
         } : (!ids, !ids, !x) -> !x
  func.return %y : !x
}

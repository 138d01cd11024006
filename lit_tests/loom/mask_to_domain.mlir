// RUN: tapestry-opt %s -p loom-mask-to-domain --split-input-file --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// EQUAL-NOT: differs

// A sum in which what is masked is zero: the zero of @add, whatever the cells hold.
// CHECK-LABEL: @sum_zero
// CHECK:      domain(d0 - d1 >= 0)
// CHECK-NEXT: wrap (%c: f32) {
// CHECK-NEXT:   loom.yield %c : f32
// CHECK-NEXT: }
// CHECK-NOT:  assumes
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @sum_zero(%x: !x) -> !y {
  %y = loom.operation @sum over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi sge, %i, %j : i64
           %n = arith.constant 0.0 : f32
           %r = arith.select %p, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----
// A window of three behind each point: two conditions, one of them the wrong way round.
// CHECK-LABEL: @window
// CHECK: domain(d0 - d1 >= 0, -d0 + d1 + 2 >= 0)
// CHECK-NEXT: wrap
// CHECK-NEXT: loom.yield %c : f32
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @window(%x: !x) -> !y {
  %y = loom.operation @max over <[0, 0] : [6, 8]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %d = arith.subi %i, %j : i64
           %three = arith.constant 3 : i64
           %late = arith.cmpi slt, %i, %j : i64
           %near = arith.cmpi slt, %d, %three : i64
           %n = arith.constant 0xFF800000 : f32
           %q = arith.select %near, %c, %n : f32
           %r = arith.select %late, %n, %q : f32
           loom.yield %r : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----
// Both conditions at once; numbers of 32 bits; an equality is two rows.
// CHECK-LABEL: @diagonal
// CHECK: domain(d0 - d1 + 1 >= 0, -d0 + d1 - 1 >= 0)
!x = !loom.tensor<[0, 0] : [6, 8], i32>
!y = !loom.tensor<[0] : [6], i32>
func.func @diagonal(%x: !x) -> !y {
  %y = loom.operation @sum over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: i32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %i32 = arith.trunci %i : i64 to i32
           %j32 = arith.trunci %j : i64 to i32
           %one = arith.constant 1 : i32
           %k = arith.addi %i32, %one : i32
           %p = arith.cmpi eq, %k, %j32 : i32
           %many = arith.constant 100 : i32
           %few = arith.cmpi sle, %k, %many : i32
           %b = arith.andi %p, %few : i1
           %n = arith.constant 0 : i32
           %r = arith.select %b, %c, %n : i32
           loom.yield %r : i32 } : (!x) -> !y
  func.return %y : !y
}

// -----
// A mask that is added: -inf, if nothing it is added to is infinite.
// CHECK-LABEL: @added
// CHECK: domain(d0 - d1 >= 0)
// CHECK: {assumes = ["finite(x)"]}
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @added(%x: !x) -> !y {
  %y = loom.operation @max over <[0, 0] : [6, 8]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi sle, %j, %i : i64
           %z = arith.constant 0.0 : f32
           %n = arith.constant 0xFF800000 : f32
           %m = arith.select %p, %z, %n : f32
           %r = arith.addf %c, %m : f32
           loom.yield %r : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----
// Of two values of one name each gets its own before anything is noted of it. Inputs keep theirs.
// CHECK-LABEL: @two_of_one_name
// CHECK: %x2 = loom.view %x
// CHECK: ins(%x2 : {{.*}}, %x : {{.*}})
// CHECK: {assumes = ["finite(x)", "finite(x2)"]}
!x = !loom.tensor<[0, 0] : [6, 6], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @two_of_one_name(%x: !x) -> !y {
  %x_1 = loom.view %x : (i, j) -> (j, i) : (!x) -> !x
  %y = loom.operation @max over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%x_1 : (i, j) -> (i, j), %x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%a: f32, %c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi sle, %j, %i : i64
           %z = arith.constant 0.0 : f32
           %n = arith.constant 0xFF800000 : f32
           %m = arith.select %p, %z, %n : f32
           %s = arith.addf %a, %c : f32
           %r = arith.addf %s, %m : f32
           loom.yield %r : f32 } : (!x, !x) -> !y
  func.return %y : !y
}

// -----
// The lowest finite number is not the zero of @max: a row of which all is masked has it as its maximum.
// CHECK-LABEL: @lowest_number
// CHECK-NOT: domain
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @lowest_number(%x: !x) -> !y {
  %y = loom.operation @max over <[0, 0] : [6, 8]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi sge, %i, %j : i64
           %n = arith.constant -3.4028234663852886e+38 : f32
           %r = arith.select %p, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----
// Where either of two conditions holds is no domain; nor is where two coordinates differ.
// CHECK-LABEL: @either
// CHECK-NOT: domain
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @either(%x: !x) -> (!y, !y) {
  %y = loom.operation @sum over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %four = arith.constant 4 : i64
           %p = arith.cmpi sge, %i, %j : i64
           %q = arith.cmpi sge, %j, %four : i64
           %b = arith.ori %p, %q : i1
           %n = arith.constant 0.0 : f32
           %r = arith.select %b, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  %z = loom.operation @others over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi ne, %i, %j : i64
           %n = arith.constant 0.0 : f32
           %r = arith.select %p, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  func.return %y, %z : !y, !y
}

// -----
// Relative to a maximum that may be -inf, what is masked is NaN there: the maximum has a domain, and
// the sum has none before the two are derived into one pass.
// CHECK-LABEL: @softmax
// CHECK: @max over
// CHECK: domain(d0 - d1 - 2 >= 0)
// CHECK: @total over
// CHECK-NOT: domain
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @softmax(%x: !x) -> !y {
  %s = loom.operation @mask over <[0, 0] : [6, 8]> [map, map] ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %two = arith.constant 2 : i64
           %k = arith.addi %j, %two : i64
           %p = arith.cmpi sge, %i, %k : i64
           %n = arith.constant 0xFF800000 : f32
           %r = arith.select %p, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !x
  %m = loom.operation @max over <[0, 0] : [6, 8]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @total over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y
  func.return %l : !y
}

// -----
// A scan goes on from what is outside of it.
// CHECK-LABEL: @scan
// CHECK-NOT: domain
!x = !loom.tensor<[0, 0] : [6, 8], f32>
func.func @scan(%x: !x) -> !x {
  %y = loom.operation @sums over <[0, 0] : [6, 8]> [map, scan] by @add
         ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi sge, %i, %j : i64
           %n = arith.constant 0.0 : f32
           %r = arith.select %p, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----
// What masked cells are computed of is not folded either, unless something else reads it.
// CHECK-LABEL: @where_read
// CHECK: @scores over
// CHECK: domain(d0 - d1 + 1 >= 0)
// CHECK: @shown over
// CHECK-NOT: domain
// CHECK: @sum over
// CHECK: domain(d0 - d1 >= 0)
// CHECK: @more over
// CHECK: domain(d0 - d1 + 1 >= 0)
// CHECK: @rows over
// CHECK: domain(d0 - d1 >= 0)
!x = !loom.tensor<[0, 0] : [6, 6], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @where_read(%x: !x) -> (!x, !y, !y, !y) {
  %s = loom.operation @scores over <[0, 0, 0] : [6, 6, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %x : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !x
  %t = loom.operation @shown over <[0, 0, 0] : [6, 6, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %x : (i, j, c) -> (c, j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !x
  %y = loom.operation @sum over <[0, 0] : [6, 6]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi sge, %i, %j : i64
           %n = arith.constant 0.0 : f32
           %r = arith.select %p, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  %z = loom.operation @more over <[0, 0] : [6, 6]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i))
         domain(d0 - d1 + 1 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %w = loom.operation @rows over <[0, 0] : [6, 6]> [map, fold] by @add
         ins(%t : (i, j) -> (i, j)) outs((i) -> (i))
         domain(d0 - d1 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %t, %y, %z, %w : !x, !y, !y, !y
}

// -----
// Where each row sees something, its maximum is finite, and the sum has a domain too; so has what
// divides by it.
// CHECK-LABEL: @all_see
// CHECK: @max over
// CHECK: domain(d0 - d1 >= 0)
// CHECK: @total over
// CHECK: domain(d0 - d1 >= 0)
// CHECK: {assumes = ["finite(m)", "finite(max)"]}
// CHECK: @mean over
// CHECK: domain(d0 - d1 >= 0)
// CHECK: {assumes = ["finite(l)", "finite(m)", "finite(max)", "finite(total)", "finite(x)", "nonzero(total)"]}
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @all_see(%x: !x) -> !y {
  %s = loom.operation @mask over <[0, 0] : [6, 8]> [map, map] ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %p = arith.cmpi sge, %i, %j : i64
           %n = arith.constant 0xFF800000 : f32
           %r = arith.select %p, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !x
  %m = loom.operation @max over <[0, 0] : [6, 8]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @total over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y
  %o = loom.operation @mean over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j), %m : (i, j) -> (i), %l : (i, j) -> (i), %x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32, %b: f32, %a: f32, %v: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           %p = arith.divf %e, %a : f32
           %r = arith.mulf %p, %v : f32
           loom.yield %r : f32 } : (!x, !y, !y, !x) -> !y
  func.return %o : !y
}

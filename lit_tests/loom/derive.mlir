// RUN: tapestry-opt %s -p loom-derive --equal-each --split-input-file 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes

// The sum of exponentials relative to the largest cell: one pass, and both results are written.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK:      loom.monoid @max_sum commutative zero [0xff800000 : f32, 0.000000e+00 : f32]
// CHECK-SAME: merge (%max: f32, %sum: f32, %max_1: f32, %sum_1: f32) {
// CHECK-NEXT:   %[[M:.*]] = arith.maximumf %max, %max_1 : f32
// CHECK-NEXT:   %[[NONE:.*]] = arith.constant 0xff800000 : f32
// CHECK-NEXT:   %[[EMPTY:.*]] = arith.cmpf oeq, %[[M]], %[[NONE]] : f32
// CHECK-NEXT:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %[[REF:.*]] = arith.select %[[EMPTY]], %[[ZERO]], %[[M]] : f32
// CHECK-NEXT:   %[[D1:.*]] = arith.subf %max, %[[REF]] : f32
// CHECK-NEXT:   %[[E1:.*]] = math.exp %[[D1]] : f32
// CHECK-NEXT:   %[[S1:.*]] = arith.mulf %sum, %[[E1]] : f32
// CHECK-NEXT:   %[[D2:.*]] = arith.subf %max_1, %[[REF]] : f32
// CHECK-NEXT:   %[[E2:.*]] = math.exp %[[D2]] : f32
// CHECK-NEXT:   %[[S2:.*]] = arith.mulf %sum_1, %[[E2]] : f32
// CHECK-NEXT:   %[[S:.*]] = arith.addf %[[S1]], %[[S2]] : f32
// CHECK-NEXT:   loom.yield %[[M]], %[[S]] : f32, f32
// CHECK-LABEL: @main
// CHECK-NEXT: %l, %m = loom.operation @max_sum over <[0, 0] : [4, 6]> [map, fold] by @max_sum
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
// CHECK:      wrap (%[[X:.*]]: f32) {
// CHECK-NEXT:   %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:   loom.yield %[[X]], %[[ONE]] : f32, f32
// CHECK:      derivation = ["max = max of x1: a part of the state", "sum = sum of exp(-max + x1)",
// EQUAL: @main: equal (certified)
func.func @main(%x: !x) -> (!y, !y) {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y
  func.return %m, %l : !y, !y
}

// -----

// Maps between folds are looked through. What still needs one moves behind the derived operation.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK-NEXT: %l, %m = loom.operation @max_sum over
// CHECK:      %e = loom.operation @exp over
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1), %m : (d0, d1) -> (d0))
// CHECK:      %p = loom.operation @softmax over
// CHECK-NEXT: ins(%e : (d0, d1) -> (d0, d1), %l : (d0, d1) -> (d0))
// EQUAL: @main: equal (certified)
func.func @main(%x: !x) -> !x {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %e = loom.operation @exp over <[0, 0] : [4, 6]> [map, map]
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !x
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%e : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %p = loom.operation @softmax over <[0, 0] : [4, 6]> [map, map]
         ins(%e : (i, j) -> (i, j), %l : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%c: f32, %b: f32) {
           %r = arith.divf %c, %b : f32
           loom.yield %r : f32 } : (!x, !y) -> !x
  func.return %p : !x
}

// -----

// A variance: the state holds sum, count and squares, which merge as Chan, Golub and LeVeque say.
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK:      loom.monoid @mean_n_var commutative zero [0.0{{0*}}e+00 : f32, 0.0{{0*}}e+00 : f32, 0.0{{0*}}e+00 : f32]
// CHECK-SAME: merge (%mean: f32, %n: f32, %var: f32, %mean_1: f32, %n_1: f32, %var_1: f32) {
// CHECK-LABEL: @main
// CHECK-NEXT: %v, %m = loom.operation @mean_var over <[0, 0] : [4, 8]> [map, fold] by @mean_n_var
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
// CHECK:      wrap (%[[X:.*]]: f32) {
// CHECK-NEXT:   %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   loom.yield %[[X]], %[[ONE]], %[[ZERO]] : f32, f32, f32
// CHECK:      "the sum of from mean mean is zero"
// EQUAL: @main: equal (certified)
func.func @main(%x: !x) -> (!y, !y) {
  %m = loom.operation @mean over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32) {
           %n = arith.constant 8.0 : f32
           %r = arith.divf %s, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  %v = loom.operation @var over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %q = arith.mulf %d, %d : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %n = arith.constant 0.125 : f32
           %r = arith.mulf %s, %n : f32
           loom.yield %r : f32 } : (!x, !y) -> !y
  func.return %m, %v : !y, !y
}

// -----

// What else is needed is written over its own dimensions: the largest cell is one for all columns.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!v = !loom.tensor<[0, 0] : [6, 3], f32>
!o = !loom.tensor<[0, 0] : [4, 3], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK-NEXT: %o, %m = loom.operation @max_mix over <[0, 0, 0] : [4, 3, 6]> [map, map, fold]
// CHECK-SAME: by @max_mix
// CHECK-NEXT: ins(%x : (d0, d1, d2) -> (d0, d2), %v : (d0, d1, d2) -> (d2, d1))
// CHECK-NEXT: outs((d0, d1) -> (d0, d1), (d0, d1) -> (d0))
// EQUAL: @main: equal (certified)
func.func @main(%x: !x, %v: !v) -> (!y, !o) {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %o = loom.operation @mix over <[0, 0, 0] : [4, 3, 6]> [map, map, fold] by @add
         ins(%x : (i, d, j) -> (i, j), %m : (i, d, j) -> (i), %v : (i, d, j) -> (j, d))
         outs((i, d) -> (i, d))
         wrap (%c: f32, %b: f32, %a: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           %p = arith.mulf %e, %a : f32
           loom.yield %p : f32 } : (!x, !y, !v) -> !o
  func.return %m, %o : !y, !o
}

// -----

// Two folds that read one mean: the earlier one joins the pass of the later one.
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK-NEXT: %c, %v = loom.operation @mean_squares_cubes over <[0, 0] : [4, 8]> [map, fold]
// CHECK-SAME: by @mean_n_squares_cubes
// CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
// CHECK-NEXT: outs((d0) -> (d0), (d0) -> (d0))
// EQUAL: @main: equal (certified)
func.func @main(%x: !x) -> (!y, !y) {
  %m = loom.operation @mean over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%s: f32) {
           %n = arith.constant 8.0 : f32
           %r = arith.divf %s, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  %v = loom.operation @squares over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %q = arith.mulf %d, %d : f32
           loom.yield %q : f32 } : (!x, !y) -> !y
  %c = loom.operation @cubes over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %q = arith.mulf %d, %d : f32
           %p = arith.mulf %q, %d : f32
           loom.yield %p : f32 } : (!x, !y) -> !y
  func.return %v, %c : !y, !y
}

// -----

// Rows that may fold nothing count their points: only what was folded can have been masked.
!x = !loom.tensor<[0, 0] : [6, 6], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @main
// CHECK-NEXT: %l, %m = loom.operation @max_sum over <[0, 0] : [6, 6]> [map, fold] by @max_sum_n
// CHECK:      domain(d0 - d1 - 2 >= 0)
// CHECK:      unwrap (%max: f32, %sum: f32, %n: f32) {
// CHECK:        arith.cmpf une, %n,
// EQUAL: @main: equal (certified)
func.func @main(%x: !x) -> (!y, !y) {
  %m = loom.operation @max over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) domain(d0 - d1 - 2 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %l = loom.operation @sum over <[0, 0] : [6, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         domain(d0 - d1 - 2 >= 0)
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y
  func.return %m, %l : !y, !y
}

// -----

// Two folds of one name, the later of which needs the earlier one only at its end, stay two.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK-NEXT: %t = loom.operation @sum_sum_0
// CHECK:      unwrap (%sum: f32, %sum_1: f32) {
// CHECK-NEXT:   arith.subf %sum_1, %sum : f32
// EQUAL: @main: equal (certified)
func.func @main(%x: !x) -> !y {
  %s = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %t = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) extra(%s : (i) -> (i)) outs((i) -> (i))
         wrap (%c: f32) {
           %p = arith.mulf %c, %c : f32
           loom.yield %p : f32 }
         unwrap (%q: f32, %m: f32) {
           %d = arith.subf %q, %m : f32
           loom.yield %d : f32 } : (!x, !y) -> !y
  func.return %t : !y
}

// RUN: tapestry-opt %s -p 'loom-group{resident=4 row=64 programs=3}' --equal-each --split-input-file | filecheck %s

// Without named members, operations are put together as long as one kernel can be made of them.

// A map that reads a finished fold for every cell is a second look at the row. What others read of the
// residual sum is one more output; its reader @far moves behind the group.
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @rows
// CHECK:      %[[H:.*]], %{{.*}} = loom.fused @h_sum_scale over <[0, 0] : [4, 8]>
// CHECK-NEXT:     aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
// CHECK-NEXT:     ins(%x, %r)
// CHECK:            loom.yield %{{.*}}, %{{.*}} : !loom.tensor<[0, 0] : [4, 8], f32>, !loom.tensor<[0, 0] : [4, 8], f32>
// CHECK:      loom.operation @far
// CHECK-NEXT:     ins(%[[H]] : (d0, d1) -> (-d0 + 3, d1)
func.func @rows(%x: !x, %r: !x) -> (!x, !x) {
  %h = loom.operation @h over <[0, 0] : [4, 8]> [map, map]
         ins(%x : (i, j) -> (i, j), %r : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32 loom.yield %s : f32 } : (!x, !x) -> !x
  %t = loom.operation @far over <[0, 0] : [4, 8]> [map, map]
         ins(%h : (i, j) -> (3 - i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x
  %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%h : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %y = loom.operation @scale over <[0, 0] : [4, 8]> [map, map]
         ins(%h : (i, j) -> (i, j), %s : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %q = arith.mulf %a, %b : f32 loom.yield %q : f32 } : (!x, !y) -> !x
  func.return %y, %t : !x, !x
}

// -----

// Cells that another point computes are not at hand.
!x = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @other_cells
// CHECK-NOT: loom.fused
func.func @other_cells(%x: !x) -> (!x, !x) {
  %h = loom.operation @h over <[0] : [6]> [map] ins(%x : (i) -> (i)) outs((i) -> (i))
         wrap (%a: f32) { %b = math.exp %a : f32 loom.yield %b : f32 } : (!x) -> !x
  %y = loom.operation @back over <[0] : [6]> [map] ins(%h : (i) -> (5 - i)) outs((i) -> (i))
         wrap (%a: f32) { %b = math.exp %a : f32 loom.yield %b : f32 } : (!x) -> !x
  func.return %h, %y : !x, !x
}

// -----

// Sums of rows and of columns have no dimension in common that a program could have.
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[0] : [8], f32>
// CHECK-LABEL: @rows_and_columns
// CHECK: loom.fused @h_rows
// CHECK: loom.operation @columns
func.func @rows_and_columns(%x: !x) -> (!y, !z) {
  %h = loom.operation @h over <[0, 0] : [4, 8]> [map, map] ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32) { %b = math.exp %a : f32 loom.yield %b : f32 } : (!x) -> !x
  %r = loom.operation @rows over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%h : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %c = loom.operation @columns over <[0, 0] : [8, 4]> [map, fold] by @add
         ins(%h : (j, i) -> (i, j)) outs((j) -> (j)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !z
  func.return %r, %c : !y, !z
}

// -----

// A product with 3 columns is kept while the rows of the other factor pass; one with 5 is too large.
!x = !loom.tensor<[0, 0] : [4, 4], f32>
!v = !loom.tensor<[0, 0] : [4, 3], f32>
!w = !loom.tensor<[0, 0] : [4, 5], f32>
// CHECK-LABEL: @held
// CHECK: loom.fused @s_few over <[0, 0, 0, 0] : [4, 4, 4, 3]>
func.func @held(%x: !x, %v: !v) -> !v {
  %s = loom.operation @s over <[0, 0, 0] : [4, 4, 4]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %x : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !x
  %f = loom.operation @few over <[0, 0, 0] : [4, 3, 4]> [map, map, fold] by @add
         ins(%s : (i, d, j) -> (i, j), %v : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !v) -> !v
  func.return %f : !v
}
// CHECK-LABEL: @not_held
// CHECK-NOT: loom.fused
func.func @not_held(%x: !x, %w: !w) -> !w {
  %s = loom.operation @s over <[0, 0, 0] : [4, 4, 4]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %x : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !x
  %m = loom.operation @many over <[0, 0, 0] : [4, 5, 4]> [map, map, fold] by @add
         ins(%s : (i, d, j) -> (i, j), %w : (i, d, j) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !w) -> !w
  func.return %m : !w
}

// -----

// Products are not whole before all is folded, so a map of each could only read them if they were kept.
!x = !loom.tensor<[0, 0] : [4, 4], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @needed_whole
// CHECK: loom.operation @s
// CHECK: loom.fused @sum_share
func.func @needed_whole(%x: !x) -> !x {
  %s = loom.operation @s over <[0, 0, 0] : [4, 4, 4]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %x : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !x
  %t = loom.operation @sum over <[0, 0] : [4, 4]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %p = loom.operation @share over <[0, 0] : [4, 4]> [map, map]
         ins(%s : (i, j) -> (i, j), %t : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.divf %a, %b : f32 loom.yield %p : f32 } : (!x, !y) -> !x
  func.return %p : !x
}

// -----

// A total has one program: it takes no group in which there are more.
!x = !loom.tensor<[0, 0] : [4, 4], f32>
!y = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @totals
// CHECK: loom.operation @rows
// CHECK: loom.operation @total
func.func @totals(%x: !x) -> !z {
  %r = loom.operation @rows over <[0, 0] : [4, 4]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %t = loom.operation @total over <[0] : [4]> [fold] by @add
         ins(%r : (i) -> (i)) outs(() -> ()) wrap (%a: f32) { loom.yield %a : f32 } : (!y) -> !z
  func.return %t : !z
}

// -----

// Two rows of more than 64 cells are left to a kernel that has more programs; rows of 64 are not.
!x = !loom.tensor<[0, 0] : [2, 65], f32>
!u = !loom.tensor<[0, 0] : [2, 64], f32>
!y = !loom.tensor<[0] : [2], f32>
// CHECK-LABEL: @long_rows
// CHECK-NOT: loom.fused
func.func @long_rows(%x: !x) -> !x {
  %s = loom.operation @sum over <[0, 0] : [2, 65]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %p = loom.operation @share over <[0, 0] : [2, 65]> [map, map]
         ins(%x : (i, j) -> (i, j), %s : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !y) -> !x
  func.return %p : !x
}
// CHECK-LABEL: @short_rows
// CHECK: loom.fused @sum_share
func.func @short_rows(%x: !u) -> !u {
  %s = loom.operation @sum over <[0, 0] : [2, 64]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!u) -> !y
  %p = loom.operation @share over <[0, 0] : [2, 64]> [map, map]
         ins(%x : (i, j) -> (i, j), %s : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!u, !y) -> !u
  func.return %p : !u
}

// -----

// @h and @sum are no group: between them stands @back, which reads other cells of one for the other.
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @leads_back
// CHECK: loom.operation @h
// CHECK: loom.fused @back_sum_scale
func.func @leads_back(%x: !x) -> !x {
  %h = loom.operation @h over <[0, 0] : [4, 8]> [map, map] ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32) { %b = math.exp %a : f32 loom.yield %b : f32 } : (!x) -> !x
  %t = loom.operation @back over <[0, 0] : [4, 8]> [map, map]
         ins(%h : (i, j) -> (3 - i, j)) outs((i, j) -> (i, j))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x
  %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%h : (i, j) -> (i, j), %t : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !y
  %p = loom.operation @scale over <[0, 0] : [4, 8]> [map, map]
         ins(%t : (i, j) -> (i, j), %s : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !y) -> !x
  func.return %p : !x
}

// -----

// Folds of the same rows read them once. What is folded along other dimensions stays apart.
!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
!i = !loom.tensor<[0] : [4], i64>
!z = !loom.tensor<[0] : [8], f32>
// CHECK-LABEL: @beside
// CHECK: loom.operation @columns
// CHECK: loom.fused @greatest_place over <[0, 0] : [4, 8]>
// CHECK-NEXT: aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
// CHECK-NEXT: ins(%x)
func.func @beside(%x: !x) -> (!y, !z, !i) {
  %m = loom.operation @greatest over <[0, 0] : [4, 8]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %c = loom.operation @columns over <[0, 0] : [8, 4]> [map, fold] by @max
         ins(%x : (j, i) -> (i, j)) outs((j) -> (j)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !z
  %p = loom.operation @place over <[0, 0] : [4, 8]> [map, fold] by @argmax
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%a: f32) { %k = loom.index 1 : i64 loom.yield %a, %k : f32, i64 }
         unwrap (%a: f32, %k: i64) { loom.yield %k : i64 } : (!x) -> !i
  func.return %m, %c, %p : !y, !z, !i
}

// -----

// Products that two folds take piece by piece in one walk, of which one finishes with the other's
// result, are a group with both. A fold that needs that result to begin would need the products again.
!x = !loom.tensor<[0, 0] : [4, 4], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @one_walk
// CHECK: loom.fused @s_greatest_sum over <[0, 0, 0] : [4, 4, 4]>
func.func @one_walk(%x: !x) -> !y {
  %s = loom.operation @s over <[0, 0, 0] : [4, 4, 4]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %x : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !x
  %m = loom.operation @greatest over <[0, 0] : [4, 4]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %t = loom.operation @sum over <[0, 0] : [4, 4]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j)) extra(%m : (i) -> (i)) outs((i) -> (i))
         wrap (%a: f32) { loom.yield %a : f32 }
         unwrap (%a: f32, %b: f32) { %r = arith.divf %a, %b : f32 loom.yield %r : f32 } : (!x, !y) -> !y
  func.return %t : !y
}
// CHECK-LABEL: @two_walks
// CHECK: loom.operation @s
// CHECK: loom.fused @greatest_sum
func.func @two_walks(%x: !x) -> !y {
  %s = loom.operation @s over <[0, 0, 0] : [4, 4, 4]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %x : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !x) -> !x
  %m = loom.operation @greatest over <[0, 0] : [4, 4]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  %t = loom.operation @sum over <[0, 0] : [4, 4]> [map, fold] by @add
         ins(%s : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%a: f32, %b: f32) { %r = arith.divf %a, %b : f32 loom.yield %r : f32 } : (!x, !y) -> !y
  func.return %t : !y
}

// -----

// A total that another one finishes with: both are over as many points, and take one walk.
!x = !loom.tensor<[0] : [6], f32>
!u = !loom.tensor<[2] : [8], f32>
!z = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @mean
// CHECK: loom.fused @weight_mean over <[0] : [6]>
// CHECK-NEXT: aligned((d0) -> (d0), (d0) -> (d0 + 2))
func.func @mean(%w: !x, %x: !u) -> !z {
  %t = loom.operation @weight over <[0] : [6]> [fold] by @add
         ins(%w : (i) -> (i)) outs(() -> ()) wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !z
  %m = loom.operation @mean over <[2] : [8]> [fold] by @add
         ins(%x : (i) -> (i)) extra(%t : () -> ()) outs(() -> ())
         wrap (%a: f32) { loom.yield %a : f32 }
         unwrap (%a: f32, %b: f32) { %r = arith.divf %a, %b : f32 loom.yield %r : f32 } : (!u, !z) -> !z
  func.return %m : !z
}

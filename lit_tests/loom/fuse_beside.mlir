// RUN: tapestry-opt %s -p 'loom-fuse{kinds=beside}' --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p 'loom-fuse{kinds=beside},loom-fuse{kinds=beside}' --split-input-file | filecheck %s

// Two folds of one tensor are one pass over it, by the product of their monoids.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK:      loom.monoid @add_max commutative zero [0.000000e+00 : f32, 0xff800000 : f32] merge (%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[D:.*]]: f32) {
// CHECK-NEXT:   %[[S:.*]] = arith.addf %[[A]], %[[C]] : f32
// CHECK-NEXT:   %[[M:.*]] = arith.maximumf %[[B]], %[[D]] : f32
// CHECK-NEXT:   loom.yield %[[S]], %[[M]] : f32, f32
// CHECK-LABEL: @folds
func.func @folds(%x: !x, %b: !y) -> (!y, !y) {
  // CHECK-NEXT: %s, %m = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @add_max
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: extra(%b : (d0) -> (d0))
  // CHECK-NEXT: outs((d0) -> (d0), (d0) -> (-d0 + 3))
  // CHECK:      wrap (%[[X:.*]]: f32) {
  // CHECK-NEXT:   %[[E:.*]] = math.exp %[[X]] : f32
  // CHECK-NEXT:   loom.yield %[[E]], %[[E]] : f32, f32
  // CHECK:      unwrap (%[[S:.*]]: f32, %[[M:.*]]: f32, %[[BB:.*]]: f32) {
  // CHECK-NEXT:   %[[R:.*]] = arith.addf %[[M]], %[[BB]] : f32
  // CHECK-NEXT:   loom.yield %[[S]], %[[R]] : f32, f32
  // CHECK-NOT:  loom.operation
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !y
  %m = loom.operation @m over <[0, 0] : [4, 6]> [map, fold] by @max ins(%x : (d0, d1) -> (d0, d1))
         extra(%b : (d0) -> (d0)) outs((d0) -> (3 - d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 }
         unwrap (%c: f32, %e: f32) { %r = arith.addf %c, %e : f32 loom.yield %r : f32 } : (!x, !y) -> !y
  func.return %s, %m : !y, !y
}

// -----

// Three matrix products of one factor, the second before what reads the first.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 5], f32>
!y = !loom.tensor<[0, 0] : [4, 5], f32>
// CHECK-LABEL: @products
func.func @products(%x: !x, %w: !w, %u: !w, %t: !w) -> (!y, !y, !y) {
  // CHECK-NEXT: %q, %k, %v = loom.operation @q_k_v over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add_x3
  // CHECK:      loom.operation @e over
  // CHECK-NEXT: ins(%q
  // CHECK-NOT:  loom.operation
  %q = loom.operation @q over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %r = arith.mulf %c, %d : f32 loom.yield %r : f32 } : (!x, !w) -> !y
  %e = loom.operation @e over <[0, 0] : [4, 5]> [map, map] ins(%q : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!y) -> !y
  %k = loom.operation @k over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %u : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %r = arith.mulf %c, %d : f32 loom.yield %r : f32 } : (!x, !w) -> !y
  %v = loom.operation @v over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %t : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %r = arith.mulf %c, %d : f32 loom.yield %r : f32 } : (!x, !w) -> !y
  func.return %e, %k, %v : !y, !y, !y
}

// -----

// Not beside one another: the second needs the first, through what stands between; or they are over
// different points; or 16-bit floats would be rounded on the way, which a sum by itself is not.
!x = !loom.tensor<[0] : [6], f32>
!h = !loom.tensor<[0] : [6], bf16>
!y = !loom.tensor<[] : [], f32>
!z = !loom.tensor<[] : [], bf16>
// CHECK-LABEL: @apart
func.func @apart(%x: !x, %h: !h) -> (!y, !y, !z, !z) {
  // CHECK-NEXT: loom.operation @s over
  // CHECK:      loom.operation @n over
  // CHECK:      loom.operation @t over
  // CHECK:      loom.operation @u over
  // CHECK:      loom.operation @f over
  // CHECK:      loom.operation @g over
  %s = loom.operation @s over <[0] : [6]> [fold] by @add ins(%x : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @n over <[] : []> [] ins(%s : () -> ()) outs(() -> ())
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!y) -> !y
  %t = loom.operation @t over <[0] : [6]> [fold] by @max ins(%x : (d0) -> (d0), %n : (d0) -> ()) outs(() -> ())
         wrap (%c: f32, %d: f32) { %r = arith.addf %c, %d : f32 loom.yield %r : f32 } : (!x, !y) -> !y
  %u = loom.operation @u over <[0] : [5]> [fold] by @max ins(%x : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %f = loom.operation @f over <[0] : [6]> [fold] by @add ins(%h : (d0) -> (d0)) outs(() -> ())
         wrap (%c: bf16) { loom.yield %c : bf16 } : (!h) -> !z
  %g = loom.operation @g over <[0] : [6]> [fold] by @max ins(%h : (d0) -> (d0)) outs(() -> ())
         wrap (%c: bf16) { loom.yield %c : bf16 } : (!h) -> !z
  func.return %t, %u, %f, %g : !y, !y, !z, !z
}

// -----

// Maps of one cell from inputs to results are one kernel, not one after another.
!n = !loom.tensor<[] : [], i64>
// CHECK-LABEL: @counters
// CHECK-NEXT: %p, %q, %r = loom.operation @p_q_r over <[] : []> []
// CHECK-NEXT: ins(%a : () -> (), %b : () -> (), %c : () -> ())
// CHECK-NOT:  loom.operation
func.func @counters(%a: !n, %b: !n, %c: !n) -> (!n, !n, !n) {
  %p = loom.operation @p over <[] : []> [] ins(%a : () -> ()) outs(() -> ())
         wrap (%x: i64) { %1 = arith.constant 1 : i64 %y = arith.addi %x, %1 : i64 loom.yield %y : i64 } : (!n) -> !n
  %q = loom.operation @q over <[] : []> [] ins(%b : () -> ()) outs(() -> ())
         wrap (%x: i64) { %1 = arith.constant 1 : i64 %y = arith.addi %x, %1 : i64 loom.yield %y : i64 } : (!n) -> !n
  %r = loom.operation @r over <[] : []> [] ins(%c : () -> ()) outs(() -> ())
         wrap (%x: i64) { %1 = arith.constant 1 : i64 %y = arith.addi %x, %1 : i64 loom.yield %y : i64 } : (!n) -> !n
  func.return %p, %q, %r : !n, !n, !n
}

// -----

// What is read on is not joined so: it may become part of what reads it.
!n = !loom.tensor<[] : [], i64>
// CHECK-LABEL: @read_on
// CHECK: loom.operation @p over
// CHECK: loom.operation @q over
func.func @read_on(%a: !n, %b: !n) -> (!n, !n) {
  %p = loom.operation @p over <[] : []> [] ins(%a : () -> ()) outs(() -> ())
         wrap (%x: i64) { %1 = arith.constant 1 : i64 %y = arith.addi %x, %1 : i64 loom.yield %y : i64 } : (!n) -> !n
  %q = loom.operation @q over <[] : []> [] ins(%b : () -> ()) outs(() -> ())
         wrap (%x: i64) { %1 = arith.constant 1 : i64 %y = arith.addi %x, %1 : i64 loom.yield %y : i64 } : (!n) -> !n
  %r = loom.operation @r over <[] : []> [] ins(%p : () -> ()) outs(() -> ())
         wrap (%x: i64) { %1 = arith.constant 2 : i64 %y = arith.muli %x, %1 : i64 loom.yield %y : i64 } : (!n) -> !n
  func.return %q, %r : !n, !n
}

// -----

// Nor are maps of more cells, which have more to do.
!x = !loom.tensor<[0] : [2], f32>
// CHECK-LABEL: @many
// CHECK: loom.operation @p over
// CHECK: loom.operation @q over
func.func @many(%a: !x, %b: !x) -> (!x, !x) {
  %p = loom.operation @p over <[0] : [2]> [map] ins(%a : (i) -> (i)) outs((i) -> (i))
         wrap (%x: f32) { %y = arith.addf %x, %x : f32 loom.yield %y : f32 } : (!x) -> !x
  %q = loom.operation @q over <[0] : [2]> [map] ins(%b : (i) -> (i)) outs((i) -> (i))
         wrap (%x: f32) { %y = arith.mulf %x, %x : f32 loom.yield %y : f32 } : (!x) -> !x
  func.return %p, %q : !x, !x
}

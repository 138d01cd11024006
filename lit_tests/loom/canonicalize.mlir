// RUN: tapestry-opt %s -p loom-canonicalize --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p loom-canonicalize,loom-canonicalize --split-input-file | filecheck %s

// The index space starts at 0 and has its maps first, in the order of what is written, without the
// dimension of one point; operands are those that are used, as they are used.
!x = !loom.tensor<[0, 0] : [5, 6], f32>
!w = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[0, 0] : [5, 4], f32>
// CHECK-LABEL: @points
func.func @points(%x: !x, %w: !w, %u: !w) -> !y {
  // CHECK-NEXT: loom.operation @s over <[0, 0, 0] : [5, 4, 6]> [map, map, fold] by @add
  // CHECK-NEXT: ins(%w : (d0, d1, d2) -> (d2), %x : (d0, d1, d2) -> (d0, d2))
  // CHECK-NEXT: extra(%w : (d0, d1) -> (d1 + 1))
  // CHECK-NEXT: outs((d0, d1) -> (d0, -d1 + 3))
  // CHECK-NEXT: shards <grid {{\[\[}}0, 5], [0, 2, 4], [0, 3, 6{{\]\]}}>
  // CHECK-NEXT: wrap (%[[W:.*]]: f32, %[[X:.*]]: f32) {
  // CHECK-NEXT:   %[[I:.*]] = loom.index 1 : i64
  // CHECK-NEXT:   %[[TWO:.*]] = arith.constant 2 : i64
  // CHECK-NEXT:   arith.addi %[[I]], %[[TWO]] : i64
  %s = loom.operation @s over <[0, 2, 7, 0] : [6, 6, 8, 5]> [fold, map, map, map] by @add
         ins(%u : (d0, d1, d2, d3) -> (d0), %x : (d0, d1, d2, d3) -> (d3, d0), %w : (d0, d1, d2, d3) -> (d0))
         extra(%w : (d0, d1, d2) -> (d0 + d1 - 8)) outs((d0, d1, d2) -> (d2, 5 - d0))
         shards <grid [[0, 3, 6], [2, 4, 6], [7, 8], [0, 5]]>
         wrap (%c: f32, %d: f32, %e: f32) {
           %n = arith.negf %c : f32
           %i = loom.index 1 : i64
           %f = arith.sitofp %i : i64 to f32
           %p = arith.mulf %e, %f : f32
           %q = arith.mulf %p, %d : f32
           loom.yield %q : f32
         }
         unwrap (%a: f32, %b: f32) { %r = arith.addf %a, %b : f32 loom.yield %r : f32 } : (!w, !x, !w, !w) -> !y
  func.return %s : !y
}

// -----

// What is not read is not written, nor folded; what is computed twice is computed once.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
loom.monoid @both commutative zero [0.0 : f32, 0xff800000 : f32]
  merge (%a: f32, %b: f32, %c: f32, %d: f32) {
    %s = arith.addf %a, %c : f32
    %m = arith.maximumf %b, %d : f32
    loom.yield %s, %m : f32, f32
  }
// CHECK-LABEL: @unused
func.func @unused(%x: !x, %w: !x) -> (!y, !y) {
  // CHECK-NEXT: %[[M:.*]] = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @max
  // CHECK-NEXT: ins(%w : (d0, d1) -> (d0, d1))
  // CHECK:      func.return %[[M]], %[[M]]
  %s, %m = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @both
         ins(%x : (d0, d1) -> (d0, d1), %w : (d0, d1) -> (d0, d1)) outs((d0) -> (d0), (d0) -> (d0))
         wrap (%c: f32, %d: f32) { loom.yield %c, %d : f32, f32 } : (!x, !x) -> (!y, !y)
  %n = loom.operation @n over <[0, 2] : [6, 6]> [fold, map] by @max ins(%w : (d0, d1) -> (d1 - 2, d0))
         outs((d0) -> (d0 - 2)) wrap (%d: f32) { loom.yield %d : f32 } : (!x) -> !y
  func.return %m, %n : !y, !y
}

// -----

// A fold of one point is merged with the zero: it stays a fold.
!x = !loom.tensor<[0] : [1], f32>
!y = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @one
func.func @one(%x: !x) -> !y {
  // CHECK-NEXT: loom.operation @s over <[0] : [1]> [fold] by @add
  // CHECK-NEXT: ins(%x : (d0) -> (d0))
  %s = loom.operation @s over <[3, 0, 0] : [4, 1, 1]> [map, fold, fold] by @add ins(%x : (d0, d1, d2) -> (d0 + d1 + d2 - 3))
         outs((d0) -> ()) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %s : !y
}

// -----

// The position of the maximum is folded with the maximum, which nothing reads.
!x = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[] : [], f32>
!i = !loom.tensor<[] : [], i64>
// CHECK-LABEL: @position
func.func @position(%x: !x) -> !i {
  // CHECK-NEXT: loom.operation @s over <[0] : [6]> [fold] by @argmax
  // CHECK:      unwrap (%{{.*}}: f32, %[[I:.*]]: i64) {
  // CHECK-NEXT:   loom.yield %[[I]] : i64
  %m, %p = loom.operation @s over <[0] : [6]> [fold] by @argmax ins(%x : (d0) -> (d0))
             outs(() -> (), () -> ())
             wrap (%c: f32) { %i = loom.index 0 : i64 loom.yield %c, %i : f32, i64 } : (!x) -> (!y, !i)
  func.return %p : !i
}

// RUN: tapestry-opt %s -p 'loom-fuse{cells=8}' --equal-each --split-input-file | filecheck %s

// A sum of sums is one sum, over what both fold, where each cell is read once. A scale is applied
// after it, before what the second does.
!x = !loom.tensor<[0, 0, 0] : [4, 8, 6], f32>
!g = !loom.tensor<[0] : [32], f32>
!s = !loom.tensor<[0] : [8], f32>
// CHECK-LABEL: @sums
func.func @sums(%x: !x) -> !s {
  // CHECK-NEXT: %s = loom.operation @g_s over <[0, 0, 0] : [8, 4, 6]> [map, fold, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1, d2) -> (d1, d0, d2))
  // CHECK-NEXT: outs((d0) -> (d0))
  // CHECK-NEXT: domain(-d0 + d2 >= 0)
  // CHECK-NEXT: wrap (%[[X:.*]]: f32) {
  // CHECK:        loom.index 1
  // CHECK:      unwrap (%[[S:.*]]: f32) {
  // CHECK:        arith.mulf %{{.*}}, %[[S]]
  // CHECK:        math.exp
  // CHECK-NOT:  loom.operation
  %g = loom.operation @g over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (8 * d0 + d1)) domain(d2 - d1 >= 0)
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %f = arith.sitofp %i : i64 to f32
           %r = arith.mulf %c, %f : f32
           loom.yield %r : f32 }
         unwrap (%c: f32) {
           %h = arith.constant 0.5 : f32
           %r = arith.mulf %h, %c : f32
           loom.yield %r : f32 } : (!x) -> !g
  %s = loom.operation @s over <[0, 0] : [8, 4]> [map, fold] by @add
         ins(%g : (d0, d1) -> (d0 + 8 * d1)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!g) -> !s
  func.return %s : !s
}

// -----

// Products of matrices for each head, summed over the heads, are products still: both factors have
// heads. Summed over their columns they would be none.
!x = !loom.tensor<[0, 0, 0] : [3, 4, 6], f32>
!w = !loom.tensor<[0, 0, 0] : [3, 6, 5], f32>
!p = !loom.tensor<[0, 0, 0] : [3, 4, 5], f32>
!h = !loom.tensor<[0, 0] : [4, 5], f32>
!c = !loom.tensor<[0, 0] : [3, 4], f32>
// CHECK-LABEL: @heads
func.func @heads(%x: !x, %w: !w) -> !h {
  // CHECK-NEXT: %s = loom.operation @p_s over <[0, 0, 0, 0] : [4, 5, 3, 6]> [map, map, fold, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1, d2, d3) -> (d2, d0, d3), %w : (d0, d1, d2, d3) -> (d2, d3, d1))
  %p = loom.operation @p over <[0, 0, 0, 0] : [3, 4, 5, 6]> [map, map, map, fold] by @add
         ins(%x : (d0, d1, d2, d3) -> (d0, d1, d3), %w : (d0, d1, d2, d3) -> (d0, d3, d2))
         outs((d0, d1, d2) -> (d0, d1, d2))
         wrap (%a: f32, %b: f32) { %r = arith.mulf %a, %b : f32 loom.yield %r : f32 } : (!x, !w) -> !p
  %s = loom.operation @s over <[0, 0, 0] : [4, 5, 3]> [map, map, fold] by @add
         ins(%p : (d0, d1, d2) -> (d2, d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) { loom.yield %a : f32 } : (!p) -> !h
  func.return %s : !h
}
// CHECK-LABEL: @columns
func.func @columns(%x: !x, %w: !w) -> !c {
  // CHECK-NEXT: loom.operation @p over
  // CHECK:      loom.operation @s over
  %p = loom.operation @p over <[0, 0, 0, 0] : [3, 4, 5, 6]> [map, map, map, fold] by @add
         ins(%x : (d0, d1, d2, d3) -> (d0, d1, d3), %w : (d0, d1, d2, d3) -> (d0, d3, d2))
         outs((d0, d1, d2) -> (d0, d1, d2))
         wrap (%a: f32, %b: f32) { %r = arith.mulf %a, %b : f32 loom.yield %r : f32 } : (!x, !w) -> !p
  %s = loom.operation @s over <[0, 0, 0] : [3, 4, 5]> [map, map, fold] by @add
         ins(%p : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) { loom.yield %a : f32 } : (!p) -> !c
  func.return %s : !c
}

// -----

// Not one: another monoid; a sum that is read elsewhere too; a sum rounded in between; the
// exponential of a sum; cells that are read twice; less than 8 cells that are left.
!x = !loom.tensor<[0, 0, 0] : [4, 8, 6], f32>
!g = !loom.tensor<[0, 0] : [4, 8], f32>
!b = !loom.tensor<[0, 0] : [4, 8], bf16>
!s = !loom.tensor<[0] : [8], f32>
!t = !loom.tensor<[0] : [4], f32>
!r = !loom.tensor<[0] : [8], bf16>
// CHECK-LABEL: @apart
func.func @apart(%x: !x, %y: !b) -> (!s, !g, !s, !r, !s, !s, !t) {
  // CHECK: @g over
  // CHECK: @max over
  // CHECK: @h over
  // CHECK: @kept over
  // CHECK: @i over
  // CHECK: @rounded over
  // CHECK: @j over
  // CHECK: @exponential over
  // CHECK: @k over
  // CHECK: @twice over
  // CHECK: @l over
  // CHECK: @few over
  %g = loom.operation @g over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !g
  %max = loom.operation @max over <[0, 0] : [8, 4]> [map, fold] by @max
         ins(%g : (d0, d1) -> (d1, d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!g) -> !s
  %h = loom.operation @h over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !g
  %kept = loom.operation @kept over <[0, 0] : [8, 4]> [map, fold] by @add
         ins(%h : (d0, d1) -> (d1, d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!g) -> !s
  %i = loom.operation @i over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
         ins(%y : (d0, d1, d2) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: bf16) { loom.yield %c : bf16 } : (!b) -> !b
  %rounded = loom.operation @rounded over <[0, 0] : [8, 4]> [map, fold] by @add
         ins(%i : (d0, d1) -> (d1, d0)) outs((d0) -> (d0)) wrap (%c: bf16) { loom.yield %c : bf16 } : (!b) -> !r
  %j = loom.operation @j over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !g
  %exponential = loom.operation @exponential over <[0, 0] : [8, 4]> [map, fold] by @add
         ins(%j : (d0, d1) -> (d1, d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!g) -> !s
  %k = loom.operation @k over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!x) -> !g
  %twice = loom.operation @twice over <[0, 0, 0] : [8, 4, 2]> [map, fold, fold] by @add
         ins(%k : (d0, d1, d2) -> (d1, d0)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!g) -> !s
  %l = loom.operation @l over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = arith.mulf %c, %c : f32 loom.yield %r : f32 } : (!x) -> !g
  %few = loom.operation @few over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%l : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!g) -> !t
  func.return %max, %h, %kept, %rounded, %exponential, %twice, %few : !s, !g, !s, !r, !s, !s, !t
}

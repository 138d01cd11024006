// RUN: tapestry-opt %s -p 'loom-group{ops=s,m},loom-group{ops=t,own},loom-to-triton' | filecheck %s
// RUN: tapestry-opt %s -p 'loom-group{ops=s,m},loom-group{ops=t,own},loom-to-triton' -t triton | filecheck %s --check-prefix PRINTED
// RUN: tapestry-opt %s -p 'loom-group{ops=s,m},loom-group{ops=t,own},loom-to-triton{schedules="s_m: M = 64, C = 64, K = 64, segments = 2"}' | filecheck %s --check-prefix SEGMENTS

// A step of a loop that multiplies tiles masks what it folds only where its block is on the
// boundary: where the first row may be in front of the last column.

// CHECK:      scf.for
// CHECK:        %[[S:.*]] = triton.dot
// CHECK:        %[[LAST:.*]] = arith.addi %k_start, %{{[0-9]+}} : i32
// CHECK:        %[[LEAST:.*]] = arith.subi %m_start, %[[LAST]] : i32
// CHECK:        %[[INSIDE:.*]] = triton.compare ">=" %[[LEAST]], %{{.*}} : i32, i32 -> i1
// CHECK:        %[[CHOSEN:.*]] = scf.if %[[INSIDE]] -> ([[TILE:.*]]) {
// CHECK-NEXT:     scf.yield %[[S]] : [[TILE]]
// CHECK-NEXT:   } else {
// CHECK:          triton.compare ">="
// CHECK:          %[[WHERE:.*]] = triton.where %{{.*}}, %[[S]]
// CHECK-NEXT:     scf.yield %[[WHERE]] : [[TILE]]
// CHECK:        triton.reduce "{{.*}}" %[[CHOSEN]]

// PRINTED:      if m_start - (k_start + (BLOCK_K - 1)) >= 0:
// PRINTED-NEXT:     chosen = acc_2
// PRINTED-NEXT: else:
// PRINTED-NEXT:     chosen = tl.where(m[:, None] - k[None, :] >= 0, acc_2, float("-inf"))
// PRINTED-NEXT: acc_block = tl.reduce(chosen, 1, combine_max)

// Of two loops, the first has no masks.
// SEGMENTS:     scf.for
// SEGMENTS-NOT: triton.where
// SEGMENTS:     scf.for
// SEGMENTS:     scf.if
// SEGMENTS:     triton.where

// What a program itself chooses by, it chooses cell by cell: its sums may leave the range of i32.
// CHECK-LABEL: triton.kernel @t_own
// CHECK:       scf.for
// CHECK-NOT:   scf.if
// CHECK:       triton.where

!x = !loom.tensor<[0, 0] : [256, 64], f16>
!s = !loom.tensor<[0, 0] : [256, 256], f32>
!m = !loom.tensor<[0] : [256], f32>
func.func @main(%q: !x, %k: !x) -> !m {
  %s = loom.operation @s over <[0, 0, 0] : [256, 256, 64]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f16, %b: f16) {
           %x = arith.extf %a : f16 to f32
           %y = arith.extf %b : f16 to f32
           %r = arith.mulf %x, %y : f32
           loom.yield %r : f32
         } : (!x, !x) -> !s
  %m = loom.operation @m over <[0, 0] : [256, 256]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) domain(d0 - d1 >= 0)
         wrap (%a: f32) { loom.yield %a : f32 } : (!s) -> !m
  func.return %m : !m
}
func.func @chosen(%q: !x, %k: !x) -> !m {
  %s = loom.operation @t over <[0, 0, 0] : [256, 256, 64]> [map, map, fold] by @add
         ins(%q : (i, j, c) -> (i, c), %k : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
         wrap (%a: f16, %b: f16) {
           %x = arith.extf %a : f16 to f32
           %y = arith.extf %b : f16 to f32
           %r = arith.mulf %x, %y : f32
           loom.yield %r : f32
         } : (!x, !x) -> !s
  %m = loom.operation @own over <[0, 0] : [256, 256]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%a: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %in = arith.cmpi sge, %i, %j : i64
           %zero = arith.constant 0.0 : f32
           %r = arith.select %in, %a, %zero : f32
           loom.yield %r : f32
         } : (!s) -> !m
  func.return %m : !m
}

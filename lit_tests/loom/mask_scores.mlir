// RUN: tapestry-opt %s -p loom-mask-to-domain --equal-each --split-input-file | filecheck %s

// Scores masked with a number near the least: each row sees itself, and what it sees is a sum of
// products. So the number counts for nothing, in the maximum and in what is folded relative to it.
// CHECK-LABEL: @scores
// CHECK: @s over
// CHECK: domain(d0 - d1 >= 0)
// CHECK: @peak over
// CHECK: domain(d0 - d1 >= 0)
// CHECK: {assumes = ["above(-1e+38)"]}
!q = !loom.tensor<[0, 0] : [6, 4], f32>
!s = !loom.tensor<[0, 0] : [6, 6], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @scores(%q: !q, %k: !q) -> !y {
  %s = loom.operation @s over <[0, 0, 0] : [6, 6, 4]> [map, map, fold] by @add
         ins(%q : (i, j, d) -> (i, d), %k : (i, j, d) -> (j, d)) outs((i, j) -> (i, j))
         wrap (%x: f32, %y: f32) { %p = arith.mulf %x, %y : f32 loom.yield %p : f32 }
         unwrap (%x: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %seen = arith.cmpi sge, %i, %j : i64
           %h = arith.constant 0.5 : f32
           %y = arith.mulf %x, %h : f32
           %n = arith.constant -2.38197633e+38 : f32
           %r = arith.select %seen, %y, %n : f32
           loom.yield %r : f32 } : (!q, !q) -> !s
  %m = loom.operation @peak over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) wrap (%c: f32) { loom.yield %c : f32 } : (!s) -> !y
  func.return %m : !y
}

// -----

// Not where what is seen may be a mask as well: something is added to scores, or chosen by cells;
// where a row sees nothing; where the number is one that a score may be.
// CHECK-LABEL: @unknown
// CHECK-NOT: domain
!q = !loom.tensor<[0, 0] : [6, 4], f32>
!s = !loom.tensor<[0, 0] : [6, 6], f32>
!b = !loom.tensor<[0, 0] : [6, 6], i1>
!y = !loom.tensor<[0] : [6], f32>
func.func @unknown(%q: !q, %k: !q, %a: !s, %b: !b) -> (!y, !y, !y, !y) {
  %s = loom.operation @s over <[0, 0, 0] : [6, 6, 4]> [map, map, fold] by @add
         ins(%q : (i, j, d) -> (i, d), %k : (i, j, d) -> (j, d)) outs((i, j) -> (i, j))
         wrap (%x: f32, %y: f32) { %p = arith.mulf %x, %y : f32 loom.yield %p : f32 } : (!q, !q) -> !s
  %added = loom.operation @added over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j), %a : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32, %e: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %seen = arith.cmpi sge, %i, %j : i64
           %t = arith.addf %c, %e : f32
           %n = arith.constant -2.38197633e+38 : f32
           %r = arith.select %seen, %t, %n : f32
           loom.yield %r : f32 } : (!s, !s) -> !y
  %chosen = loom.operation @chosen over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j), %b : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32, %e: i1) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %before = arith.cmpi sge, %i, %j : i64
           %seen = arith.andi %before, %e : i1
           %n = arith.constant -2.38197633e+38 : f32
           %r = arith.select %seen, %c, %n : f32
           loom.yield %r : f32 } : (!s, !b) -> !y
  %blind = loom.operation @blind over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %seen = arith.cmpi sgt, %i, %j : i64
           %n = arith.constant -2.38197633e+38 : f32
           %r = arith.select %seen, %c, %n : f32
           loom.yield %r : f32 } : (!s) -> !y
  %near = loom.operation @near over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%s : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %seen = arith.cmpi sge, %i, %j : i64
           %n = arith.constant -1.0e+9 : f32
           %r = arith.select %seen, %c, %n : f32
           loom.yield %r : f32 } : (!s) -> !y
  func.return %added, %chosen, %blind, %near : !y, !y, !y, !y
}

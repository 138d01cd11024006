// RUN: tapestry-opt %s -p loom-simplify --equal-each --split-input-file | filecheck %s

// A view folds into its reader's projection, through another view as well.
!m = !loom.tensor<[0, 0] : [2, 3], f32>
!t = !loom.tensor<[0, 0] : [3, 2], f32>
!h = !loom.tensor<[0, 0] : [3, 1], f32>
// CHECK-LABEL: @views
func.func @views(%x: !m) -> !h {
  // CHECK-NOT: loom.view
  // CHECK: %y = loom.operation @y
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d1 + 1, d0))
  %t = loom.view %x : (d0, d1) -> (d1, d0) : !m -> !t
  %s = loom.view %t : (d0, d1) -> (d0, d1 + 1) : !t -> !h
  %y = loom.operation @y over <[0, 0] : [3, 1]> [map, map] ins(%s : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { loom.yield %c : f32 } : (!h) -> !h
  func.return %y : !h
}

// -----

// A view that nothing but the end reads stays one view; the identity goes.
!m = !loom.tensor<[0, 0] : [2, 3], f32>
!t = !loom.tensor<[0, 0] : [3, 2], f32>
// CHECK-LABEL: @chain
func.func @chain(%x: !m) -> (!t, !m) {
  // CHECK-NEXT: %s = loom.view %x : (d0, d1) -> (-d1 + 1, d0) : (!loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0, 0] : [3, 2], f32>
  // CHECK-NEXT: func.return %s, %x
  %t = loom.view %x : (d0, d1) -> (d1, d0) : !m -> !t
  %s = loom.view %t : (d0, d1) -> (d0, 1 - d1) : !t -> !t
  %i = loom.view %x : (d0, d1) -> (d0, d1) : !m -> !m
  func.return %s, %i : !t, !m
}

// -----

// Splitting a dimension needs nothing; merging splits the reader's dimension, coordinates included.
!m = !loom.tensor<[2, 1] : [8, 5], f32>
!v = !loom.tensor<[0] : [24], f32>
// CHECK-LABEL: @merge
func.func @merge(%x: !m, %b: !v) -> !v {
  // CHECK-NOT: loom.reshape
  // CHECK: loom.operation @y over <[0, 0] : [6, 4]> [map, map]
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0 + 2, d1 + 1), %b : (d0, d1) -> (4 * d0 + d1))
  // CHECK-NEXT: outs((d0, d1) -> (4 * d0 + d1))
  // CHECK: %[[D0:.*]] = loom.index 0 : i64
  // CHECK-NEXT: %[[FOUR:.*]] = arith.constant 4 : i64
  // CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[D0]], %[[FOUR]] : i64
  // CHECK-NEXT: %[[D1:.*]] = loom.index 1 : i64
  // CHECK-NEXT: arith.addi %[[ROW]], %[[D1]] : i64
  %r = loom.reshape %x : !m -> !v
  %y = loom.operation @y over <[0] : [24]> [map]
         ins(%r : (d0) -> (d0), %b : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%p: f32, %q: f32) {
           %i = loom.index 0 : i64
           %f = arith.sitofp %i : i64 to f32
           %s = arith.addf %p, %q : f32
           %t = arith.addf %s, %f : f32
           loom.yield %t : f32
         } : (!v, !v) -> !v
  func.return %y : !v
}

// -----

!v = !loom.tensor<[3] : [27], f32>
!m = !loom.tensor<[0, 0] : [6, 4], f32>
// CHECK-LABEL: @split
func.func @split(%x: !v) -> !m {
  // CHECK: ins(%x : (d0, d1) -> (4 * d0 + d1 + 3))
  %r = loom.reshape %x : !v -> !m
  %y = loom.operation @y over <[0, 0] : [6, 4]> [map, map] ins(%r : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { loom.yield %p : f32 } : (!m) -> !m
  func.return %y : !m
}

// -----

// No common factorization, or a partition that would have to be split: the reshape stays.
!m = !loom.tensor<[0, 0] : [6, 4], f32>
!n = !loom.tensor<[0, 0, 0] : [4, 2, 3], f32>
!v = !loom.tensor<[0] : [24], f32>
// CHECK-LABEL: @stays
func.func @stays(%x: !m) -> (!n, !v) {
  // CHECK: loom.reshape
  // CHECK: loom.reshape
  %r = loom.reshape %x : !m -> !n
  %y = loom.operation @y over <[0, 0, 0] : [4, 2, 3]> [map, map, map] ins(%r : (d0, d1, d2) -> (d0, d1, d2))
         outs((d0, d1, d2) -> (d0, d1, d2)) wrap (%p: f32) { loom.yield %p : f32 } : (!n) -> !n
  %s = loom.reshape %x : !m -> !v
  %z = loom.operation @z over <[0] : [24]> [map] ins(%s : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 5, 24]]> wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  func.return %y, %z : !n, !v
}

// -----

// Equal operations and equal reads are one; what nothing reads goes.
!v = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @repeated
func.func @repeated(%x: !v) -> !v {
  // CHECK: %a = loom.operation @a
  // CHECK: %c = loom.operation @c
  // CHECK-NEXT: ins(%a : (d0) -> (d0))
  // CHECK: arith.mulf %p, %p : f32
  // CHECK-NOT: loom.operation
  %a = loom.operation @a over <[0] : [4]> [map] ins(%x : (d0) -> (3 - d0)) outs((d0) -> (d0))
         wrap (%p: f32) { %e = math.exp %p : f32 loom.yield %e : f32 } : (!v) -> !v
  %b = loom.operation @b over <[0] : [4]> [map] ins(%x : (d0) -> (3 - d0)) outs((d0) -> (d0))
         wrap (%q: f32) { %f = math.exp %q : f32 loom.yield %f : f32 } : (!v) -> !v
  %unused = loom.operation @unused over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%q: f32) { %f = math.exp %q : f32 loom.yield %f : f32 } : (!v) -> !v
  %c = loom.operation @c over <[0] : [4]> [map] ins(%a : (d0) -> (d0), %b : (d0) -> (d0))
         outs((d0) -> (d0)) wrap (%p: f32, %q: f32) { %e = arith.mulf %p, %q : f32 loom.yield %e : f32 } : (!v, !v) -> !v
  func.return %c : !v
}

// -----

// Maxima whose places nobody reads are folded alone, though places decide between equal values.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
!p = !loom.tensor<[0] : [4], i64>
// CHECK-LABEL: @places
func.func @places(%x: !x) -> !y {
  // CHECK-NEXT: %m = loom.operation @m over <[0, 0] : [4, 6]> [map, fold] by @max
  // CHECK:      loom.yield %c : f32
  // CHECK-NOT:  loom.operation
  %m, %p = loom.operation @m over <[0, 0] : [4, 6]> [map, fold] by @argmax
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0), (d0) -> (d0))
         wrap (%c: f32) { %d = loom.index 1 : i64 loom.yield %c, %d : f32, i64 } : (!x) -> (!y, !p)
  func.return %m : !y
}

// RUN: tapestry-opt %s -p loom-fold-to-read --split-input-file --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-fold-to-read,loom-read-to-fold --split-input-file --equal-each | filecheck %s --check-prefix=FOLD

// A fold that is zero at all points but the one that an index names reads that cell.
!ids = !loom.tensor<[0] : [6], i64>
!t = !loom.tensor<[2] : [52], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @read
// CHECK: loom.operation @embed over <[0] : [6]> [map]
// CHECK-NEXT: ins(%ids : (d0) -> (d0), %t : (d0) -> (2) :> [50], %b : (d0) -> (d0))
// CHECK: wrap (%id: i64, %c: !loom.block<[50], f32>, %d: f32) {
// CHECK-NEXT: %[[START:.*]] = arith.constant 2 : i64
// CHECK-NEXT: %[[AT:.*]] = arith.subi %id, %[[START]] : i64
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %v = loom.read %c[%[[AT]]] else %[[ZERO]] : f32
// CHECK-NEXT: %r = arith.mulf %v, %d : f32

// FOLD-LABEL: @read
// FOLD: loom.operation @embed over <[0, 0] : [6, 50]> [map, fold] by @add
// FOLD-NEXT: ins(%ids : (d0, d1) -> (d0), %t : (d0, d1) -> (d1 + 2))
// FOLD-NEXT: extra(%b : (d0) -> (d0))
// FOLD: %[[K:.*]] = loom.index 1 : i64
// FOLD-NEXT: %[[HERE:.*]] = arith.cmpi eq, %{{.*}}, %[[K]] : i64
// FOLD-NEXT: arith.select %[[HERE]], %c
func.func @read(%ids: !ids, %t: !t, %b: !y) -> !y {
  %y = loom.operation @embed over <[0, 2] : [6, 52]> [map, fold] by @add
         ins(%ids : (d0, d1) -> (d0), %t : (d0, d1) -> (d1)) extra(%b : (d0) -> (d0))
         outs((d0) -> (d0))
         wrap (%id: i64, %c: f32) {
           %k = loom.index 1 : i64
           %here = arith.cmpi eq, %k, %id : i64
           %zero = arith.constant 0.0 : f32
           %v = arith.select %here, %c, %zero : f32
           loom.yield %v : f32
         }
         unwrap (%s: f32, %d: f32) { %r = arith.mulf %s, %d : f32 loom.yield %r : f32 }
         : (!ids, !t, !y) -> !y
  func.return %y : !y
}

// -----

// Two indices name one cell. A fold that has shards stays: its partition splits what would go.
!i = !loom.tensor<[0] : [3], i64>
!t = !loom.tensor<[0, 0] : [4, 5], i32>
!y = !loom.tensor<[0] : [3], i32>
// CHECK-LABEL: @pair
// CHECK: ins(%a : (d0) -> (d0), %b : (d0) -> (d0), %t : (d0) -> (0, 0) :> [4, 5])
// CHECK: loom.read %c[%x, %y{{.*}}] else
// CHECK: loom.operation @split
// CHECK: arith.select
func.func @pair(%a: !i, %b: !i, %t: !t) -> (!y, !y) {
  %y = loom.operation @pair over <[0, 0, 0] : [3, 4, 5]> [map, fold, fold] by @add
         ins(%a : (i, k, l) -> (i), %b : (i, k, l) -> (i), %t : (i, k, l) -> (k, l))
         outs((i) -> (i))
         wrap (%x: i64, %y: i64, %c: i32) {
           %k = loom.index 1 : i64
           %l = loom.index 2 : i64
           %row = arith.cmpi eq, %k, %x : i64
           %column = arith.cmpi eq, %y, %l : i64
           %here = arith.andi %row, %column : i1
           %zero = arith.constant 0 : i32
           %v = arith.select %here, %c, %zero : i32
           loom.yield %v : i32
         } : (!i, !i, !t) -> !y
  %z = loom.operation @split over <[0, 0] : [3, 4]> [map, fold] by @add
         ins(%a : (i, k) -> (i), %t : (i, k) -> (k, 0)) outs((i) -> (i))
         shards <grid [[0, 3], [0, 2, 4]]>
         wrap (%x: i64, %c: i32) {
           %k = loom.index 1 : i64
           %here = arith.cmpi eq, %k, %x : i64
           %zero = arith.constant 0 : i32
           %v = arith.select %here, %c, %zero : i32
           loom.yield %v : i32
         } : (!i, !t) -> !y
  func.return %y, %z : !y, !y
}

// -----

// What is chosen may be computed, of several tensors, and scaled or chosen again: it is computed at
// the one point, and is zero where the index names none. The condition on %id alone stays.
!i = !loom.tensor<[0] : [6], i64>
!x = !loom.tensor<[0, 1] : [6, 9], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @computed
// CHECK: loom.operation @loss over <[0] : [6]> [map]
// CHECK-NEXT: ins(%ids : (d0) -> (d0), %x : (d0) -> (d0, 1) :> [1, 8], %w : (d0) -> (1) :> [8], %m : (d0) -> (d0))
// CHECK: %[[AT:.*]] = arith.subi %id, %{{.*}} : i64
// CHECK: %[[C:.*]] = loom.read %c[%{{.*}}, %[[AT]]] else
// CHECK: %[[W:.*]] = loom.read %u[%[[AT]]] else
// CHECK: %[[D:.*]] = arith.subf %[[C]], %a
// CHECK: %[[P:.*]] = arith.mulf %[[D]], %[[W]]
// CHECK: %[[N:.*]] = arith.negf %[[P]]
// CHECK: %[[V:.*]] = arith.select %{{.*}}, %{{.*}}, %[[N]]
// CHECK: arith.cmpi sge, %[[AT]]
// CHECK: arith.cmpi slt, %[[AT]]
// CHECK: arith.select %{{.*}}, %[[V]]
func.func @computed(%ids: !i, %x: !x, %w: !loom.tensor<[1] : [9], f32>, %m: !y) -> !y {
  %y = loom.operation @loss over <[0, 1] : [6, 9]> [map, fold] by @add
         ins(%ids : (i, k) -> (i), %x : (i, k) -> (i, k), %w : (i, k) -> (k), %m : (i, k) -> (i))
         outs((i) -> (i))
         wrap (%id: i64, %c: f32, %u: f32, %a: f32) {
           %k = loom.index 1 : i64
           %here = arith.cmpi eq, %id, %k : i64
           %d = arith.subf %c, %a : f32
           %p = arith.mulf %d, %u : f32
           %zero = arith.constant 0.0 : f32
           %v = arith.select %here, %p, %zero : f32
           %n = arith.negf %v : f32
           %ignored = arith.constant 3 : i64
           %skip = arith.cmpi eq, %id, %ignored : i64
           %r = arith.select %skip, %zero, %n : f32
           loom.yield %r : f32
         } : (!i, !x, !loom.tensor<[1] : [9], f32>, !y) -> !y
  func.return %y : !y
}

// -----

// A sum of what is zero elsewhere and what is not, and a multiple of infinity, are no single points.
!i = !loom.tensor<[0] : [6], i64>
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @not_zero_elsewhere
// CHECK-NOT: loom.read
func.func @not_zero_elsewhere(%ids: !i, %x: !x) -> (!y, !y) {
  %y = loom.operation @added over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%ids : (i, k) -> (i), %x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%id: i64, %c: f32) {
           %k = loom.index 1 : i64
           %here = arith.cmpi eq, %id, %k : i64
           %zero = arith.constant 0.0 : f32
           %v = arith.select %here, %c, %zero : f32
           %r = arith.addf %v, %c : f32
           loom.yield %r : f32
         } : (!i, !x) -> !y
  %z = loom.operation @times over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%ids : (i, k) -> (i), %x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%id: i64, %c: f32) {
           %k = loom.index 1 : i64
           %here = arith.cmpi eq, %id, %k : i64
           %zero = arith.constant 0.0 : f32
           %v = arith.select %here, %c, %zero : f32
           %inf = arith.constant 0x7F800000 : f32
           %r = arith.mulf %v, %inf : f32
           loom.yield %r : f32
         } : (!i, !x) -> !y
  func.return %y, %z : !y, !y
}

// -----

// What is read is folded itself: its cell is picked as it passes, so that nothing needs it stored.
!i = !loom.tensor<[0] : [6], i64>
!x = !loom.tensor<[0, 0] : [6, 3], f32>
!z = !loom.tensor<[0, 0] : [6, 8], f32>
!w = !loom.tensor<[0, 0] : [3, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @picked
// CHECK: %[[P:.*]] = loom.operation @loss_picked over <[0, 0] : [6, 8]> [map, fold] by @add
// CHECK-NEXT: ins(%ids : (d0, d1) -> (d0), %z : (d0, d1) -> (d0, d1))
// CHECK: arith.cmpi eq
// CHECK: arith.select %{{.*}}, %c
// CHECK: loom.operation @loss over <[0] : [6]> [map]
// CHECK-NEXT: ins(%ids : (d0) -> (d0), %[[P]] : (d0) -> (d0), %m : (d0) -> (d0))
// CHECK-NOT: loom.read
// CHECK: %[[D:.*]] = arith.subf %c, %a
// CHECK: arith.select %{{.*}}, %[[D]]
func.func @picked(%ids: !i, %x: !x, %w: !w, %m: !y) -> !y {
  %z = loom.operation @logits over <[0, 0, 0] : [6, 8, 3]> [map, map, fold] by @add
         ins(%x : (i, k, c) -> (i, c), %w : (i, k, c) -> (c, k)) outs((i, k) -> (i, k))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 } : (!x, !w) -> !z
  %y = loom.operation @loss over <[0, 0] : [6, 8]> [map, fold] by @add
         ins(%ids : (i, k) -> (i), %z : (i, k) -> (i, k), %m : (i, k) -> (i)) outs((i) -> (i))
         wrap (%id: i64, %c: f32, %a: f32) {
           %k = loom.index 1 : i64
           %here = arith.cmpi eq, %id, %k : i64
           %d = arith.subf %c, %a : f32
           %zero = arith.constant 0.0 : f32
           %v = arith.select %here, %d, %zero : f32
           loom.yield %v : f32
         } : (!i, !z, !y) -> !y
  func.return %y : !y
}

// -----

// A zero that something is added to is the one cell: a scatter into zeros, which is summed.
!i = !loom.tensor<[0] : [6], i64>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @scattered
// CHECK: loom.operation @sum over <[0] : [6]> [map]
// CHECK-NOT: loom.index
// CHECK: func.return
func.func @scattered(%ids: !i, %g: !y) -> !y {
  %y = loom.operation @sum over <[0, 0] : [6, 3]> [map, fold] by @add
         ins(%ids : (i, k) -> (i), %g : (i, k) -> (i)) outs((i) -> (i))
         wrap (%id: i64, %c: f32) {
           %k = loom.index 1 : i64
           %here = arith.cmpi eq, %id, %k : i64
           %zero = arith.constant 0.0 : f32
           %v = arith.select %here, %c, %zero : f32
           %r = arith.addf %zero, %v : f32
           loom.yield %r : f32
         } : (!i, !y) -> !y
  func.return %y : !y
}

// RUN: tapestry-opt %s -p loom-simplify --split-input-file --equal-each | filecheck %s

// A causal mask as frameworks compute it, of two ranges: nothing of it is stored.
// CHECK-LABEL: @mask
// CHECK-NEXT: loom.operation @mask
// CHECK-NEXT: outs((d0, d1) -> (d0, d1))
// CHECK-NEXT: wrap () {
// CHECK-NEXT:   [[J:%.*]] = loom.index 1 : i64
// CHECK-NEXT:   [[I:%.*]] = loom.index 0 : i64
// CHECK-NEXT:   [[A:%.*]] = arith.constant 2 : i64
// CHECK-NEXT:   [[B:%.*]] = arith.addi [[I]], [[A]] : i64
// CHECK-NEXT:   arith.cmpi sge, [[B]], [[J]] : i64
// CHECK:      func.return
!n = !loom.tensor<[0] : [8], i64>
!m = !loom.tensor<[0, 0] : [6, 8], i1>
func.func @mask() -> !m {
  %n = loom.operation @arange over <[0] : [8]> [map] ins() outs((i) -> (i))
         wrap () { %i = loom.index 0 : i64 loom.yield %i : i64 } : () -> !n
  %m = loom.operation @mask over <[0, 0] : [6, 8]> [map, map]
         ins(%n : (i, j) -> (i + 2), %n : (i, j) -> (j)) outs((i, j) -> (i, j))
         wrap (%i: i64, %j: i64) {
           %p = arith.cmpi sge, %i, %j : i64
           loom.yield %p : i1 } : (!n, !n) -> !m
  func.return %m : !m
}

// -----
// In unwrap too, where dimensions are counted among all. Blocks are read at computed indices: what
// they read is stored.
// CHECK-LABEL: @rows
// CHECK-NEXT: %n = loom.operation @arange
// CHECK:      loom.operation @rows
// CHECK-NEXT: ins(%x : {{[^%]*}})
// CHECK-NEXT: outs
// CHECK:      unwrap (%{{.*}}: i64) {
// CHECK-NEXT:   loom.index 1 : i64
// CHECK:      loom.operation @look
// CHECK-NEXT: ins(%n :
!n = !loom.tensor<[0] : [8], i64>
!x = !loom.tensor<[0, 0] : [4, 8], i64>
func.func @rows(%x: !x) -> (!n, !n) {
  %n = loom.operation @arange over <[0] : [8]> [map] ins() outs((i) -> (i))
         wrap () { %i = loom.index 0 : i64 loom.yield %i : i64 } : () -> !n
  %s = loom.operation @rows over <[0, 0] : [4, 8]> [fold, map] by @add
         ins(%x : (k, j) -> (k, j)) extra(%n : (j) -> (j)) outs((j) -> (j))
         wrap (%c: i64) { loom.yield %c : i64 }
         unwrap (%t: i64, %j: i64) { %r = arith.addi %t, %j : i64 loom.yield %r : i64 }
         : (!x, !n) -> !n
  %l = loom.operation @look over <[0] : [8]> [map]
         ins(%n : (i) -> (0) :> [8]) outs((i) -> (i))
         wrap (%b: !loom.block<[8], i64>) {
           %i = loom.index 0 : i64
           %v = loom.read %b[%i] : i64
           loom.yield %v : i64 } : (!n) -> !n
  func.return %s, %l : !n, !n
}

// -----
// A range of numbers that is written down is computed of where it is read; other numbers are stored.
// CHECK-LABEL: @written_down
// CHECK-NEXT: %odd = loom.constant [0, 1, 2, 4] : {{.*}}
// CHECK-NEXT: loom.operation @later
// CHECK-NEXT: ins(%odd : (d0, d1) -> (d1))
// CHECK:      wrap (%{{.*}}: i32) {
// CHECK:      loom.index 0 : i64
!n = !loom.tensor<[0] : [4], i32>
!m = !loom.tensor<[0, 0] : [4, 4], i1>
func.func @written_down() -> !m {
  %even = loom.constant [3, 5, 7, 9] : !n
  %odd = loom.constant [0, 1, 2, 4] : !n
  %m = loom.operation @later over <[0, 0] : [4, 4]> [map, map]
         ins(%even : (i, j) -> (i), %odd : (i, j) -> (j)) outs((i, j) -> (i, j))
         wrap (%i: i32, %j: i32) {
           %p = arith.cmpi sge, %i, %j : i32
           loom.yield %p : i1 } : (!n, !n) -> !m
  func.return %m : !m
}

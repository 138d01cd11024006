// RUN: tapestry-opt %s -p loom-simplify --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-simplify,loom-fold-to-read --equal-each | filecheck %s --check-prefix READ

// A range that starts at 0 with steps of 1 is the coordinate itself, by which a sum that counts at
// one point is seen. Numbers wrap around as they do where they run; a quotient stays.

// CHECK: loom.operation @count
// CHECK-NOT: arith.muli
// CHECK-NOT: arith.addi
// CHECK: %[[K:.*]] = loom.index 1 : i64
// CHECK-NEXT: arith.cmpi eq, %[[K]], %id : i64
// CHECK: loom.operation @wrap
// CHECK: arith.constant -56 : i8
// CHECK: arith.divsi

// READ: loom.operation @count over <[0] : [4]> [map]

!ids = !loom.tensor<[0] : [4], i64>
!y = !loom.tensor<[0] : [4], f32>
!b = !loom.tensor<[0] : [4], i8>
func.func @main(%ids: !ids, %b: !b) -> (!y, !b) {
  %y = loom.operation @count over <[0, 0] : [4, 9]> [map, fold] by @add
         ins(%ids : (i, k) -> (i)) outs((i) -> (i))
         wrap (%id: i64) {
           %zero = arith.constant 0 : i64
           %one = arith.constant 1 : i64
           %k = loom.index 1 : i64
           %step = arith.muli %one, %k : i64
           %at = arith.addi %zero, %step : i64
           %here = arith.cmpi eq, %at, %id : i64
           %counts = arith.constant 1.0 : f32
           %none = arith.constant 0.0 : f32
           %v = arith.select %here, %counts, %none : f32
           loom.yield %v : f32
         } : (!ids) -> !y
  %w = loom.operation @wrap over <[0] : [4]> [map]
         ins(%b : (i) -> (i)) outs((i) -> (i))
         wrap (%x: i8) {
           %c = arith.constant 100 : i8
           %sum = arith.addi %c, %c : i8
           %z = arith.constant 0 : i8
           %q = arith.divsi %c, %z : i8
           %r = arith.addi %x, %sum : i8
           %s = arith.addi %r, %q : i8
           loom.yield %s : i8
         } : (!b) -> !b
  func.return %y, %w : !y, !b
}

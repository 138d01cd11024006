// RUN: tapestry-opt %s -p loom-to-triton | filecheck %s

// Positions and offsets are 64-bit numbers where one of them may not fit 32 bits: 2^31 less the
// longest block. A program's number is widened before it is multiplied.

!x = !loom.tensor<[0] : [2146435071], i8>
!y = !loom.tensor<[0] : [2146435072], i8>
!t = !loom.tensor<[0, 0] : [3, 1073741824], i8>
!u = !loom.tensor<[0] : [3], i8>
!i = !loom.tensor<[0] : [3], i64>
!v = !loom.tensor<[0, 0] : [65537, 32768], i8>
!r = !loom.tensor<[0, 0] : [3, 32768], i8>
!a = !loom.tensor<[0, 0] : [65536, 3], i8>
!b = !loom.tensor<[0, 0] : [3, 32768], i8>
!c = !loom.tensor<[0, 0] : [65536, 32768], i8>

// CHECK:      triton.kernel @narrow
// CHECK-NOT:  i64
// CHECK:      triton.store %{{.*}} mask %p_mask : tensor<2048xi8>, !triton.ptr<i8>, tensor<2048xi32>
func.func @run_narrow(%x: !x) -> !x {
  %y = loom.operation @narrow over <[0] : [2146435071]> [map]
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%a: i8) { %s = arith.addi %a, %a : i8  loom.yield %s : i8 } : (!x) -> !x
  func.return %y : !x
}

// CHECK:      triton.kernel @wide
// CHECK-NEXT: %pid = triton.program_id 0 : i32
// CHECK-NEXT: %[[PID:.*]] = triton.cast %pid : i32 -> i64
// CHECK-NEXT: %[[SIZE:.*]] = triton.block_size "BLOCK_P" : i64
// CHECK-NEXT: arith.muli %[[PID]], %[[SIZE]] : i64
// CHECK:      triton.store {{.*}} : tensor<2048xi8>, !triton.ptr<i8>, tensor<2048xi64>
func.func @run_wide(%x: !y) -> !y {
  %y = loom.operation @wide over <[0] : [2146435072]> [map]
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%a: i8) { %s = arith.addi %a, %a : i8  loom.yield %s : i8 } : (!y) -> !y
  func.return %y : !y
}

// Few points, of which the last is far from the first.
// CHECK:      triton.kernel @column
// CHECK:      arith.muli %{{.*}} : tensor<4xi64>
// CHECK:      arith.constant 1073741823 : i64
// CHECK:      triton.load %t_ptr[%{{.*}}] {{.*}} tensor<4xi64>, tensor<4xi1>
func.func @run_column(%t: !t) -> !u {
  %y = loom.operation @column over <[0] : [3]> [map]
         ins(%t : (d0) -> (d0, 1073741823)) outs((d0) -> (d0))
         wrap (%a: i8) { loom.yield %a : i8 } : (!t) -> !u
  func.return %y : !u
}

// Small factors, and an output whose last rows are beyond.
// CHECK:      triton.kernel @outer
// CHECK:      triton.store {{.*}} !triton.ptr<i8>, tensor<{{.*}}xi64>
func.func @run_outer(%a: !a, %b: !b) -> !c {
  %y = loom.operation @outer over <[0, 0, 0] : [65536, 32768, 3]> [map, map, fold] by @add
         ins(%a : (d0, d1, d2) -> (d0, d2), %b : (d0, d1, d2) -> (d2, d1))
         outs((d0, d1) -> (d0, d1))
         wrap (%p: i8, %q: i8) { %s = arith.muli %p, %q : i8  loom.yield %s : i8 } : (!a, !b) -> !c
  func.return %y : !c
}

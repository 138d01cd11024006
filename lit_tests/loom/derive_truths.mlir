// RUN: tapestry-opt %s -p loom-derive --split-input-file --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// EQUAL-NOT: differ

// Whether a row sees anything, as PyTorch asks it: no cell is asked beside the maximum.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
!t = !loom.tensor<[0] : [4], i1>
// CHECK-LABEL: @sees_nothing
// CHECK:      %m = loom.operation @max
// CHECK:      %n = loom.operation @none over <[0] : [4]> [map]
// CHECK-NEXT: ins(%m : (d0) -> (d0))
// CHECK:      arith.constant 0xff800000 : f32
// CHECK-NEXT: arith.cmpf une
// CHECK-NOT:  @or
func.func @sees_nothing(%x: !x) -> (!y, !t) {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) domain(d0 - d1 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @none over <[0, 0] : [4, 6]> [map, fold] by @or
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) domain(d0 - d1 >= 0)
         wrap (%c: f32) {
           %i = arith.constant 0xff800000 : f32
           %f = arith.constant false
           %e = arith.cmpf oeq, %c, %i : f32
           %u = arith.cmpi eq, %e, %f : i1
           %v = arith.cmpi ne, %u, %f : i1
           loom.yield %v : i1 }
         unwrap (%any: i1) {
           %true = arith.constant true
           %none = arith.xori %any, %true : i1
           loom.yield %none : i1 } : (!x) -> !t
  func.return %m, %n : !y, !t
}

// -----

// The least of what two tensors add up to, beside another order of the loops' bodies.
!x = !loom.tensor<[0, 0] : [4, 6], f64>
!y = !loom.tensor<[0] : [4], f64>
!t = !loom.tensor<[0] : [4], i1>
// CHECK-LABEL: @least
// CHECK:      loom.operation @any over <[0] : [4]> [map]
// CHECK:      arith.constant 0x7ff0000000000000 : f64
// CHECK-NEXT: arith.cmpf une
func.func @least(%x: !x, %z: !x) -> (!y, !t) {
  %m = loom.operation @min over <[0, 0] : [4, 6]> [map, fold] by @min
         ins(%x : (i, j) -> (i, j), %z : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f64, %d: f64) {
           %s = arith.addf %c, %d : f64
           loom.yield %s : f64 } : (!x, !x) -> !y
  %n = loom.operation @any over <[0, 0] : [4, 6]> [map, fold] by @or
         ins(%z : (i, j) -> (i, j), %x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%d: f64, %c: f64) {
           %i = arith.constant 0x7ff0000000000000 : f64
           %s = arith.addf %c, %d : f64
           %u = arith.cmpf une, %i, %s : f64
           loom.yield %u : i1 } : (!x, !x) -> !t
  func.return %m, %n : !y, !t
}

// -----

// A maximum is NaN if a cell is: by `one` NaN is not unequal, other cells may be. Nor is another
// number than the zero one that a maximum tells.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
!t = !loom.tensor<[0] : [4], i1>
// CHECK-LABEL: @others
// CHECK:      loom.operation @ordered over <[0, 0] : [4, 6]> [map, fold] by @or
// CHECK:      loom.operation @zeros over <[0, 0] : [4, 6]> [map, fold] by @or
// CHECK:      loom.operation @equal over <[0, 0] : [4, 6]> [map, fold] by @or
// CHECK:      loom.operation @elsewhere over <[0, 0] : [4, 6]> [map, fold] by @or
func.func @others(%x: !x) -> (!y, !t, !t, !t, !t) {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @ordered over <[0, 0] : [4, 6]> [map, fold] by @or
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = arith.constant 0xff800000 : f32
           %u = arith.cmpf one, %c, %i : f32
           loom.yield %u : i1 } : (!x) -> !t
  %o = loom.operation @zeros over <[0, 0] : [4, 6]> [map, fold] by @or
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = arith.constant 0.0 : f32
           %u = arith.cmpf une, %c, %i : f32
           loom.yield %u : i1 } : (!x) -> !t
  %p = loom.operation @equal over <[0, 0] : [4, 6]> [map, fold] by @or
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = arith.constant 0xff800000 : f32
           %u = arith.cmpf oeq, %c, %i : f32
           loom.yield %u : i1 } : (!x) -> !t
  %q = loom.operation @elsewhere over <[0, 0] : [4, 6]> [map, fold] by @or
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) domain(d0 - d1 >= 0)
         wrap (%c: f32) {
           %i = arith.constant 0xff800000 : f32
           %u = arith.cmpf une, %c, %i : f32
           loom.yield %u : i1 } : (!x) -> !t
  func.return %m, %n, %o, %p, %q : !y, !t, !t, !t, !t
}

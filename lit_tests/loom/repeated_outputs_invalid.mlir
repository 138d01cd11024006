// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Outputs that leave a dimension out, along which their values vary or shards are cut.

!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: @row: output 0 leaves d1 out, but its value varies along it
func.func @main(%x: !x) -> !y {
  %y = loom.operation @row over <[0, 0] : [4, 6]> [map, map] ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----

// Its own coordinate is no different from a cell.
!y = !loom.tensor<[0] : [4], i64>
!x = !loom.tensor<[0] : [4], i64>
// CHECK{LITERAL}: @row: output 0 leaves d1 out, but its value varies along it
func.func @main(%x: !x) -> !y {
  %y = loom.operation @row over <[0, 0] : [4, 6]> [map, map] ins(%x : (i, j) -> (i)) outs((i, j) -> (i))
         wrap (%c: i64) { %j = loom.index 1 : i64  %r = arith.addi %c, %j : i64  loom.yield %r : i64 } : (!x) -> !y
  func.return %y : !y
}

// -----

// What every point counts depends on j, by the domain.
!x = !loom.tensor<[0, 0] : [4, 5], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: @row: output 0 leaves d1 out, but its value varies along it
func.func @main(%x: !x) -> !y {
  %y = loom.operation @row over <[0, 0, 0] : [4, 6, 5]> [map, map, fold] by @add
         ins(%x : (i, j, k) -> (i, k)) outs((i, j) -> (i)) domain(d1 - d2 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----

// So does an extra input.
!x = !loom.tensor<[0, 0] : [4, 5], f32>
!b = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: @row: output 0 leaves d1 out, but its value varies along it
func.func @main(%x: !x, %b: !b) -> !y {
  %y = loom.operation @row over <[0, 0, 0] : [4, 6, 5]> [map, map, fold] by @add
         ins(%x : (i, j, k) -> (i, k)) extra(%b : (i, j) -> (j)) outs((i, j) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%c: f32, %d: f32) { %r = arith.addf %c, %d : f32  loom.yield %r : f32 } : (!x, !b) -> !y
  func.return %y : !y
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0] : [5], f32>
// CHECK{LITERAL}: @row: output 0 has 5 cells, but 4 are written
func.func @main(%x: !x) -> !y {
  %y = loom.operation @row over <[0, 0] : [4, 6]> [map, map] ins(%x : (i, j) -> (i)) outs((i, j) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----

// No point writes it.
!x = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: @row: output 0 has 4 cells, but 0 are written
func.func @main(%x: !x) -> !x {
  %y = loom.operation @row over <[0, 0] : [4, 0]> [map, map] ins(%x : (i, j) -> (i)) outs((i, j) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: @row: the shards cut d1 of the kept dimensions, which output 0 leaves out; leave it whole
func.func @main(%x: !x) -> !x {
  %y = loom.operation @row over <[0, 0] : [4, 6]> [map, map] ins(%x : (i, j) -> (i)) outs((i, j) -> (i))
         shards <grid [[0, 2, 4], [0, 3, 6]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

// Right, and an application of it as well.
!x = !loom.tensor<[0] : [4], f32>
loom.kernel @row [map, map] ins((i, j) -> (i)) outs((i, j) -> (i)) wrap (%c: f32) { loom.yield %c : f32 }
// CHECK: loom.operation @row over <[0, 0] : [4, 6]> [map, map]
// CHECK: loom.application @row over <[1, 2] : [3, 5]>
func.func @main(%x: !x) -> (!x, !loom.tensor<[1] : [3], f32>) {
  %y = loom.operation @row over <[0, 0] : [4, 6]> [map, map] ins(%x : (i, j) -> (i)) outs((i, j) -> (i))
         shards <grid [[0, 2, 4], [0, 6]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  %z = loom.application @row over <[1, 2] : [3, 5]> (%x <[1] : [3]>) : (!x) -> !loom.tensor<[1] : [3], f32>
  func.return %y, %z : !x, !loom.tensor<[1] : [3], f32>
}

// -----

!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
loom.kernel @row [map, map] ins((i, j) -> (i, j)) outs((i, j) -> (i)) wrap (%c: f32) { loom.yield %c : f32 }
// CHECK{LITERAL}: @row: output 0 leaves d1 out, but its value varies along it
func.func @main(%x: !x) -> !y {
  %y = loom.application @row over <[0, 0] : [4, 6]> (%x <[0, 0] : [4, 6]>) : (!x) -> !y
  func.return %y : !y
}

// -----

// Members of a group run again for each part of what they lack, but not of what they leave out.
!x = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[0, 0] : [4, 6], f32>
// CHECK{LITERAL}: @both: dimension 1 cannot be cut: @row leaves it out of what it writes
func.func @main(%x: !x, %w: !z) -> !z {
  %y = loom.fused @both over <[0, 0] : [4, 6]> aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
         shards <grid [[0, 4], [0, 3, 6]]>
         ins(%x, %w) group (%a: !x, %b: !z) {
           %r = loom.operation @row over <[0, 0] : [4, 6]> [map, map] ins(%a : (i, j) -> (i)) outs((i, j) -> (i))
                  wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
           %s = loom.operation @sum over <[0, 0] : [4, 6]> [map, map]
                  ins(%r : (i, j) -> (i), %b : (i, j) -> (i, j)) outs((i, j) -> (i, j))
                  wrap (%c: f32, %d: f32) { %e = arith.addf %c, %d : f32  loom.yield %e : f32 } : (!x, !z) -> !z
           loom.yield %s : !z
         } : (!x, !z) -> !z
  func.return %y : !z
}

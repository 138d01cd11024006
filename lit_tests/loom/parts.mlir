// RUN: tapestry-opt %s -p 'loom-shard{grid=1,2,1},loom-expand-shards' --equal-each | filecheck %s
// RUN: tapestry-opt %s -p 'loom-shard{grid=2,2,2},loom-expand-shards' --equal-each | filecheck %s --check-prefix GRID
// RUN: tapestry-opt %s -p 'loom-shard{grid=1,4,1},loom-expand-shards{arity=2}' --equal-each | filecheck %s --check-prefix TREE
// RUN: tapestry-opt %s -p 'loom-shard{partition="ranges [[0, 0, 0] : [3, 2, 6], [0, 2, 0] : [3, 4, 4], [0, 2, 4] : [3, 4, 6]]"},loom-expand-shards' --equal-each | filecheck %s --check-prefix CUT
// RUN: tapestry-opt %s -p 'loom-shard{partition="ranges [[0, 0, 0] : [3, 2, 6], [0, 2, 0] : [1, 4, 6], [1, 2, 0] : [3, 4, 6]]"},loom-expand-shards' --equal-each | filecheck %s --check-prefix ROWS
// RUN: tapestry-opt %s -p 'loom-shard{grid=1,2,1},loom-expand-shards' | tapestry-opt --print-op-generic | tapestry-opt | filecheck %s

// The greatest score of a row varies along i alone, the sum of values scaled by it along i and d.
!s = !loom.tensor<[0, 0] : [3, 4], f32>
!v = !loom.tensor<[0, 0] : [4, 6], f32>
!o = !loom.tensor<[0, 0] : [3, 6], f32>
loom.monoid @scaled commutative zero [0xFF800000 : f32, 0.0 : f32]
  merge (%m0: f32, %o0: f32, %m1: f32, %o1: f32) {
    %m = arith.maximumf %m0, %m1 : f32
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.cmpf oeq, %m, %low : f32
    %ref = arith.select %none, %zero, %m : f32
    %d0 = arith.subf %m0, %ref : f32
    %a0 = math.exp %d0 : f32
    %d1 = arith.subf %m1, %ref : f32
    %a1 = math.exp %d1 : f32
    %x0 = arith.mulf %o0, %a0 : f32
    %x1 = arith.mulf %o1, %a1 : f32
    %o = arith.addf %x0, %x1 : f32
    loom.yield %m, %o : f32, f32
  }

// CHECK: loom.kernel @weigh
// CHECK: parts((d0, d1) -> (d0), (d0, d1) -> (d0, d1))
// CHECK: loom.application @weigh over <[0, 0, 0] : [3, 2, 6]> partial
// CHECK-SAME: -> (!loom.tensor<[0] : [3], f32>, !loom.tensor<[0, 0] : [3, 6], f32>)
// CHECK: loom.application @weigh over <[0, 2, 0] : [3, 4, 6]> partial
// CHECK-SAME: -> (!loom.tensor<[0] : [3], f32>, !loom.tensor<[0, 0] : [3, 6], f32>)
// CHECK: loom.merge @weigh over <[0, 0] : [3, 6]> states(
// CHECK-SAME: -> !loom.tensor<[0, 0] : [3, 6], f32>

// Each box of i and d is merged for itself, and its shards cover what it has of d.
// GRID: loom.application @weigh over <[0, 0, 0] : [2, 2, 3]> partial
// GRID-SAME: -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0, 0] : [2, 3], f32>)
// GRID: loom.application @weigh over <[2, 2, 3] : [3, 4, 6]> partial
// GRID-SAME: -> (!loom.tensor<[2] : [3], f32>, !loom.tensor<[2, 3] : [3, 6], f32>)

// TREE: loom.merge @weigh over <[0, 0] : [3, 6]> partial
// TREE-SAME: -> (!loom.tensor<[0] : [3], f32>, !loom.tensor<[0, 0] : [3, 6], f32>)

// Half of d is folded apart from the other half: what stands for all of d would be neither's.
// CUT-NOT: parts(
// CUT: loom.application @weigh over <[0, 0, 0] : [3, 2, 6]> partial
// CUT-SAME: -> (!loom.tensor<[0, 0] : [3, 6], f32>, !loom.tensor<[0, 0] : [3, 6], f32>)
// CUT: loom.application @weigh over <[0, 2, 0] : [3, 4, 4]> partial
// CUT-SAME: -> (!loom.tensor<[0, 0] : [3, 4], f32>, !loom.tensor<[0, 0] : [3, 4], f32>)

// Rows that are folded apart are no matter, as long as all of d goes with them.
// ROWS: loom.application @weigh over <[0, 2, 0] : [1, 4, 6]> partial
// ROWS-SAME: -> (!loom.tensor<[0] : [1], f32>, !loom.tensor<[0, 0] : [1, 6], f32>)
func.func @main(%s: !s, %v: !v) -> !o {
  %o = loom.operation @weigh over <[0, 0, 0] : [3, 4, 6]> [map, fold, map] by @scaled
         ins(%s : (i, j, d) -> (i, j), %v : (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
         unwrap (%m: f32, %t: f32) { loom.yield %t : f32 } : (!s, !v) -> !o
  func.return %o : !o
}

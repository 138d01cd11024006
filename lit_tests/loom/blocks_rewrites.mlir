// RUN: tapestry-opt %s -p loom-simplify,loom-fuse --split-input-file --equal-each | filecheck %s

// What computes an index joins the read, and what uses the value, and what computes the cell.
!ids = !loom.tensor<[0] : [4], i64>
!t = !loom.tensor<[0, 0] : [9, 4], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK: %v = loom.view
// CHECK: loom.operation @twice_table_gather_exp over <[0] : [4]> [map]
// CHECK-NEXT: ins(%ids : (d0) -> (d0), %t : (d0) -> (0, d0) :> [9, 1], %v : (d0) -> (d0, 0) :> [1, 9])
func.func @main(%ids: !ids, %t: !t) -> !y {
  %table = loom.operation @table over <[0, 0] : [9, 4]> [map, map] ins(%t : (i, j) -> (i, j))
             outs((i, j) -> (i, j))
             wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!t) -> !t
  %v = loom.view %t : (i, j) -> (j, i) : !t -> !loom.tensor<[0, 0] : [4, 9], f32>
  %at = loom.operation @twice over <[0] : [4]> [map] ins(%ids : (i) -> (i)) outs((i) -> (i))
          wrap (%c: i64) { %e = arith.addi %c, %c : i64 loom.yield %e : i64 } : (!ids) -> !ids
  %g = loom.operation @gather over <[0] : [4]> [map]
         ins(%at : (i) -> (i), %table : (i) -> (0, i) :> [9, 1], %v : (i) -> (i, 0) :> [1, 9])
         outs((i) -> (i))
         wrap (%id: i64, %rows: !loom.block<[9, 1], f32>, %row: !loom.block<[1, 9], f32>) {
           %zero = arith.constant 0 : i64
           %a = loom.read %rows[%id, %zero] : f32
           %b = loom.read %row[%zero, %id] : f32
           %s = arith.addf %a, %b : f32
           loom.yield %s : f32
         } : (!ids, !t, !loom.tensor<[0, 0] : [4, 9], f32>) -> !y
  %y = loom.operation @exp over <[0] : [4]> [map] ins(%g : (i) -> (i)) outs((i) -> (i))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!y) -> !y
  func.return %y : !y
}

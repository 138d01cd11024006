// RUN: tapestry-opt %s -p 'loom-relayout{axes=-1 writers=true}' --equal-each | filecheck %s

// What yields a cell as it is read is no copy where it scans, folds or leaves points out.

// CHECK: loom.operation @e
// CHECK: loom.operation @scan over <[0] : [6]> [scan] by @add
// CHECK: loom.operation @fold over <[0, 0] : [6, 1]> [map, fold] by @add
// CHECK: unwrap

!x = !loom.tensor<[0] : [6], f32>
func.func @main(%x: !x) -> (!x, !x) {
  %e = loom.operation @e over <[0] : [6]> [map] ins(%x : (i) -> (i)) outs((i) -> (i))
         wrap (%v: f32) { %r = math.exp %v : f32 loom.yield %r : f32 } : (!x) -> !x
  %s = loom.operation @scan over <[0] : [6]> [scan] by @add ins(%e : (i) -> (i)) outs((i) -> (i))
         wrap (%v: f32) { loom.yield %v : f32 } : (!x) -> !x
  %f = loom.operation @fold over <[0, 0] : [6, 1]> [map, fold] by @add ins(%e : (i, k) -> (i)) outs((i) -> (i))
         wrap (%v: f32) { loom.yield %v : f32 }
         unwrap (%a: f32) { %n = arith.negf %a : f32 loom.yield %n : f32 } : (!x) -> !x
  func.return %s, %f : !x, !x
}

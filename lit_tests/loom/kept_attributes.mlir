// Attributes that no dialect declares stay when operations are joined, spelled out, or merged.

// RUN: tapestry-opt %s -p loom-expand-shards | filecheck %s --check-prefix EXPAND
// RUN: tapestry-opt %s -p loom-fuse | filecheck %s --check-prefix FUSE
// RUN: tapestry-opt %s -p loom-simplify | filecheck %s --check-prefix MERGE

!x = !loom.tensor<[0] : [4], f32>
!g = !loom.tensor<[0, 0] : [2, 2], f32>

// Operations that differ in one have kernels of their own.
// EXPAND: loom.kernel @double_1
// EXPAND: {note = "second"}
// EXPAND: loom.kernel @double
// EXPAND: {note = "first"}
// EXPAND: func.func @main
// EXPAND-COUNT-2: loom.application @double over
// EXPAND-COUNT-2: loom.application @double_1 over
// EXPAND: loom.external @sort over <[0] : [1]>
// EXPAND: attributes {note = "sort"}
// EXPAND: loom.external @sort over <[1] : [2]>
// EXPAND: attributes {note = "sort"}

// An operation that is joined of two has the attributes of both; of one that both have, the value
// of the operation that it grew out of.
// FUSE: loom.operation @exp_sum
// FUSE: {note = "sum", made = "by hand"}

// They are not merged into one, either.
// MERGE-COUNT-2: loom.operation @double over
func.func @main(%x: !x, %g: !g) -> (!x, !x, !g) {
  %y = loom.operation @double over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 2, 4]]>
         wrap (%c: f32) { %r = arith.addf %c, %c : f32  loom.yield %r : f32 } {note = "first"}
         : (!x) -> !x
  %z = loom.operation @double over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 2, 4]]>
         wrap (%c: f32) { %r = arith.addf %c, %c : f32  loom.yield %r : f32 } {note = "second"}
         : (!x) -> !x
  %s = loom.external @sort over <[0] : [2]> ins(%g : (d0) -> (d0, 0) :> [1, 2])
         outs((d0) -> (d0, 0) :> [1, 2]) shards <grid [[0, 1, 2]]> attributes {note = "sort"}
         : (!g) -> !g
  func.return %y, %z, %s : !x, !x, !g
}
func.func @joined(%x: !x) -> !loom.tensor<[] : [], f32> {
  %e = loom.operation @exp over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 }
         {note = "exp", made = "by hand"} : (!x) -> !x
  %s = loom.operation @sum over <[0] : [4]> [fold] by @add ins(%e : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } {note = "sum"}
         : (!x) -> !loom.tensor<[] : [], f32>
  func.return %s : !loom.tensor<[] : [], f32>
}

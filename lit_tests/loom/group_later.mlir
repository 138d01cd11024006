// RUN: tapestry-opt %s -p loom-group{ops=a,d} --equal-each | filecheck %s

// What stands between members and reads what they write moves behind the group, in its order.

// CHECK:      loom.fused @a_d
// CHECK:      loom.operation @b
// CHECK:      loom.operation @c
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> (!x, !x) {
  %a = loom.operation @a over <[0] : [4]> [map] ins(%x : (i) -> (i)) outs((i) -> (i))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
  %b = loom.operation @b over <[0] : [4]> [map] ins(%a : (i) -> (-i + 3)) outs((i) -> (i))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
  %c = loom.operation @c over <[0] : [4]> [map] ins(%b : (i) -> (-i + 3)) outs((i) -> (i))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
  %d = loom.operation @d over <[0] : [4]> [map] ins(%a : (i) -> (i)) outs((i) -> (i))
         wrap (%c: f32) { %r = math.tanh %c : f32  loom.yield %r : f32 } : (!x) -> !x
  func.return %c, %d : !x, !x
}

// RUN: tapestry-opt %s -p 'weft-apply,loom-group,loom-substitute{rules=identities}' --equal-each | filecheck %s

// Rules leave members of a group alone: the group says where each of them is. Here `x + x` would be
// `x * 2` outside of it, with a constant.

// CHECK:     loom.fused @a_b
// CHECK-NOT: loom.constant
// CHECK:       loom.operation @a
// CHECK:         arith.addf
// CHECK:       loom.operation @b

!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %a = weft.apply @add(%x, %x) : (!x, !x) -> !x
  %b = weft.apply @exp(%a) : (!x) -> !x
  func.return %b : !x
}

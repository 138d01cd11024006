// RUN: tapestry-opt %s -p weft-apply | filecheck %s

// Inputs are given by the names of arguments: they stay, whatever their suffixes.
!x = !loom.tensor<[0] : [3], f32>
// CHECK: func.func @main(%x_2: {{.*}}, %x_1: {{.*}}, %x: {{.*}}) ->
func.func @main(%x_2: !x, %x_1: !x, %x: !x) -> !x {
  // CHECK: ins(%x_2 : (d0) -> (d0), %x : (d0) -> (d0))
  %y_1 = weft.apply @add(%x_2, %x) : (!x, !x) -> !x
  // CHECK: ins(%y : (d0) -> (d0), %x_1 : (d0) -> (d0))
  %y_2 = weft.apply @mul(%y_1, %x_1) : (!x, !x) -> !x
  func.return %y_2 : !x
}

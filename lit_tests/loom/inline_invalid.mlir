// RUN: not tapestry-opt %s -p loom-inline 2>&1 | filecheck %s

// CHECK: inline_invalid.mlir:11:3: error: @once calls itself, so it cannot be inlined

!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = func.call @once(%x) : (!x) -> !x
  func.return %y : !x
}
func.func private @once(%x: !x) -> !x {
  %y = func.call @once(%x) : (!x) -> !x
  func.return %y : !x
}

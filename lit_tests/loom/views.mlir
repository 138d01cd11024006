// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

!m = !loom.tensor<[0, 0] : [2, 3], f32>
func.func @main(%x: !m) -> !loom.tensor<[0] : [6], f32> {
  // CHECK: %t = loom.view %x : (d0, d1) -> (d1, d0) : (!loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0, 0] : [3, 2], f32>
  %t = loom.view %x : (d0, d1) -> (d1, d0) : !m -> !loom.tensor<[0, 0] : [3, 2], f32>
  // CHECK: %r = loom.reshape %t : !loom.tensor<[0, 0] : [3, 2], f32> -> !loom.tensor<[0] : [6], f32>
  %r = loom.reshape %t : !loom.tensor<[0, 0] : [3, 2], f32> -> !loom.tensor<[0] : [6], f32>
  // CHECK: %a = loom.view %r : (d0) -> (d0) : (!loom.tensor<[0] : [6], f32>) -> !loom.tensor<[0] : [2], f32>
  %a = loom.view %r : (d0) -> (d0) : !loom.tensor<[0] : [6], f32> -> !loom.tensor<[0] : [2], f32>
  // CHECK: %b = loom.view %r : (d0) -> (-d0 + 7) :
  %b = loom.view %r : (d0) -> (7 - d0) : !loom.tensor<[0] : [6], f32> -> !loom.tensor<[2] : [6], f32>
  // CHECK: %y = loom.assemble %a, %b : !loom.tensor<[0] : [2], f32>, !loom.tensor<[2] : [6], f32> -> !loom.tensor<[0] : [6], f32>
  %y = loom.assemble %a, %b : !loom.tensor<[0] : [2], f32>, !loom.tensor<[2] : [6], f32> -> !loom.tensor<[0] : [6], f32>
  func.return %y : !loom.tensor<[0] : [6], f32>
}

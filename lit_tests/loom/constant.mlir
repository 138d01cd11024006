// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @main
func.func @main() -> !loom.tensor<[0] : [2], f32> {
  // One cell stands for all of them, however many they are.
  // CHECK:   %half = loom.constant 0.5 : !loom.tensor<[0, 0] : [1099511627776, 4], f32>
  // GENERIC: %half = "loom.constant"() <{value = #loom.data<"0x0000003F">}>
  %half = loom.constant 0.5 : !loom.tensor<[0, 0] : [1099511627776, 4], f32>
  // CHECK-NEXT: %rows = loom.constant [[1, 2], [3, -4]] : !loom.tensor<[0, 0] : [2, 2], i32>
  %rows = loom.constant [[1, 2], [3, -4]] : !loom.tensor<[0, 0] : [2, 2], i32>
  // CHECK-NEXT: %bits = loom.constant [1.0, 2.0] : !loom.tensor<[0] : [2], f32>
  %bits = loom.constant "0x0000803F00000040" : !loom.tensor<[0] : [2], f32>
  // CHECK-NEXT: %nan = loom.constant "0x0000C07F" {note = "all cells"} : !loom.tensor<[0] : [2], f32>
  %nan = loom.constant "0x0000C07F" {note = "all cells"} : !loom.tensor<[0] : [2], f32>
  // CHECK-NEXT: %none = loom.constant [] : !loom.tensor<[3] : [3], bf16>
  %none = loom.constant [] : !loom.tensor<[3] : [3], bf16>
  // CHECK-NEXT: %truth = loom.constant [true, false] : !loom.tensor<[4] : [6], i1>
  %truth = loom.constant [true, false] : !loom.tensor<[4] : [6], i1>
  // CHECK-NEXT: %narrow = loom.constant [1.5, 1.0011717677116394e-08] : !loom.tensor<[4] : [6], bf16>
  %narrow = loom.constant [1.5, 1.0e-8] : !loom.tensor<[4] : [6], bf16>
  // CHECK-NEXT: %wide = loom.constant [1.5, 1.0e+300] : !loom.tensor<[4] : [6], f64>
  %wide = loom.constant [1.5, 1.0e+300] : !loom.tensor<[4] : [6], f64>
  // CHECK-NEXT: %w = loom.constant file "weights.npz" entry "w1" : !loom.tensor<[0, 0] : [64, 10], f32>
  %w = loom.constant file "weights.npz" entry "w1" : !loom.tensor<[0, 0] : [64, 10], f32>
  func.return %bits : !loom.tensor<[0] : [2], f32>
}

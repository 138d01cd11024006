// RUN: tapestry-opt %s -p loom-to-triton | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s --check-prefix=PYTHON

// CHECK:      %c = triton.constant bytes "0000803F00000040" : memref<2xf32>
// CHECK-NEXT: %w = triton.constant file "weights.npz" entry "w1" : memref<3xf32>
// CHECK-NEXT: %z = triton.allocate fill 5.000000e-01 : f32 : memref<4xf32>

// PYTHON: C_BYTES = bytes.fromhex("0000803F00000040")
// PYTHON: def torch_upload(data, shape, dtype):
// PYTHON: def read_entry(folder, path, entry):
// PYTHON: def launch(*, allocate=torch_allocate, upload=torch_upload, folder="."):
// PYTHON:     c = upload(C_BYTES, (2,), "float32")
// PYTHON:     w = upload(read_entry(folder, "weights.npz", "w1"), (3,), "float32")
// PYTHON:     z = allocate((4,), "float32", 0.5)
func.func @main() -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [3], f32>,
                      !loom.tensor<[0] : [4], f32>) {
  %c = loom.constant [1.0, 2.0] : !loom.tensor<[0] : [2], f32>
  %w = loom.constant file "weights.npz" entry "w1" : !loom.tensor<[0] : [3], f32>
  %z = loom.constant 0.5 : !loom.tensor<[0] : [4], f32>
  func.return %c, %w, %z : !loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [3], f32>,
                           !loom.tensor<[0] : [4], f32>
}

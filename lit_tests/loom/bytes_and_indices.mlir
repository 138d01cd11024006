// Tensors of bytes and of indices; bodies take the bits of a byte as i8.

// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p loom-to-triton | filecheck %s --check-prefix TRITON

// TRITON: triton.kernel @half(%x_ptr: !triton.ptr<ui8>, %n_ptr: !triton.ptr<i64>
// TRITON: triton.bitcast {{.*}}ui8
// TRITON: func.func @main(%{{.*}}: memref<6xui8>, %{{.*}}: memref<6xi64>) -> memref<6xui8>
!x = !loom.tensor<[0] : [6], ui8>
!n = !loom.tensor<[0] : [6], index>
// CHECK: func.func @main(%x: !loom.tensor<[0] : [6], ui8>, %n: !loom.tensor<[0] : [6], index>)
func.func @main(%x: !x, %n: !n) -> !x {
  // CHECK: clip -1 : i8
  %y = loom.operation @half over <[0] : [6]> [map]
         ins(%x : (d0) -> (d0 + 1) clip -1 : i8, %n : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%a: i8, %i: index) {
           // CHECK: arith.index_cast %i : index to i8
           %b = arith.index_cast %i : index to i8
           %h = arith.divui %a, %b : i8
           loom.yield %h : i8
         } : (!x, !n) -> !x
  func.return %y : !x
}

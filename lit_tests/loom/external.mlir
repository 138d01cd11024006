// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p 'loom-shard{grid=2 op=sort},loom-expand-shards' | filecheck %s --check-prefix=EXPANDED
// RUN: tapestry-opt %s -p 'loom-shard{grid=2 op=sort},loom-to-triton' | tapestry-opt | filecheck %s --check-prefix=HOST
// RUN: tapestry-opt %s -p 'loom-simplify' | filecheck %s --check-prefix=SIMPLE

// CHECK:      %y = loom.external @sort over <[0] : [64]>
// CHECK-NEXT:     ins(%x : (d0) -> (d0, 2) :> [1, 128])
// CHECK-NEXT:     outs((d0) -> (d0, 2) :> [1, 128])
// CHECK-NEXT:     parameters {descending = true}
// CHECK-NEXT:     attributes {note = "kept"}
// CHECK:      %z = loom.external @argsort over <[0] : [16]>
// CHECK-NEXT:     ins(%x : (d0) -> (4 * d0, 2) :> [4, 128])
// CHECK-NEXT:     outs((d0) -> (4 * d0, 2) :> [4, 128])
// CHECK-NEXT:     shards <grid {{\[\[}}0, 8, 16]]>

// EXPANDED:      loom.external @sort over <[0] : [32]>
// EXPANDED:      -> !loom.tensor<[0, 2] : [32, 130], f32>
// EXPANDED:      loom.external @sort over <[32] : [64]>
// EXPANDED:      -> !loom.tensor<[32, 2] : [64, 130], f32>
// EXPANDED:      loom.assemble
// EXPANDED:      loom.external @argsort over <[0] : [8]>

// HOST:      triton.external "sort"(%x, %y : memref<64x128xf32>, memref<64x128xf32>) inputs 1 : i64 boxes dense<{{\[\[}}0, 32, 0, 128, 0, 32, 0, 128], [32, 64, 0, 128, 32, 64, 0, 128]]> : tensor<2x8xi64> parameters {descending = true}

// Kernels of different names are different, however alike their signatures are.
// SIMPLE:  loom.external @sort
// SIMPLE:  loom.external @argsort
!x = !loom.tensor<[0, 2] : [64, 130], f32>
func.func @main(%x: !x) -> (!x, !loom.tensor<[0, 2] : [64, 130], i64>) {
  %y = loom.external @sort over <[0] : [64]>
         ins(%x : (d0) -> (d0, 2) :> [1, 128]) outs((d0) -> (d0, 2) :> [1, 128])
         parameters {descending = true} attributes {note = "kept"}
         : (!x) -> !x
  %z = loom.external @argsort over <[0] : [16]>
         ins(%x : (d0) -> (d0 * 4, 2) :> [4, 128]) outs((d0) -> (d0 * 4, 2) :> [4, 128])
         shards <grid [[0, 8, 16]]>
         : (!x) -> !loom.tensor<[0, 2] : [64, 130], i64>
  func.return %y, %z : !x, !loom.tensor<[0, 2] : [64, 130], i64>
}

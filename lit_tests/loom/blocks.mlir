// RUN: tapestry-opt %s --split-input-file | tapestry-opt --split-input-file | filecheck %s
// RUN: tapestry-opt %s --split-input-file --print-op-generic | tapestry-opt --split-input-file | filecheck %s
// RUN: tapestry-opt %s --split-input-file -p 'loom-shard{grid=2,1},loom-expand-shards' | filecheck %s --check-prefix=SHARDS

// A point that selects a box takes a block of it, in wrap and in unwrap. A shard selects the whole
// box, whatever the indices turn out to be.
!ids = !loom.tensor<[0] : [4], i64>
!table = !loom.tensor<[0, 0] : [50, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @main
// CHECK: ins(%ids : (d0, d1) -> (d0), %table : (d0, d1) -> (0, d1) :> [50, 1])
// CHECK-NEXT: extra(%bias : (d0) -> (d0 - 1) :> [3] clip 0.000000e+00 : f32)
// CHECK: wrap (%id: i64, %rows: !loom.block<[50, 1], f32>) {
// CHECK-NEXT: %zero = arith.constant 0 : i64
// CHECK-NEXT: %none = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: %v = loom.read %rows[%id, %zero] else %none : f32
// CHECK: unwrap (%s: f32, %around: !loom.block<[3], f32>) {
// CHECK: %b = loom.read %around[%i] : f32

// SHARDS: loom.kernel @embed [map, fold] by @add
// SHARDS-NEXT: ins((d0, d1) -> (d0), (d0, d1) -> (0, d1) :> [50, 1])
// SHARDS: loom.application @embed over <[0, 0] : [2, 8]> (%ids <[0] : [2]>, %table <[0, 0] : [50, 8]>, %bias <[0] : [3]>)
// SHARDS: loom.application @embed over <[2, 0] : [4, 8]> (%ids <[2] : [4]>, %table <[0, 0] : [50, 8]>, %bias <[1] : [4]>)
func.func @main(%ids: !ids, %table: !table, %bias: !y) -> !y {
  %y = loom.operation @embed over <[0, 0] : [4, 8]> [map, fold] by @add
         ins(%ids : (d0, d1) -> (d0), %table : (d0, d1) -> (0, d1) :> [50, 1])
         extra(%bias : (d0) -> (d0 - 1) :> [3] clip 0.0 : f32)
         outs((d0) -> (d0))
         wrap (%id: i64, %rows: !loom.block<[50, 1], f32>) {
           %zero = arith.constant 0 : i64
           %none = arith.constant 1.0 : f32
           %v = loom.read %rows[%id, %zero] else %none : f32
           loom.yield %v : f32
         }
         unwrap (%s: f32, %around: !loom.block<[3], f32>) {
           %i = arith.constant 2 : i64
           %b = loom.read %around[%i] : f32
           %r = arith.addf %s, %b : f32
           loom.yield %r : f32
         } : (!ids, !table, !y) -> !y
  func.return %y : !y
}

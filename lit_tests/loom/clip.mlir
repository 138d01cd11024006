// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p 'loom-shard{grid=2,1},loom-expand-shards' | filecheck %s --check-prefix=SHARDS

// What an input reads outside its tensor is written beside its projection.
!x = !loom.tensor<[0] : [4], f32>
!i = !loom.tensor<[2] : [4], i32>
!y = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @window
// CHECK: ins(%x : (d0, d1) -> (d0 + d1 - 1) clip 0xff800000 : f32)
// CHECK-NEXT: extra(%b : (d0) -> (d0), %i : (d0) -> (d0 + 1) clip -1 : i32)

// A selection holds the cells that exist: the halo ends with the tensor.
// SHARDS: loom.kernel @y [map, fold] by @max
// SHARDS-NEXT: ins((d0, d1) -> (d0 + d1 - 1) clip 0xff800000 : f32)
// SHARDS-NEXT: extra((d0) -> (d0), (d0) -> (d0 + 1) clip -1 : i32)
// SHARDS: loom.application @y over <[0, 0] : [3, 3]> (%x <[0] : [4]>, %b <[0] : [3]>, %i <[2] : [4]>)
// SHARDS: loom.application @y over <[3, 0] : [6, 3]> (%x <[2] : [4]>, %b <[3] : [6]>, %i <[4] : [4]>)
func.func @window(%x: !x, %b: !y, %i: !i) -> !y {
  %y = loom.operation @y over <[0, 0] : [6, 3]> [map, fold] by @max
         ins(%x : (d0, d1) -> (d0 + d1 - 1) clip 0xFF800000 : f32)
         extra(%b : (d0) -> (d0), %i : (d0) -> (d0 + 1) clip -1 : i32) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%m: f32, %p: f32, %q: i32) {
           %f = arith.sitofp %q : i32 to f32
           %s = arith.addf %m, %p : f32
           %t = arith.addf %s, %f : f32
           loom.yield %t : f32
         } : (!x, !y, !i) -> !y
  func.return %y : !y
}

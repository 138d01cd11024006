// RUN: tapestry-opt %s -p loom-simplify --split-input-file --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-fuse --split-input-file --equal-each | filecheck %s --check-prefix=FUSE

// A fill that no point needs goes.
!x = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @idle
func.func @idle(%x: !x) -> !x {
  // CHECK: ins(%x : (d0) -> (-d0 + 3))
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (3 - d0) clip 1.0 : f32)
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

// A view that ends where its source does folds into a clipped reader; one that hides cells on the
// side that the reader leaves does not.
!x = !loom.tensor<[0] : [8], f32>
!v = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0] : [5], f32>
// CHECK-LABEL: @views
func.func @views(%x: !x) -> (!y, !y, !y) {
  // CHECK: loom.operation @ends
  // CHECK-NEXT: ins(%x : (d0) -> (2 * d0) clip 1.000000e+00 : f32)
  %even = loom.view %x : (d0) -> (2 * d0) : !x -> !v
  %a = loom.operation @ends over <[0] : [5]> [map] ins(%even : (d0) -> (d0) clip 1.0 : f32)
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!v) -> !y
  // CHECK: %hides = loom.view %x : (d0) -> (d0)
  // CHECK: loom.operation @hides
  // CHECK-NEXT: ins(%hides : (d0) -> (d0) clip 1.000000e+00 : f32)
  %hides = loom.view %x : (d0) -> (d0) : !x -> !v
  %b = loom.operation @hides over <[0] : [5]> [map] ins(%hides : (d0) -> (d0) clip 1.0 : f32)
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!v) -> !y
  // CHECK: loom.operation @other_side
  // CHECK-NEXT: ins(%x : (d0) -> (d0 - 1) clip 1.000000e+00 : f32)
  %c = loom.operation @other_side over <[0] : [5]> [map]
         ins(%hides : (d0) -> (d0 - 1) clip 1.0 : f32) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!v) -> !y
  func.return %a, %b, %c : !y, !y, !y
}

// -----

// A clipped read goes through no reshape, and no other fill is the same read.
!x = !loom.tensor<[0] : [4], f32>
!r = !loom.tensor<[0, 0] : [2, 2], f32>
// CHECK-LABEL: @reshape
func.func @reshape(%x: !x) -> !x {
  // CHECK: loom.reshape
  // CHECK: ins(%r : (d0) -> (d0, 0) clip 0.000000e+00 : f32, %r : (d0) -> (d0, 0) clip 1.000000e+00 : f32)
  %r = loom.reshape %x : !x -> !r
  %y = loom.operation @y over <[0] : [4]> [map]
         ins(%r : (d0) -> (d0, 0) clip 0.0 : f32, %r : (d0) -> (d0, 0) clip 1.0 : f32,
             %r : (d0) -> (d0, 0) clip 0.0 : f32)
         outs((d0) -> (d0))
         wrap (%a: f32, %b: f32, %c: f32) {
           %s = arith.addf %a, %b : f32
           %t = arith.addf %s, %c : f32
           loom.yield %t : f32
         } : (!r, !r, !r) -> !x
  func.return %y : !x
}

// -----

// A map is not computed where a clipped reader finds the fill, nor is its own fill forgotten.
!x = !loom.tensor<[0] : [4], f32>
// FUSE-LABEL: @map
func.func @map(%x: !x) -> !x {
  // FUSE: loom.operation @a_b
  // FUSE-NEXT: ins(%x : (d0) -> (-d0 + 2) clip 5.000000e+00 : f32)
  // FUSE: loom.operation @c
  // FUSE-NEXT: ins(%b : (d0) -> (d0 - 1) clip 0.000000e+00 : f32)
  %a = loom.operation @a over <[0] : [4]> [map] ins(%x : (d0) -> (d0 - 1) clip 5.0 : f32)
         outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %b = loom.operation @b over <[0] : [4]> [map] ins(%a : (d0) -> (3 - d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %c = loom.operation @c over <[0] : [4]> [map] ins(%b : (d0) -> (d0 - 1) clip 0.0 : f32)
         outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  func.return %c : !x
}

// -----

// A clipped reader of a fold does not visit each of its cells once.
!m = !loom.tensor<[0, 0] : [4, 3], f32>
!x = !loom.tensor<[0] : [4], f32>
// FUSE-LABEL: @fold
func.func @fold(%m: !m, %b: !x) -> (!x, !x) {
  // FUSE: loom.operation @s over
  // FUSE: loom.operation @e over
  // FUSE: loom.operation @t_f over
  // FUSE-NEXT: ins(%m : (d0, d1) -> (d0, d1))
  // FUSE-NEXT: extra(%b : (d0) -> (d0 - 2) clip 7.000000e+00 : f32)
  %s = loom.operation @s over <[0, 0] : [4, 3]> [map, fold] by @add ins(%m : (i, k) -> (i, k))
         outs((i) -> (i)) wrap (%c: f32) { loom.yield %c : f32 } : (!m) -> !x
  %e = loom.operation @e over <[0] : [4]> [map] ins(%s : (d0) -> (d0 - 1) clip 0.0 : f32)
         outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!x) -> !x
  %t = loom.operation @t over <[0, 0] : [4, 3]> [map, fold] by @add ins(%m : (i, k) -> (i, k))
         outs((i) -> (i)) wrap (%c: f32) { loom.yield %c : f32 } : (!m) -> !x
  %f = loom.operation @f over <[0] : [4]> [map]
         ins(%t : (d0) -> (d0), %b : (d0) -> (d0 - 2) clip 7.0 : f32) outs((d0) -> (d0))
         wrap (%c: f32, %d: f32) { %e = arith.mulf %c, %d : f32 loom.yield %e : f32 }
         : (!x, !x) -> !x
  func.return %e, %f : !x, !x
}

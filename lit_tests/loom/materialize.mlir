// RUN: tapestry-opt %s -p loom-simplify,loom-materialize --split-input-file --equal-each | filecheck %s
// RUN: tapestry-opt %s -p "loom-materialize{all=true}" --split-input-file --equal-each | filecheck %s --check-prefix=ALL

// No common factorization: stored as a line, of which every reshape is affine.
!m = !loom.tensor<[1, 2] : [7, 6], f32>
!n = !loom.tensor<[0, 0] : [4, 6], f32>
// CHECK-LABEL: @factors
// ALL-LABEL: @factors
func.func @factors(%x: !m) -> !n {
  // CHECK-NEXT: %[[C:.*]] = loom.operation @copy over <[1, 2] : [7, 6]> [map, map]
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: outs((d0, d1) -> (4 * d0 + d1 - 6))
  // CHECK-NOT: loom.reshape
  // CHECK: loom.operation @y over <[0, 0] : [4, 6]>
  // CHECK-NEXT: ins(%[[C]] : (d0, d1) -> (6 * d0 + d1))
  // ALL-COUNT-1: @copy
  // ALL: loom.operation @y over <[0, 0] : [4, 6]>
  // ALL-NEXT: ins(%{{.*}} : (d0, d1) -> (6 * d0 + d1))
  %r = loom.reshape %x : !m -> !n
  %y = loom.operation @y over <[0, 0] : [4, 6]> [map, map] ins(%r : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!n) -> !n
  func.return %y : !n
}

// -----

// The operation that alone computes it writes the line, unless its shards would not write intervals.
!m = !loom.tensor<[0, 0] : [6, 4], f32>
!n = !loom.tensor<[0, 0] : [4, 6], f32>
// CHECK-LABEL: @writer
func.func @writer(%x: !m) -> (!n, !n) {
  // CHECK: %[[A:.*]] = loom.operation @a
  // CHECK: outs((d0, d1) -> (4 * d0 + d1))
  // CHECK: loom.operation @y
  // CHECK-NEXT: ins(%[[A]] : (d0, d1) -> (6 * d0 + d1))
  // CHECK: %[[B:.*]] = loom.operation @b
  // CHECK: outs((d0, d1) -> (d0, d1))
  // CHECK: %[[C:.*]] = loom.operation @copy
  // CHECK-NEXT: ins(%[[B]]
  // CHECK: loom.operation @z
  // CHECK-NEXT: ins(%[[C]] : (d0, d1) -> (6 * d0 + d1))
  %a = loom.operation @a over <[0, 0] : [6, 4]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!m) -> !m
  %r = loom.reshape %a : !m -> !n
  %y = loom.operation @y over <[0, 0] : [4, 6]> [map, map] ins(%r : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!n) -> !n
  %b = loom.operation @b over <[0, 0] : [6, 4]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) shards <grid [[0, 6], [0, 2, 4]]> wrap (%p: f32) { %q = math.sin %p : f32 loom.yield %q : f32 } : (!m) -> !m
  %s = loom.reshape %b : !m -> !n
  %z = loom.operation @z over <[0, 0] : [4, 6]> [map, map] ins(%s : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!n) -> !n
  func.return %y, %z : !n, !n
}

// -----

// A returned view stays, unless all is asked for; so do the parts of an assembly.
!m = !loom.tensor<[0, 0] : [2, 3], f32>
!t = !loom.tensor<[0, 0] : [3, 2], f32>
!u = !loom.tensor<[0, 0] : [6, 2], f32>
// CHECK-LABEL: @returned
// ALL-LABEL: @returned
func.func @returned(%x: !m, %z: !t) -> (!t, !u) {
  // CHECK-NOT: @copy
  // CHECK: loom.view
  // ALL-NOT: loom.view
  // ALL: %v = loom.operation @copy over <[0, 0] : [3, 2]> [map, map]
  // ALL-NEXT: ins(%x : (d0, d1) -> (d1, d0))
  // ALL: %[[Z:.*]] = loom.operation @copy
  // ALL-NEXT: ins(%z : (d0, d1) -> (d0, d1))
  // ALL: loom.assemble %v at (d0, d1) -> (2 * d0, d1), %[[Z]] at (d0, d1) -> (2 * d0 + 1, d1)
  %v = loom.view %x : (d0, d1) -> (d1, d0) : !m -> !t
  %y = loom.assemble %v at (d0, d1) -> (2 * d0, d1), %z at (d0, d1) -> (2 * d0 + 1, d1) : !t, !t -> !u
  func.return %v, %y : !t, !u
}

// -----

// All: a reshape that is returned is stored as a line, and read back in shape.
!m = !loom.tensor<[0, 0] : [2, 3], f32>
!v = !loom.tensor<[1, 0] : [4, 2], f32>
// CHECK-LABEL: @reshaped
// ALL-LABEL: @reshaped
func.func @reshaped(%x: !m) -> !v {
  // CHECK: loom.reshape
  // ALL: %[[C:.*]] = loom.operation @copy over <[0, 0] : [2, 3]>
  // ALL: outs((d0, d1) -> (3 * d0 + d1))
  // ALL: %{{.*}} = loom.operation @copy over <[1, 0] : [4, 2]>
  // ALL-NEXT: ins(%[[C]] : (d0, d1) -> (2 * d0 + d1 - 2))
  %r = loom.reshape %x : !m -> !v
  func.return %r : !v
}

// -----

// A clipped read must not see what its view hides, nor the line instead of what it is reshaped to.
!v = !loom.tensor<[0] : [8], f32>
!h = !loom.tensor<[0] : [4], f32>
!m = !loom.tensor<[0, 0] : [2, 4], f32>
!n = !loom.tensor<[0, 0] : [2, 5], f32>
!g = !loom.tensor<[0] : [5], f32>
// CHECK-LABEL: @clipped
func.func @clipped(%x: !v) -> (!g, !n) {
  // CHECK: %[[V:.*]] = loom.operation @copy over <[0] : [4]>
  // CHECK: loom.operation @y
  // CHECK-NEXT: ins(%[[V]] : (d0) -> (d0 - 1) clip
  // CHECK: %[[R:.*]] = loom.operation @copy over <[0, 0] : [2, 4]>
  // CHECK-NEXT: ins(%x : (d0, d1) -> (4 * d0 + d1))
  // CHECK: loom.operation @z
  // CHECK-NEXT: ins(%[[R]] : (d0, d1) -> (d0, d1) clip
  %v = loom.view %x : (d0) -> (d0 + 2) : !v -> !h
  %y = loom.operation @y over <[0] : [5]> [map] ins(%v : (d0) -> (d0 - 1) clip 0.0 : f32)
         outs((d0) -> (d0)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!h) -> !g
  %r = loom.reshape %x : !v -> !m
  %z = loom.operation @z over <[0, 0] : [2, 5]> [map, map] ins(%r : (d0, d1) -> (d0, d1) clip 0.0 : f32)
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!m) -> !n
  func.return %y, %z : !g, !n
}

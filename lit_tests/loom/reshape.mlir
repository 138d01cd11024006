// RUN: tapestry-opt %s -p loom-simplify --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p "loom-simplify{writers=true}" --equal-each --split-input-file | filecheck %s --check-prefix=WRITE

// A fold dimension splits like a map dimension; its digits keep their order.
!m = !loom.tensor<[0, 0] : [6, 4], f32>
!v = !loom.tensor<[0] : [24], f32>
!s = !loom.tensor<[] : [], f32>
// CHECK-LABEL: @fold
func.func @fold(%x: !m) -> !s {
  // CHECK-NOT: loom.reshape
  // CHECK: loom.operation @y over <[0, 0] : [6, 4]> [fold, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: outs(() -> ())
  %r = loom.reshape %x : !m -> !v
  %y = loom.operation @y over <[0] : [24]> [fold] by @add ins(%r : (d0) -> (d0)) outs(() -> ())
         wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !s
  func.return %y : !s
}

// -----

// Several readers, each through its own projection: from the last cell to the first, a part, one
// of several strided, the diagonal of a split.
!m = !loom.tensor<[1, 2] : [7, 6], f32>
!v = !loom.tensor<[0] : [24], f32>
!p = !loom.tensor<[0] : [12], f32>
!q = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @readers
func.func @readers(%x: !m) -> (!v, !p, !q, !q) {
  // CHECK-NOT: loom.reshape
  // CHECK: loom.operation @a over <[0, 0] : [6, 4]>
  // CHECK-NEXT: ins(%x : (d0, d1) -> (-d0 + 6, -d1 + 5))
  // CHECK: loom.operation @b over <[0, 0] : [3, 4]>
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0 + 3, d1 + 2))
  // CHECK: loom.operation @c over <[0] : [6]>
  // CHECK-NEXT: ins(%x : (d0) -> (d0 + 1, 5))
  // CHECK: loom.operation @d over <[0, 0] : [3, 2]>
  // CHECK-NEXT: ins(%x : (d0, d1) -> (2 * d0 + 1, 3 * d1 + 2))
  %r = loom.reshape %x : !m -> !v
  %a = loom.operation @a over <[0] : [24]> [map] ins(%r : (d0) -> (23 - d0)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  %b = loom.operation @b over <[0] : [12]> [map] ins(%r : (d0) -> (d0 + 8)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !p
  %c = loom.operation @c over <[0] : [6]> [map] ins(%r : (d0) -> (4 * d0 + 3)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !q
  %d = loom.operation @d over <[0, 0] : [3, 2]> [map, map] ins(%r : (d0, d1) -> (8 * d0 + 3 * d1))
         outs((d0, d1) -> (2 * d0 + d1))
         wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !q
  func.return %a, %b, %c, %d : !v, !p, !q, !q
}

// -----

// Attention's heads, split and merged: reshape, transpose, reshape.
!x = !loom.tensor<[0, 0] : [5, 12], f32>
!h = !loom.tensor<[0, 0, 0] : [5, 3, 4], f32>
!t = !loom.tensor<[0, 0, 0] : [3, 5, 4], f32>
!b = !loom.tensor<[0, 0] : [15, 4], f32>
// CHECK-LABEL: @heads
func.func @heads(%x: !x) -> (!b, !x) {
  // CHECK-NOT: loom.reshape
  // CHECK-NOT: loom.view
  // CHECK: %y = loom.operation @y over <[0, 0, 0] : [3, 5, 4]> [map, map, map]
  // CHECK-NEXT: ins(%x : (d0, d1, d2) -> (d1, 4 * d0 + d2))
  // CHECK-NEXT: outs((d0, d1, d2) -> (5 * d0 + d1, d2))
  // CHECK: loom.operation @z over <[0, 0, 0] : [5, 3, 4]> [map, map, map]
  // CHECK-NEXT: ins(%y : (d0, d1, d2) -> (d0 + 5 * d1, d2))
  // CHECK-NEXT: outs((d0, d1, d2) -> (d0, 4 * d1 + d2))
  %r = loom.reshape %x : !x -> !h
  %t = loom.view %r : (d0, d1, d2) -> (d1, d0, d2) : !h -> !t
  %m = loom.reshape %t : !t -> !b
  %y = loom.operation @y over <[0, 0] : [15, 4]> [map, map] ins(%m : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { loom.yield %p : f32 } : (!b) -> !b
  %u = loom.reshape %y : !b -> !t
  %v = loom.view %u : (d0, d1, d2) -> (d1, d0, d2) : !t -> !h
  %n = loom.reshape %v : !h -> !x
  %z = loom.operation @z over <[0, 0] : [5, 12]> [map, map] ins(%n : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { loom.yield %p : f32 } : (!x) -> !x
  func.return %y, %z : !b, !x
}

// -----

// A partition follows where each part stays a box; else the reshape stays.
!m = !loom.tensor<[0, 0] : [6, 4], f32>
!v = !loom.tensor<[0] : [24], f32>
// CHECK-LABEL: @sharded
func.func @sharded(%x: !m) -> (!v, !v, !v) {
  // CHECK: %[[R:.*]] = loom.reshape
  // CHECK: loom.operation @grid over <[0, 0] : [6, 4]>
  // CHECK: shards <grid [{{\[}}0, 2, 6], [0, 4]]>
  // CHECK: loom.operation @ranges over <[0, 0] : [6, 4]>
  // CHECK: shards <ranges [{{\[}}0, 0] : [5, 4], [5, 0] : [6, 3], [5, 3] : [6, 4]]>
  // CHECK: loom.operation @across over <[0] : [24]>
  // CHECK-NEXT: ins(%[[R]] :
  %r = loom.reshape %x : !m -> !v
  %y = loom.operation @grid over <[0] : [24]> [map] ins(%r : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 8, 24]]> wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  %z = loom.operation @ranges over <[0] : [24]> [map] ins(%r : (d0) -> (d0)) outs((d0) -> (d0))
         shards <ranges [[0] : [20], [20] : [23], [23] : [24]]> wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  %w = loom.operation @across over <[0] : [24]> [map] ins(%r : (d0) -> (d0)) outs((d0) -> (d0))
         shards <ranges [[0] : [5], [5] : [24]]> wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  func.return %y, %z, %w : !v, !v, !v
}

// -----

// Extents of 1 come and go; an extra is read through its own dimensions; nothing is read of nothing.
!m = !loom.tensor<[2, 0, 1] : [3, 4, 3], f32>
!b = !loom.tensor<[0] : [8], f32>
!o = !loom.tensor<[0, 0] : [8, 1], f32>
!w = !loom.tensor<[0, 0] : [8, 3], f32>
!e = !loom.tensor<[4, 0] : [4, 6], f32>
!f = !loom.tensor<[0] : [0], f32>
// CHECK-LABEL: @ones
func.func @ones(%x: !m, %w: !w, %e: !e) -> (!o, !f) {
  // CHECK-NOT: loom.reshape
  // CHECK: loom.operation @y over <[0, 0, 0, 0] : [4, 2, 1, 3]> [map, map, map, fold] by @add
  // CHECK-NEXT: ins(%w : (d0, d1, d2, d3) -> (2 * d0 + d1, d3))
  // CHECK-NEXT: extra(%x : (d0, d1, d2) -> (2, d0, d1 + 1))
  // CHECK-NEXT: outs((d0, d1, d2) -> (2 * d0 + d1, d2))
  // CHECK: loom.operation @e
  // CHECK-NEXT: ins(%e : (d0) -> (4, 0))
  %r = loom.reshape %x : !m -> !b
  %s = loom.reshape %r : !b -> !o
  %y = loom.operation @y over <[0, 0, 0] : [8, 1, 3]> [map, map, fold] by @add
         ins(%w : (d0, d1, d2) -> (d0, d2)) extra(%s : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { loom.yield %p : f32 }
         unwrap (%a: f32, %c: f32) { %d = arith.addf %a, %c : f32 loom.yield %d : f32 } : (!w, !o) -> !o
  %g = loom.reshape %e : !e -> !f
  %z = loom.operation @e over <[0] : [0]> [map] ins(%g : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!f) -> !f
  func.return %y, %z : !o, !f
}

// -----

// A view of a reshape that needs no split is a view of its source.
!v = !loom.tensor<[0] : [24], f32>
!m = !loom.tensor<[0, 0] : [6, 4], f32>
!t = !loom.tensor<[0, 0] : [4, 3], f32>
// CHECK-LABEL: @view
func.func @view(%x: !v) -> !t {
  // CHECK-NEXT: %t = loom.view %x : (d0, d1) -> (d0 + 8 * d1) :
  %r = loom.reshape %x : !v -> !m
  %t = loom.view %r : (d0, d1) -> (2 * d1, d0) : !m -> !t
  func.return %t : !t
}

// -----

// Whoever alone writes it may write it reshaped, while its shards write boxes.
!m = !loom.tensor<[0, 0] : [6, 4], f32>
!v = !loom.tensor<[0] : [24], f32>
// CHECK-LABEL: @write
// WRITE-LABEL: @write
func.func @write(%x: !m, %z: !v) -> (!v, !v, !v, !m) {
  // CHECK-COUNT-4: loom.reshape
  // WRITE: loom.operation @whole
  // WRITE: outs((d0, d1) -> (4 * d0 + d1))
  // WRITE: loom.operation @rows
  // WRITE: outs((d0, d1) -> (4 * d0 + d1))
  // WRITE-NEXT: shards <grid [{{\[}}0, 1, 6], [0, 4]]>
  // WRITE: loom.operation @columns
  // WRITE: outs((d0, d1) -> (d0, d1))
  // WRITE: loom.operation @split over <[0, 0] : [6, 4]>
  // WRITE-NEXT: ins(%z : (d0, d1) -> (4 * d0 + d1))
  // WRITE-NEXT: outs((d0, d1) -> (d0, d1))
  // WRITE: loom.reshape
  %a = loom.operation @whole over <[0, 0] : [6, 4]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) wrap (%p: f32) { %q = arith.negf %p : f32 loom.yield %q : f32 } : (!m) -> !m
  %b = loom.operation @rows over <[0, 0] : [6, 4]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) shards <grid [[0, 1, 6], [0, 4]]> wrap (%p: f32) { loom.yield %p : f32 } : (!m) -> !m
  %c = loom.operation @columns over <[0, 0] : [6, 4]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1)) shards <grid [[0, 6], [0, 1, 4]]> wrap (%p: f32) { loom.yield %p : f32 } : (!m) -> !m
  %d = loom.operation @split over <[0] : [24]> [map] ins(%z : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  %ra = loom.reshape %a : !m -> !v
  %rb = loom.reshape %b : !m -> !v
  %rc = loom.reshape %c : !m -> !v
  %rd = loom.reshape %d : !v -> !m
  func.return %ra, %rb, %rc, %rd : !v, !v, !v, !m
}

// -----

// A scan runs along one dimension, which stays one.
!m = !loom.tensor<[0, 0] : [6, 4], f32>
!v = !loom.tensor<[0] : [24], f32>
// CHECK-LABEL: @scan
func.func @scan(%x: !m) -> !v {
  // CHECK: loom.reshape
  // CHECK: loom.operation @y over <[0] : [24]> [scan] by @add
  %r = loom.reshape %x : !m -> !v
  %y = loom.operation @y over <[0] : [24]> [scan] by @add ins(%r : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!v) -> !v
  func.return %y : !v
}

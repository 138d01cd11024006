// RUN: tapestry-opt %s -p loom-simplify --split-input-file --equal-each | filecheck %s

// A reader whose selection lies in one part reads the part; one across two reads the assembly.
!a = !loom.tensor<[0] : [3], f32>
!b = !loom.tensor<[3] : [8], f32>
!w = !loom.tensor<[0] : [8], f32>
!q = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @parts
func.func @parts(%a: !a, %b: !b) -> (!q, !q) {
  // CHECK: %y = loom.assemble %a, %b
  // CHECK: loom.operation @inside
  // CHECK-NEXT: ins(%b : (d0) -> (d0 + 4))
  // CHECK: loom.operation @across
  // CHECK-NEXT: ins(%y : (d0) -> (d0 + 2))
  %y = loom.assemble %a, %b : !a, !b -> !w
  %p = loom.operation @inside over <[0] : [4]> [map] ins(%y : (d0) -> (d0 + 4)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!w) -> !q
  %r = loom.operation @across over <[0] : [4]> [map] ins(%y : (d0) -> (d0 + 2)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!w) -> !q
  func.return %p, %r : !q, !q
}

// -----

// Every other cell of an interleaved tensor is one part; a dead part goes with the assembly.
!h = !loom.tensor<[0] : [4], f32>
!w = !loom.tensor<[0] : [8], f32>
!q = !loom.tensor<[0] : [3], f32>
// CHECK-LABEL: @strides
func.func @strides(%a: !h, %b: !h) -> (!q, !q) {
  // CHECK-NOT: loom.assemble
  // CHECK: loom.operation @odd
  // CHECK-NEXT: ins(%b : (d0) -> (-d0 + 3))
  // CHECK: loom.operation @one
  // CHECK-NEXT: ins(%b : (d0) -> (2))
  %y = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0 + 1) : !h, !h -> !w
  %p = loom.operation @odd over <[0] : [3]> [map] ins(%y : (d0) -> (7 - 2 * d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!w) -> !q
  %r = loom.operation @one over <[0] : [3]> [map] ins(%y : (d0) -> (5)) outs((d0) -> (d0))
         wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!w) -> !q
  func.return %p, %r : !q, !q
}

// -----

// Assemblies of assemblies are one; parts without cells go; a transposed part is placed so.
!a = !loom.tensor<[0] : [3], f32>
!b = !loom.tensor<[0] : [2], f32>
!e = !loom.tensor<[4] : [4], f32>
!v = !loom.tensor<[0] : [5], f32>
!m = !loom.tensor<[0, 0] : [2, 5], f32>
!t = !loom.tensor<[0, 0] : [5, 2], f32>
!w = !loom.tensor<[0, 0] : [5, 3], f32>
// CHECK-LABEL: @flatten
func.func @flatten(%a: !a, %b: !b, %e: !e, %m: !m) -> !w {
  // CHECK-NEXT: %w = loom.assemble %m at (d0, d1) -> (d1, d0), %a at (d0) -> (2 * d0, 2), %b at (d0) -> (2 * d0 + 1, 2) :
  // CHECK-NEXT: func.return %w
  %v = loom.assemble %a at (d0) -> (2 * d0), %e, %b at (d0) -> (2 * d0 + 1) : !a, !e, !b -> !v
  %t = loom.view %m : (d0, d1) -> (d1, d0) : !m -> !t
  %w = loom.assemble %t, %v at (d0) -> (d0, 2) : !t, !v -> !w
  func.return %w : !w
}

// -----

// All slices of one tensor are the tensor, turned where they were turned.
!m = !loom.tensor<[0, 0] : [4, 3], f32>
!t = !loom.tensor<[0, 0] : [2, 3], f32>
!u = !loom.tensor<[2, 0] : [4, 3], f32>
!n = !loom.tensor<[0, 0] : [3, 4], f32>
!p = !loom.tensor<[0, 0] : [3, 3], f32>
!q = !loom.tensor<[0, 3] : [3, 4], f32>
// CHECK-LABEL: @slices
func.func @slices(%x: !m) -> (!m, !m, !n) {
  // CHECK-NEXT: %z = loom.view %x : (d0, d1) -> (d1, d0) :
  // CHECK-NEXT: func.return %x, %x, %z
  %a = loom.view %x : (d0, d1) -> (d0, d1) : !m -> !t
  %b = loom.view %x : (d0, d1) -> (d0, d1) : !m -> !u
  %y = loom.assemble %b, %a : !u, !t -> !m
  %c = loom.view %x : (d0, d1) -> (2 * d0, d1) : !m -> !t
  %d = loom.view %x : (d0, d1) -> (2 * d0 + 1, d1) : !m -> !t
  %w = loom.assemble %c at (d0, d1) -> (2 * d0, d1), %d at (d0, d1) -> (2 * d0 + 1, d1) : !t, !t -> !m
  %e = loom.view %x : (d0, d1) -> (d1, d0) : !m -> !p
  %f = loom.view %x : (d0, d1) -> (d1, d0) : !m -> !q
  %z = loom.assemble %e, %f : !p, !q -> !n
  func.return %y, %w, %z : !m, !m, !n
}

// -----

// Slices of different tensors, or put elsewhere, stay.
!w = !loom.tensor<[0] : [4], f32>
!l = !loom.tensor<[0] : [2], f32>
!r = !loom.tensor<[2] : [4], f32>
// CHECK-LABEL: @swapped
func.func @swapped(%x: !w) -> !w {
  // CHECK: loom.assemble
  %a = loom.view %x : (d0) -> (d0 + 2) : !w -> !l
  %b = loom.view %x : (d0) -> (d0 - 2) : !w -> !r
  %y = loom.assemble %a, %b : !l, !r -> !w
  func.return %y : !w
}

// -----

// A view across parts views each; parts it does not touch go.
!a = !loom.tensor<[0] : [3], f32>
!b = !loom.tensor<[3] : [8], f32>
!c = !loom.tensor<[8] : [9], f32>
!w = !loom.tensor<[0] : [9], f32>
!q = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @across
func.func @across(%a: !a, %b: !b, %c: !c) -> !q {
  // CHECK-NEXT: %[[A:.*]] = loom.view %a : (d0) -> (-2 * d0 + 7) : (!loom.tensor<[0] : [3], f32>) -> !loom.tensor<[3] : [4], f32>
  // CHECK-NEXT: %[[B:.*]] = loom.view %b : (d0) -> (-2 * d0 + 7) : (!loom.tensor<[3] : [8], f32>) -> !loom.tensor<[0] : [3], f32>
  // CHECK-NEXT: loom.assemble %[[A]], %[[B]]
  %y = loom.assemble %a, %b, %c : !a, !b, !c -> !w
  %v = loom.view %y : (d0) -> (7 - 2 * d0) : !w -> !q
  func.return %v : !q
}

// -----

// Applications of shards that agree with the parts read the parts.
!w = !loom.tensor<[0] : [8], f32>
!l = !loom.tensor<[0] : [4], f32>
!r = !loom.tensor<[4] : [8], f32>
loom.kernel @twice [map] ins((d0) -> (d0)) outs((d0) -> (d0))
  wrap (%p: f32) { %q = arith.addf %p, %p : f32 loom.yield %q : f32 }
// CHECK-LABEL: @shards
func.func @shards(%a: !l, %b: !r) -> !w {
  // CHECK-NEXT: loom.application @twice over <[0] : [4]> (%a <[0] : [4]>)
  // CHECK-NEXT: loom.application @twice over <[4] : [8]> (%b <[4] : [8]>)
  // CHECK-NEXT: loom.assemble
  %x = loom.assemble %a, %b : !l, !r -> !w
  %c = loom.application @twice over <[0] : [4]> (%x <[0] : [4]>) : (!w) -> !l
  %d = loom.application @twice over <[4] : [8]> (%x <[4] : [8]>) : (!w) -> !r
  %y = loom.assemble %c, %d : !l, !r -> !w
  func.return %y : !w
}

// -----

// A transposed result is written so, if nothing else reads it and the shards still write boxes.
!m = !loom.tensor<[0, 0] : [2, 3], f32>
!t = !loom.tensor<[1, 0] : [4, 2], f32>
// CHECK-LABEL: @write
func.func @write(%x: !m) -> (!t, !t, !m) {
  // CHECK: %v = loom.operation @alone
  // CHECK: outs((d0, d1) -> (-d1 + 3, d0))
  // CHECK-NEXT: shards <grid [{{\[}}0, 1, 2], [0, 3]]>
  // CHECK: %[[Z:.*]] = loom.operation @shared
  // CHECK: loom.view %[[Z]]
  %y = loom.operation @alone over <[0, 0] : [2, 3]> [map, map] ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         shards <grid [[0, 1, 2], [0, 3]]> wrap (%c: f32) { %e = math.exp %c : f32 loom.yield %e : f32 } : (!m) -> !m
  %v = loom.view %y : (d0, d1) -> (d1, 3 - d0) : !m -> !t
  %z = loom.operation @shared over <[0, 0] : [2, 3]> [map, map] ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %e = math.sin %c : f32 loom.yield %e : f32 } : (!m) -> !m
  %u = loom.view %z : (d0, d1) -> (d1, d0 - 1) : !m -> !t
  func.return %v, %u, %z : !t, !t, !m
}

// -----

// A clipped read goes to the part where what it leaves the part by is outside the assembly as well.
!x = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[0] : [3], f32>
!s = !loom.tensor<[0] : [7], f32>
!e = !loom.tensor<[0] : [6], f32>
!l = !loom.tensor<[0] : [3], f32>
!r = !loom.tensor<[3] : [7], f32>
// CHECK-LABEL: @clipped
func.func @clipped(%x: !x, %z: !z, %l: !l, %r: !r) -> (!e, !e) {
  // CHECK: loom.operation @ends
  // CHECK-NEXT: ins(%x : (d0) -> (d0 - 1) clip
  // CHECK: loom.operation @inner
  // CHECK-NEXT: ins(%t : (d0) -> (d0 - 1) clip
  %s = loom.assemble %x at (d0) -> (2 * d0), %z at (d0) -> (2 * d0 + 1) : !x, !z -> !s
  %a = loom.operation @ends over <[0] : [6]> [map] ins(%s : (d0) -> (2 * d0 - 2) clip 0.0 : f32)
         outs((d0) -> (d0)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!s) -> !e
  %t = loom.assemble %l, %r : !l, !r -> !s
  %b = loom.operation @inner over <[0] : [6]> [map] ins(%t : (d0) -> (d0 - 1) clip 0.0 : f32)
         outs((d0) -> (d0)) wrap (%p: f32) { %q = math.exp %p : f32 loom.yield %q : f32 } : (!s) -> !e
  func.return %a, %b : !e, !e
}

// RUN: tapestry-opt %s -p loom-stride-classes --split-input-file --equal-each | filecheck %s

// Window 5, stride 2: three cells of the even class, two of the odd; coordinates follow.
!x = !loom.tensor<[0, 0] : [2, 11], i32>
!w = !loom.tensor<[0] : [5], i32>
!b = !loom.tensor<[0] : [2], i32>
!y = !loom.tensor<[0, 0] : [2, 4], i32>
// CHECK-LABEL: @window
func.func @window(%x: !x, %w: !w, %b: !b) -> !y {
  // CHECK: %[[X0:.*]] = loom.operation @copy over <[0, 0] : [2, 6]> [map, map]
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, 2 * d1))
  // CHECK: %[[W0:.*]] = loom.operation @copy over <[0] : [3]> [map]
  // CHECK-NEXT: ins(%w : (d0) -> (2 * d0))
  // CHECK: %[[S0:.*]] = loom.operation @conv_0 over <[0, 0, 0] : [2, 4, 3]> [map, map, fold] by @add
  // CHECK-NEXT: ins(%[[X0]] : (d0, d1, d2) -> (d0, d1 + d2), %[[W0]] : (d0, d1, d2) -> (d2))
  // CHECK-NEXT: outs((d0, d1) -> (d0, d1))
  // CHECK: loom.index 2
  // CHECK-NEXT: arith.constant 2 : i64
  // CHECK-NEXT: arith.muli
  // CHECK: %[[X1:.*]] = loom.operation @copy over <[0, 0] : [2, 5]> [map, map]
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, 2 * d1 + 1))
  // CHECK: %[[S1:.*]] = loom.operation @conv_1 over <[0, 0, 0] : [2, 4, 2]> [map, map, fold] by @add
  // CHECK: %y{{.*}} = loom.operation @conv over <[0, 0] : [2, 4]> [map, map]
  // CHECK-NEXT: ins(%[[S0]] : (d0, d1) -> (d0, d1), %[[S1]] : (d0, d1) -> (d0, d1), %b : (d0, d1) -> (d0))
  // CHECK-NEXT: outs((d0, d1) -> (d0, -d1 + 3))
  // CHECK: %[[M:.*]] = arith.addi
  // CHECK-NEXT: arith.muli %[[M]]
  %y = loom.operation @conv over <[0, 0, 0] : [2, 4, 5]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, 2 * d1 + d2), %w : (d0, d1, d2) -> (d2))
         extra(%b : (d0, d1) -> (d0)) outs((d0, d1) -> (d0, 3 - d1))
         wrap (%a: i32, %c: i32) {
           %k = loom.index 2 : i64
           %l = arith.trunci %k : i64 to i32
           %p = arith.muli %a, %c : i32
           %q = arith.addi %p, %l : i32
           loom.yield %q : i32
         }
         unwrap (%s: i32, %e: i32) { %r = arith.muli %s, %e : i32 loom.yield %r : i32 } : (!x, !w, !b) -> !y
  func.return %y : !y
}

// -----

// A dilation that the stride divides leaves one class: it is copied densely, fill and all.
!x = !loom.tensor<[0] : [9], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @dilated
func.func @dilated(%x: !x) -> !y {
  // CHECK: %[[X:.*]] = loom.operation @copy over <[0] : [6]> [map]
  // CHECK-NEXT: ins(%x : (d0) -> (2 * d0 - 1) clip 0.000000e+00 : f32)
  // CHECK: %y = loom.operation @pool over <[0, 0] : [4, 3]> [map, fold] by @max
  // CHECK-NEXT: ins(%[[X]] : (d0, d1) -> (d0 + d1))
  %y = loom.operation @pool over <[0, 0] : [4, 3]> [map, fold] by @max
         ins(%x : (d0, d1) -> (2 * d0 + 2 * d1 - 1) clip 0.0 : f32) outs((d0) -> (d0))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----

// Left alone: a monoid that is not said to commute, a partition, a scan, a stride of a fold.
!x = !loom.tensor<[0] : [9], f32>
!y = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[0, 0] : [4, 2], f32>
loom.monoid @in_order zero [0.0 : f32] merge (%a: f32, %b: f32) {
  %s = arith.addf %a, %b : f32
  loom.yield %s : f32
}
// CHECK-LABEL: @alone
func.func @alone(%x: !x) -> (!y, !y, !z, !y) {
  // CHECK-NOT: @copy
  %a = loom.operation @ordered over <[0, 0] : [4, 3]> [map, fold] by @in_order
         ins(%x : (d0, d1) -> (2 * d0 + d1)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!x) -> !y
  %b = loom.operation @sharded over <[0, 0] : [4, 3]> [map, fold] by @add
         ins(%x : (d0, d1) -> (2 * d0 + d1)) outs((d0) -> (d0)) shards <grid [[0, 2, 4], [0, 3]]>
         wrap (%p: f32) { loom.yield %p : f32 } : (!x) -> !y
  %c = loom.operation @scanned over <[0, 0] : [4, 2]> [map, scan] by @add
         ins(%x : (d0, d1) -> (2 * d0 + d1)) outs((d0, d1) -> (d0, d1))
         wrap (%p: f32) { loom.yield %p : f32 } : (!x) -> !z
  %d = loom.operation @blocks over <[0, 0] : [4, 2]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0 + 2 * d1)) outs((d0) -> (d0))
         wrap (%p: f32) { loom.yield %p : f32 } : (!x) -> !y
  func.return %a, %b, %c, %d : !y, !y, !z, !y
}

// -----

// Transposed: a window over cells with zeros between them is dense windows, their results
// interleaved. The clip stays where the part ends with the whole.
!x = !loom.tensor<[0] : [4], f32>
!z = !loom.tensor<[0] : [3], f32>
!s = !loom.tensor<[0] : [7], f32>
!w = !loom.tensor<[0] : [3], f32>
!y = !loom.tensor<[3] : [12], f32>
// CHECK-LABEL: @transposed
func.func @transposed(%x: !x, %z: !z, %w: !w) -> !y {
  // CHECK: %[[EE:.*]] = loom.operation @up_0_0 over <[0, 0] : [5, 2]> [map, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0 - d1) clip 0.000000e+00 : f32, %w : (d0, d1) -> (2 * d1))
  // CHECK: loom.operation @up_0_1 over <[0, 0] : [4, 2]>
  // CHECK-NEXT: ins(%z : (d0, d1) -> (d0 - d1) clip
  // CHECK: loom.operation @up_1_0 over <[0, 0] : [5, 1]>
  // CHECK-NEXT: ins(%z : (d0, d1) -> (d0 - 1) clip
  // CHECK: loom.operation @up_1_1 over <[0, 0] : [4, 1]>
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0) clip
  // CHECK: %[[E:.*]] = loom.operation @up_0 over <[0] : [5]>
  // CHECK: %[[O:.*]] = loom.operation @up_1 over <[0] : [4]>
  // CHECK: loom.assemble %[[E]] at (d0) -> (2 * d0 + 3), %[[O]] at (d0) -> (2 * d0 + 4)
  %s = loom.assemble %x at (d0) -> (2 * d0), %z at (d0) -> (2 * d0 + 1) : !x, !z -> !s
  %y = loom.operation @up over <[0, 0] : [9, 3]> [map, fold] by @add
         ins(%s : (d0, d1) -> (d0 - d1) clip 0.0 : f32, %w : (d0, d1) -> (d1)) outs((d0) -> (d0 + 3))
         wrap (%a: f32, %c: f32) { %p = arith.mulf %a, %c : f32 loom.yield %p : f32 } : (!s, !w) -> !y
  func.return %y : !y
}

// -----

// An output that moves with the dimension by a mixed row is not interleaved: left alone.
!h = !loom.tensor<[0] : [4], f32>
!s = !loom.tensor<[0] : [8], f32>
!y = !loom.tensor<[0] : [16], f32>
// CHECK-LABEL: @mixed
func.func @mixed(%a: !h, %b: !h) -> !y {
  // CHECK: loom.assemble
  // CHECK: loom.operation @y over <[0, 0] : [8, 2]>
  %s = loom.assemble %a at (d0) -> (2 * d0), %b at (d0) -> (2 * d0 + 1) : !h, !h -> !s
  %y = loom.operation @y over <[0, 0] : [8, 2]> [map, map] ins(%s : (d0, d1) -> (d0))
         outs((d0, d1) -> (2 * d0 + d1)) wrap (%p: f32) { loom.yield %p : f32 } : (!s) -> !y
  func.return %y : !y
}

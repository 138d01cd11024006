// RUN: tapestry-opt %s -p loom-unfuse --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p 'loom-unfuse{kinds=epilogue}' --equal-each --split-input-file | filecheck %s --check-prefix=EPILOGUE
// RUN: tapestry-opt %s -p loom-unfuse,loom-unfuse --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p loom-unfuse,loom-fuse --equal-each --split-input-file | filecheck %s --check-prefix=BACK

// A product with a norm before it and an activation after it: three operations, and back.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 5], f32>
!r = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0, 0] : [4, 5], f32>
// CHECK-LABEL: @product
// EPILOGUE-LABEL: @product
// BACK-LABEL: @product
func.func @product(%x: !x, %w: !w, %r: !r) -> !y {
  // CHECK-NEXT: %[[X:.*]] = loom.operation @y_wrap over <[0, 0] : [4, 6]> [map, map]
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1), %r : (d0, d1) -> (d0))
  // CHECK:      arith.mulf
  // CHECK:      %[[S:.*]] = loom.operation @y over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
  // CHECK-NEXT: ins(%w : (d0, d1, d2) -> (d2, d1), %[[X]] : (d0, d1, d2) -> (d0, d2))
  // CHECK-NEXT: outs((d0, d1) -> (d0, d1))
  // CHECK-NEXT: wrap (%[[A:.*]]: f32, %[[B:.*]]: f32) {
  // CHECK-NEXT:   arith.mulf %[[B]], %[[A]] : f32
  // CHECK-NOT:  unwrap (
  // CHECK:      %{{.*}} = loom.operation @y_unwrap over <[0, 0] : [4, 5]> [map, map]
  // CHECK-NEXT: ins(%[[S]] : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: outs((d0, d1) -> (d0, -d1 + 4))
  // EPILOGUE-NEXT: loom.operation @y over
  // EPILOGUE-NEXT: ins(%x
  // EPILOGUE:      loom.operation @y_unwrap over
  // BACK-NEXT: loom.operation @y_wrap_y_y_unwrap over <[0, 0, 0] : [4, 5, 6]>
  // BACK:      func.return
  %y = loom.operation @y over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %r : (d0, d1, d2) -> (d0), %w : (d0, d1, d2) -> (d2, d1))
         outs((d0, d1) -> (d0, 4 - d1))
         wrap (%c: f32, %s: f32, %d: f32) {
           %n = arith.mulf %c, %s : f32
           %p = arith.mulf %n, %d : f32
           loom.yield %p : f32
         }
         unwrap (%a: f32) {
           %i = loom.index 1 : i64
           %f = arith.sitofp %i : i64 to f32
           %e = arith.addf %a, %f : f32
           loom.yield %e : f32
         } : (!x, !r, !w) -> !y
  func.return %y : !y
}

// -----

// All that is computed of one tensor is a map before the fold. A partition goes with its dimensions.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @fold
func.func @fold(%x: !x) -> !y {
  // CHECK-NEXT: loom.operation @y_wrap over <[0, 0] : [4, 6]> [map, map]
  // CHECK:      shards <grid {{\[\[}}0, 2, 4], [0, 3, 6{{\]\]}}>
  // CHECK:      %{{.*}} = loom.index 1 : i64
  // CHECK:      loom.operation @y over <[0, 0] : [4, 6]> [map, fold] by @add
  // CHECK:      loom.operation @y_unwrap over <[0] : [4]> [map]
  // CHECK:      shards <grid {{\[\[}}0, 2, 4{{\]\]}}>
  %y = loom.operation @y over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) shards <grid [[0, 2, 4], [0, 3, 6]]>
         wrap (%c: f32) {
           %i = loom.index 1 : i64
           %f = arith.sitofp %i : i64 to f32
           %e = math.exp %c : f32
           %p = arith.mulf %e, %f : f32
           loom.yield %p : f32
         }
         unwrap (%a: f32) { %l = math.log1p %a : f32 loom.yield %l : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----

// Nothing to take apart: the product has more cells than either factor.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 5], f32>
!y = !loom.tensor<[0, 0] : [4, 5], f32>
// CHECK-LABEL: @plain
func.func @plain(%x: !x, %w: !w) -> !y {
  // CHECK-NEXT: loom.operation @y over
  // CHECK-NOT:  loom.operation
  %y = loom.operation @y over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %d: f32) { %p = arith.mulf %c, %d : f32 loom.yield %p : f32 } : (!x, !w) -> !y
  func.return %y : !y
}

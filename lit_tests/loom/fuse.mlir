// RUN: tapestry-opt %s -p loom-fuse --equal-each --split-input-file | filecheck %s

// A map that follows a fold becomes its unwrap; its other input, an extra input.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @epilogue
func.func @epilogue(%x: !x, %b: !y) -> !y {
  // CHECK-NEXT: %z = loom.operation @s_z over <[0, 0] : [4, 6]> [map, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: extra(%b : (d0) -> (-d0 + 3))
  // CHECK-NEXT: outs((d0) -> (-d0 + 3))
  // CHECK:      unwrap (%[[S:.*]]: f32, %[[B:.*]]: f32) {
  // CHECK-NEXT:   %[[D:.*]] = loom.index 0 : i64
  // CHECK-NEXT:   %[[MINUS:.*]] = arith.constant -1 : i64
  // CHECK-NEXT:   %[[N:.*]] = arith.muli %[[D]], %[[MINUS]] : i64
  // CHECK-NEXT:   %[[THREE:.*]] = arith.constant 3 : i64
  // CHECK-NEXT:   %[[I:.*]] = arith.addi %[[N]], %[[THREE]] : i64
  // CHECK-NEXT:   %[[F:.*]] = arith.sitofp %[[I]] : i64 to f32
  // CHECK-NEXT:   %[[T:.*]] = arith.mulf %[[S]], %[[F]] : f32
  // CHECK-NEXT:   %[[U:.*]] = arith.addf %[[T]], %[[B]] : f32
  // CHECK-NEXT:   loom.yield %[[U]] : f32
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %z = loom.operation @z over <[0] : [4]> [map] ins(%s : (d0) -> (3 - d0), %b : (d0) -> (d0))
         outs((d0) -> (d0))
         wrap (%c: f32, %e: f32) {
           %i = loom.index 0 : i64
           %f = arith.sitofp %i : i64 to f32
           %t = arith.mulf %c, %f : f32
           %u = arith.addf %t, %e : f32
           loom.yield %u : f32
         } : (!y, !y) -> !y
  func.return %z : !y
}

// -----

// A map that feeds a fold is computed in its wrap, through the inverse of what it writes.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!t = !loom.tensor<[0, 0] : [6, 4], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @prologue
func.func @prologue(%x: !x) -> !y {
  // CHECK-NEXT: loom.operation @e_s over <[0, 0] : [4, 6]> [map, fold] by @max
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK:      wrap (%[[C:.*]]: f32) {
  // CHECK-NEXT:   %[[E:.*]] = math.exp %[[C]] : f32
  // CHECK-NEXT:   loom.yield %[[E]] : f32
  // CHECK-NOT:  loom.operation
  %e = loom.operation @e over <[0, 0] : [4, 6]> [map, map] ins(%x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d1, d0)) wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!x) -> !t
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @max ins(%e : (d0, d1) -> (d1, d0))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!t) -> !y
  func.return %s : !y
}

// -----

// A map into an unwrap's extra input, and a chain of maps.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @chain
func.func @chain(%x: !x, %b: !y) -> !y {
  // CHECK-NEXT: loom.operation
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: extra(%b : (d0) -> (d0))
  // CHECK:      unwrap (%[[S:.*]]: f32, %[[B:.*]]: f32) {
  // CHECK-NEXT:   %[[E:.*]] = math.exp %[[B]] : f32
  // CHECK-NEXT:   %[[N:.*]] = arith.negf %[[E]] : f32
  // CHECK-NEXT:   arith.addf %[[S]], %[[N]] : f32
  // CHECK-NOT:  loom.operation
  %e = loom.operation @e over <[0] : [4]> [map] ins(%b : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!y) -> !y
  %n = loom.operation @n over <[0] : [4]> [map] ins(%e : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!y) -> !y
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) extra(%n : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%a: f32, %d: f32) { %r = arith.addf %a, %d : f32 loom.yield %r : f32 } : (!x, !y) -> !y
  func.return %s : !y
}

// -----

// Not joined: two readers; a reader that visits a cell more than once; a fold into a fold; shards
// that would be lost.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @apart
func.func @apart(%x: !x, %b: !y) -> (!x, !y, !y, !y) {
  // CHECK: loom.operation @s over
  // CHECK: loom.operation @w over
  // CHECK: loom.operation @t over
  // CHECK: loom.operation @e over
  // CHECK: loom.operation @n over
  %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %w = loom.operation @w over <[0, 0] : [4, 6]> [map, map] ins(%s : (d0, d1) -> (d0))
         outs((d0, d1) -> (d0, d1)) wrap (%c: f32) { loom.yield %c : f32 } : (!y) -> !x
  %t = loom.operation @t over <[0, 0] : [4, 6]> [map, fold] by @add ins(%w : (d0, d1) -> (d0, d1))
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %e = loom.operation @e over <[0] : [4]> [map] ins(%b : (d0) -> (d0)) outs((d0) -> (d0))
         shards <grid [[0, 1, 4]]>
         wrap (%c: f32) { %r = math.exp %c : f32 loom.yield %r : f32 } : (!y) -> !y
  %n = loom.operation @n over <[0] : [4]> [map] ins(%e : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = arith.negf %c : f32 loom.yield %r : f32 } : (!y) -> !y
  func.return %w, %t, %s, %n : !x, !y, !y, !y
}

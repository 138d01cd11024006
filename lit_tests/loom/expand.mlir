// RUN: tapestry-opt %s -p loom-expand --equal-each --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p 'loom-expand{shared=true}' --equal-each --split-input-file | filecheck %s --check-prefix=SHARED

// Each output folds what it needs, by the monoid of that; what only the other one reads is not read.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @folds
loom.monoid @both commutative zero [0.0 : f32, 0xff800000 : f32]
  merge (%a: f32, %b: f32, %c: f32, %d: f32) {
    %s = arith.addf %a, %c : f32
    %m = arith.maximumf %b, %d : f32
    loom.yield %s, %m : f32, f32
  }
func.func @folds(%x: !x, %w: !x, %b: !y) -> (!y, !y) {
  // CHECK-NEXT: %s = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @add
  // CHECK-NEXT: ins(%x : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: outs((d0) -> (d0))
  // CHECK:      %m = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @max
  // CHECK-NEXT: ins(%w : (d0, d1) -> (d0, d1))
  // CHECK-NEXT: extra(%b : (d0) -> (d0))
  // CHECK-NEXT: outs((d0) -> (-d0 + 3))
  %s, %m = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @both
         ins(%x : (d0, d1) -> (d0, d1), %w : (d0, d1) -> (d0, d1))
         extra(%b : (d0) -> (d0)) outs((d0) -> (d0), (d0) -> (3 - d0))
         wrap (%c: f32, %d: f32) { %e = math.exp %c : f32 loom.yield %e, %d : f32, f32 }
         unwrap (%c: f32, %d: f32, %e: f32) { %r = arith.addf %d, %e : f32 loom.yield %c, %r : f32, f32 }
         : (!x, !x, !y) -> (!y, !y)
  func.return %s, %m : !y, !y
}

// -----

// Both outputs are made of one sum: it would be folded twice.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @shared
// SHARED-LABEL: @shared
func.func @shared(%x: !x) -> (!y, !y) {
  // CHECK-NEXT: %s, %n = loom.operation
  // SHARED-NEXT: %s = loom.operation @s over
  // SHARED:      %n = loom.operation @s over
  %s, %n = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0), (d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         unwrap (%c: f32) { %n = arith.negf %c : f32 loom.yield %c, %n : f32, f32 } : (!x) -> (!y, !y)
  func.return %s, %n : !y, !y
}

// -----

!x = !loom.tensor<[0] : [6], f32>
// CHECK-LABEL: @maps
func.func @maps(%x: !x, %y: !x) -> (!x, !x) {
  // CHECK-NEXT: %e = loom.operation @e_n over <[0] : [6]> [map]
  // CHECK-NEXT: ins(%x : (d0) -> (d0))
  // CHECK:      %n = loom.operation @e_n over <[0] : [6]> [map]
  // CHECK-NEXT: ins(%x : (d0) -> (d0), %y : (d0) -> (d0))
  %e, %n = loom.operation @e_n over <[0] : [6]> [map] ins(%x : (d0) -> (d0), %y : (d0) -> (d0))
         outs((d0) -> (d0), (d0) -> (d0)) wrap (%c: f32, %d: f32) {
           %e = math.exp %c : f32
           %n = arith.mulf %e, %d : f32
           loom.yield %e, %n : f32, f32
         } : (!x, !x) -> (!x, !x)
  func.return %e, %n : !x, !x
}

// RUN: tapestry-opt %s -p loom-derive --split-input-file --equal-each | filecheck %s

// Rows scaled by their norms, in a matrix product: the norm is a factor of the finished sum, and the
// squares are summed beside it, of what the product reads.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 5], f32>
!o = !loom.tensor<[0, 0] : [4, 5], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @scaled_rows
// CHECK-NOT: @squares over
// CHECK: %p = loom.operation @squares_product over <{{\[}}0, 0, 0] : [4, 5, 6]> [map, map, fold]
// CHECK: ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
// CHECK: arith.mulf %x_1, %x_1 : f32
// CHECK: unwrap (%squares: f32, %product: f32)
// CHECK: math.rsqrt %squares : f32
// CHECK: arith.mulf %product,
func.func @scaled_rows(%x: !x, %w: !w) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%a: f32) {
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (c, j))
         outs((i, j) -> (i, j))
         wrap (%a: f32, %r: f32, %b: f32) {
           %s = arith.mulf %a, %r : f32
           %p = arith.mulf %s, %b : f32
           loom.yield %p : f32 } : (!x, !y, !w) -> !o
  func.return %p : !o
}

// -----

// What is rounded for the product is rounded without the norm, which is as exact: in bfloat16, any
// number stays one. There is a weight for each column.
!x = !loom.tensor<[0, 0] : [4, 6], bf16>
!w = !loom.tensor<[0, 0] : [6, 5], bf16>
!g = !loom.tensor<[0] : [6], bf16>
!o = !loom.tensor<[0, 0] : [4, 5], bf16>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @weighted_rows
// CHECK-NOT: @squares over
// CHECK: loom.operation @squares_product over
// CHECK: [[T:%[0-9a-z_]+]] = arith.mulf {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: unwrap (%squares: f32, %product: f32)
// CHECK: arith.mulf %product,
func.func @weighted_rows(%x: !x, %w: !w, %g: !g) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%e: bf16) {
           %a = arith.extf %e : bf16 to f32
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (c, j), %g : (i, j, c) -> (c))
         outs((i, j) -> (i, j))
         wrap (%e: bf16, %r: f32, %b: bf16, %v: bf16) {
           %a = arith.extf %e : bf16 to f32
           %s = arith.mulf %a, %r : f32
           %u = arith.extf %v : bf16 to f32
           %t = arith.mulf %s, %u : f32
           %h = arith.truncf %t : f32 to bf16
           %k = arith.extf %h : bf16 to f32
           %l = arith.extf %b : bf16 to f32
           %p = arith.mulf %k, %l : f32
           loom.yield %p : f32 }
         unwrap (%s: f32) {
           %z = arith.truncf %s : f32 to bf16
           loom.yield %z : bf16 } : (!x, !y, !w, !g) -> !o
  func.return %p : !o
}

// -----

// Without weights nothing is left to be rounded: the cells are multiplied as they are.
!x = !loom.tensor<[0, 0] : [4, 6], f16>
!w = !loom.tensor<[0, 0] : [6, 5], f16>
!o = !loom.tensor<[0, 0] : [4, 5], f16>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @bare_rows
// CHECK-NOT: @squares over
// CHECK: loom.operation @squares_product over
// CHECK-NOT: arith.truncf
// CHECK: unwrap (%squares: f32, %product: f32)
func.func @bare_rows(%x: !x, %w: !w) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%e: f16) {
           %a = arith.extf %e : f16 to f32
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (c, j))
         outs((i, j) -> (i, j))
         wrap (%e: f16, %r: f32, %b: f16) {
           %a = arith.extf %e : f16 to f32
           %s = arith.mulf %a, %r : f32
           %h = arith.truncf %s : f32 to f16
           %k = arith.extf %h : f16 to f32
           %l = arith.extf %b : f16 to f32
           %p = arith.mulf %k, %l : f32
           loom.yield %p : f32 }
         unwrap (%s: f32) {
           %z = arith.truncf %s : f32 to f16
           loom.yield %z : f16 } : (!x, !y, !w) -> !o
  func.return %p : !o
}

// -----

// A cell times its weight may be too large for float16, if the norm does not make it small.
!x = !loom.tensor<[0, 0] : [4, 6], f16>
!w = !loom.tensor<[0, 0] : [6, 5], f16>
!g = !loom.tensor<[0] : [6], f16>
!o = !loom.tensor<[0, 0] : [4, 5], f16>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @large_rows
// CHECK: @squares over
// CHECK: @product over
// CHECK: not_derived = "product would multiply in a longer type what earlier results scale; it has dimensions that earlier folds lack, which would be folded again along them"
func.func @large_rows(%x: !x, %w: !w, %g: !g) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%e: f16) {
           %a = arith.extf %e : f16 to f32
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (c, j), %g : (i, j, c) -> (c))
         outs((i, j) -> (i, j))
         wrap (%e: f16, %r: f32, %b: f16, %v: f16) {
           %a = arith.extf %e : f16 to f32
           %s = arith.mulf %a, %r : f32
           %u = arith.extf %v : f16 to f32
           %t = arith.mulf %s, %u : f32
           %h = arith.truncf %t : f32 to f16
           %k = arith.extf %h : f16 to f32
           %l = arith.extf %b : f16 to f32
           %p = arith.mulf %k, %l : f32
           loom.yield %p : f32 }
         unwrap (%s: f32) {
           %z = arith.truncf %s : f32 to f16
           loom.yield %z : f16 } : (!x, !y, !w, !g) -> !o
  func.return %p : !o
}

// -----

// The squares of other rows would be read for this alone.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 5], f32>
!o = !loom.tensor<[0, 0] : [4, 5], f32>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @other_rows
// CHECK: @squares over
// CHECK: @product over
func.func @other_rows(%x: !x, %w: !w, %z: !x) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%z : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%a: f32) {
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (c, j))
         outs((i, j) -> (i, j))
         wrap (%a: f32, %r: f32, %b: f32) {
           %s = arith.mulf %a, %r : f32
           %p = arith.mulf %s, %b : f32
           loom.yield %p : f32 } : (!x, !y, !w) -> !o
  func.return %p : !o
}

// -----

// No matrix product: each column of the result would sum the squares again, for one addition.
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!o = !loom.tensor<[0, 0] : [4, 5], f32>
!y = !loom.tensor<[0] : [4], f32>
!v = !loom.tensor<[0, 0, 0] : [4, 5, 6], f32>
// CHECK-LABEL: @no_product
// CHECK: @squares over
// CHECK: @product over
// CHECK: not_derived = "product is relative to no extremum, and no matrix product; it has dimensions that earlier folds lack, which would be folded again along them"
func.func @no_product(%x: !x, %w: !v) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%a: f32) {
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (i, j, c))
         outs((i, j) -> (i, j))
         wrap (%a: f32, %r: f32, %b: f32) {
           %s = arith.mulf %a, %r : f32
           %p = arith.mulf %s, %b : f32
           loom.yield %p : f32 } : (!x, !y, !v) -> !o
  func.return %p : !o
}

// -----

// Weights that multiply what is short already do so in that type: what tensor cores take stays short.
!x = !loom.tensor<[0, 0] : [4, 6], bf16>
!w = !loom.tensor<[0, 0] : [6, 5], bf16>
!g = !loom.tensor<[0] : [6], bf16>
!o = !loom.tensor<[0, 0] : [4, 5], bf16>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @weighted_when_short
// CHECK-NOT: @squares over
// CHECK: loom.operation @squares_product over
// CHECK: arith.mulf {{.*}} : bf16
// CHECK: unwrap (%squares: f32, %product: f32)
// CHECK: arith.mulf %product,
func.func @weighted_when_short(%x: !x, %w: !w, %g: !g) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%e: bf16) {
           %a = arith.extf %e : bf16 to f32
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (c, j), %g : (i, j, c) -> (c))
         outs((i, j) -> (i, j))
         wrap (%e: bf16, %r: f32, %b: bf16, %v: bf16) {
           %a = arith.extf %e : bf16 to f32
           %s = arith.mulf %a, %r : f32
           %h = arith.truncf %s : f32 to bf16
           %t = arith.mulf %h, %v : bf16
           %k = arith.extf %t : bf16 to f32
           %l = arith.extf %b : bf16 to f32
           %p = arith.mulf %k, %l : f32
           loom.yield %p : f32 }
         unwrap (%s: f32) {
           %z = arith.truncf %s : f32 to bf16
           loom.yield %z : bf16 } : (!x, !y, !w, !g) -> !o
  func.return %p : !o
}

// -----

// In float16 a cell times its weight may be too large, where the norm made it small.
!x = !loom.tensor<[0, 0] : [4, 6], f16>
!w = !loom.tensor<[0, 0] : [6, 5], f16>
!g = !loom.tensor<[0] : [6], f16>
!o = !loom.tensor<[0, 0] : [4, 5], f16>
!y = !loom.tensor<[0] : [4], f32>
// CHECK-LABEL: @weighted_in_float16
// CHECK: loom.operation @squares over
// CHECK: loom.operation @product over
func.func @weighted_in_float16(%x: !x, %w: !w, %g: !g) -> !o {
  %n = loom.operation @squares over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, c) -> (i, c)) outs((i) -> (i))
         wrap (%e: f16) {
           %a = arith.extf %e : f16 to f32
           %q = arith.mulf %a, %a : f32
           loom.yield %q : f32 }
         unwrap (%s: f32) {
           %r = math.rsqrt %s : f32
           loom.yield %r : f32 } : (!x) -> !y
  %p = loom.operation @product over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
         ins(%x : (i, j, c) -> (i, c), %n : (i, j, c) -> (i), %w : (i, j, c) -> (c, j), %g : (i, j, c) -> (c))
         outs((i, j) -> (i, j))
         wrap (%e: f16, %r: f32, %b: f16, %v: f16) {
           %a = arith.extf %e : f16 to f32
           %s = arith.mulf %a, %r : f32
           %h = arith.truncf %s : f32 to f16
           %t = arith.mulf %h, %v : f16
           %k = arith.extf %t : f16 to f32
           %l = arith.extf %b : f16 to f32
           %p = arith.mulf %k, %l : f32
           loom.yield %p : f32 }
         unwrap (%s: f32) {
           %z = arith.truncf %s : f32 to f16
           loom.yield %z : f16 } : (!x, !y, !w, !g) -> !o
  func.return %p : !o
}

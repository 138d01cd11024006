// RUN: tapestry-opt %s | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p loom-simplify --equal-each | filecheck %s --check-prefix SIMPLE
// RUN: tapestry-opt %s -p loom-fuse --equal-each | filecheck %s --check-prefix FUSED
// RUN: tapestry-opt %s -p "loom-shard{grid=2,2 op=causal},loom-expand-shards" --equal-each | filecheck %s --check-prefix SHARDS
// RUN: tapestry-opt %s -p "loom-shard{grid=2,4 op=tail},loom-simplify" --equal-each | filecheck %s --check-prefix CUT

!x = !loom.tensor<[0, 0] : [4, 16], f32>
!y = !loom.tensor<[0] : [4], f32>

// CHECK-LABEL: @main
// SIMPLE-LABEL: @main
// FUSED-LABEL: @main
// CUT-LABEL: @main
func.func @main(%x: !x) -> (!y, !y, !y, !y) {
  // Rows stay as they are; both sides of an inequality go to the left.
  // CHECK{LITERAL}: loom.operation @causal over <[0, 0] : [4, 16]> [map, fold] by @add
  // CHECK: outs((d0) -> (d0))
  // CHECK-NEXT: domain(d0 - d1 >= 0)
  // CHECK-NEXT: wrap
  // A fold ends with the last point inside.
  // SIMPLE{LITERAL}: @causal over <[0, 0] : [4, 4]> [map, fold] by @add
  // SIMPLE: domain(d0 - d1 >= 0)
  // An elementwise epilogue keeps the rows.
  // FUSED{LITERAL}: @causal_twice over <[0, 0] : [4, 16]> [map, fold] by @add
  // FUSED: domain(d0 - d1 >= 0)
  // FUSED: unwrap
  // Shards have the rows of the kernel.
  // SHARDS: loom.kernel @causal [map, fold] by @add
  // SHARDS: domain(d0 - d1 >= 0)
  // SHARDS{LITERAL}: loom.application @causal over <[0, 8] : [2, 16]> partial
  // SHARDS: loom.merge @causal
  %a = loom.operation @causal over <[0, 0] : [4, 16]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain(d0 >= d1)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %b = loom.operation @twice over <[0] : [4]> [map]
         ins(%a : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { %r = arith.addf %c, %c : f32  loom.yield %r : f32 } : (!y) -> !y

  // Rows that hold all over the index space are dropped.
  // SIMPLE: @tail over <[0, 0] : [4, 13]> [map, fold] by @add
  // SIMPLE-NEXT: ins
  // SIMPLE-NEXT: outs
  // SIMPLE-NEXT: wrap
  // CUT: @tail over <[0, 0] : [4, 13]> [map, fold] by @add
  // CUT{LITERAL}: shards <grid [[0, 2, 4], [0, 4, 8, 12, 13]]>
  // CUT-NEXT: wrap
  %t = loom.operation @tail over <[0, 0] : [4, 16]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain(12 - d1 >= 0, d0 + d1 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y

  // A domain without points folds nothing.
  // SIMPLE: @never over <[0, 0] : [4, 0]> [map, fold] by @max
  // SIMPLE-NEXT: ins
  // SIMPLE-NEXT: outs
  // SIMPLE-NEXT: wrap
  %n = loom.operation @never over <[0, 0] : [4, 16]> [map, fold] by @max
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain(d0 + d1 >= 3, 2 >= d0 + d1)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y

  // A map may have rows that hold everywhere, which say nothing.
  // SIMPLE: @map over <[0] : [4]> [map]
  // SIMPLE-NEXT: ins
  // SIMPLE-NEXT: outs
  // SIMPLE-NEXT: wrap
  %m = loom.operation @map over <[0] : [4]> [map]
         ins(%n : (d0) -> (d0)) outs((d0) -> (d0)) domain(d0 >= 0)
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!y) -> !y
  func.return %b, %t, %n, %m : !y, !y, !y, !y
}

// A prologue keeps the rows of its reader, and a reshape that splits a dimension takes them along.
// SIMPLE-LABEL: @reshaped
// SIMPLE{LITERAL}: @sum over <[0, 0, 0] : [4, 2, 4]> [map, fold, fold] by @add
// SIMPLE: domain(d0 - 4 * d1 - d2 + 3 >= 0)
// FUSED-LABEL: @reshaped
// FUSED{LITERAL}: @exp_sum over <[0, 0] : [4, 16]> [map, fold] by @add
// FUSED: domain(d0 - d1 + 3 >= 0)
// FUSED: math.exp
func.func @reshaped(%x: !loom.tensor<[0, 0, 0] : [4, 4, 4], f32>) -> (!y, !y) {
  %r = loom.reshape %x : !loom.tensor<[0, 0, 0] : [4, 4, 4], f32> -> !x
  %a = loom.operation @sum over <[0, 0] : [4, 16]> [map, fold] by @add
         ins(%r : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain(d0 - d1 + 3 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %e = loom.operation @exp over <[0, 0] : [4, 16]> [map, map]
         ins(%r : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %q = math.exp %c : f32  loom.yield %q : f32 } : (!x) -> !x
  %b = loom.operation @sum over <[0, 0] : [4, 16]> [map, fold] by @add
         ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) domain(d0 - d1 + 3 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %a, %b : !y, !y
}

// RUN: tapestry-opt %s --split-input-file -p 'loom-shard{grid=2,3,1},loom-expand-shards' --equal-each | filecheck %s
// RUN: tapestry-opt %s --split-input-file -p 'loom-shard{shards=8}' | filecheck %s --check-prefix AUTO
// RUN: not tapestry-opt %s --split-input-file -p 'loom-shard{grid=1,1,2}' 2>&1 | filecheck %s --check-prefix CUT
// RUN: tapestry-opt %s --split-input-file -p 'loom-shard{partition="ranges [[0, 0, 0] : [4, 3, 8], [0, 3, 0] : [4, 6, 3], [0, 3, 3] : [4, 6, 8]]"},loom-expand-shards' --equal-each | filecheck %s --check-prefix MERGED
// RUN: tapestry-opt %s --split-input-file | tapestry-opt --split-input-file --print-op-generic | tapestry-opt --split-input-file -p 'loom-shard{grid=2,3,1},loom-expand-shards' | filecheck %s

!s = !loom.tensor<[0, 0] : [4, 6], f32>
!v = !loom.tensor<[0, 0] : [6, 8], f32>
!o = !loom.tensor<[0, 0] : [4, 8], f32>
!e = !loom.tensor<[0] : [4], f32>
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}

// The second output is the same for every d, so it may leave d out.
// CHECK: loom.merge @both over <[0, 0] : [2, 8]> states(
// CHECK-SAME: -> (!loom.tensor<[0, 0] : [2, 8], f32>, !loom.tensor<[0] : [2], f32>)
// CHECK: loom.assemble {{.*}} -> !loom.tensor<[0] : [4], f32>

// AUTO: shards <grid {{\[\[0, 1, 2, 3, 4\], \[0, 3, 6\], \[0, 8\]\]}}>

// Shards that cut d would each write all of the second output.
// CUT: @both cannot be split so: the shards cut d1 of the kept dimensions, which output 1 leaves out; leave it whole

// Where their states merge before anything is written, they may.
// MERGED: loom.merge @both over <[0, 0] : [4, 8]> states(
// MERGED-SAME: -> (!loom.tensor<[0, 0] : [4, 8], f32>, !loom.tensor<[0] : [4], f32>)
func.func @main(%s: !s, %v: !v) -> (!o, !e) {
  %o, %e = loom.operation @both over <[0, 0, 0] : [4, 6, 8]> [map, fold, map] by @pair
         ins(%s : (i, j, d) -> (i, j), %v : (i, j, d) -> (j, d)) outs((i, d) -> (i, d), (i, d) -> (i))
         wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
         unwrap (%p: f32, %q: f32) {
           %r = arith.addf %p, %q : f32
           loom.yield %r, %p : f32, f32
         } : (!s, !v) -> (!o, !e)
  func.return %o, %e : !o, !e
}

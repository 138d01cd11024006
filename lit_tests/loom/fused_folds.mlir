// What a member folds for the group's outputs alone may be cut: its states merge.

// RUN: tapestry-opt %s --split-input-file -p 'loom-shard{op=total grid=1,2}' --equal-each 2>/dev/null | filecheck %s
// RUN: tapestry-opt %s --split-input-file -p 'loom-shard{op=total grid=1,2},loom-expand-shards' --equal-each 2>/dev/null | filecheck %s --check-prefix EXPAND
// RUN: not tapestry-opt %s --split-input-file -p 'loom-shard{op=total partition="ranges [[0, 0] : [4, 3], [0, 3] : [4, 8]]"}' 2>&1 | filecheck %s --check-prefix RANGES

// CHECK{LITERAL}: shards <grid [[0, 4], [0, 4, 8]]>
// EXPAND:     loom.application @exp over <[0, 0] : [4, 4]>
// EXPAND:     loom.application @exp over <[0, 4] : [4, 8]>
// EXPAND:     loom.application @sum over <[0, 0] : [4, 4]> partial
// EXPAND:     loom.application @sum over <[0, 4] : [4, 8]> partial
// EXPAND:     loom.merge @sum over <[0] : [4]>
// EXPAND-NOT: loom.fused
// RANGES:     error: @total cannot be split so: {{.*}}dimension 1 cannot be cut: states of members merge over a grid alone

!x = !loom.tensor<[0, 0] : [4, 8], f32>
!y = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.fused @total over <[0, 0] : [4, 8]>
    aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)) ins(%x) group (%a: !x) {
      %e = loom.operation @exp over <[0, 0] : [4, 8]> [map, map]
             ins(%a : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
             wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
      %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add
             ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
             wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
      loom.yield %s : !y
    } : (!x) -> !y
  func.return %y : !y
}

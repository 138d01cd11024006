// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

!x = !loom.tensor<[0] : [4], f32>
// CHECK{LITERAL}: @map: the domain (d0 - 1 >= 0) leaves cells of the outputs unwritten: it folds nothing, so every point of <[0] : [4]> must be inside
func.func @main(%x: !x) -> !x {
  %y = loom.operation @map over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0)) domain(d0 >= 0, d0 >= 1)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
// CHECK: d1 is not an index dimension here: they are (d0)
func.func @main(%x: !x) -> !x {
  %y = loom.operation @map over <[0] : [4]> [map]
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0)) domain(d1 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[] : [], f32>
// CHECK: @sum: the domain has 2 dimensions, but the index space has 1
func.func @main(%x: !x) -> !y {
  %y = "loom.operation"(%x) <{
    label = "sum", index_range = #zspace.range<[0] : [4]>, iterators = #loom.iterators<[fold]>,
    monoid = @add, in_projections = [#zspace.projection<(d0) -> (d0)>], extra_projections = [],
    out_projections = [#zspace.projection<() -> ()>],
    domain = #zspace.domain<(d0, d1) : d0 - d1 >= 0>,
    operandSegmentSizes = array<i32: 1, 0>
  }> ({
    ^bb0(%c: f32):
      loom.yield %c : f32
  }, {
  }) : (!x) -> !y
  func.return %y : !y
}

// -----

!x = !loom.tensor<[0] : [4], f32>
// CHECK: @map: the domain (d0 - 1 >= 0) leaves cells of the outputs unwritten
loom.kernel @map [map] ins((d0) -> (d0)) outs((d0) -> (d0)) domain(d0 - 1 >= 0)
  wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !x) -> !x {
  %y = loom.application @map over <[0] : [4]> (%x <[0] : [4]>) : (!x) -> !x
  func.return %y : !x
}

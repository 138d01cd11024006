// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Without a fill, leaving the tensor is an error.
// CHECK: @y: input 0 reads <[-1] : [3]>, outside its tensor <[0] : [4]>
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0 - 1)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK: @y: input 0 is clipped to 0 : i32, but its cells are f32; write `clip` and a number of type f32
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0) clip 0 : i32)
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK: @f: input 0 is clipped to 1 : i32, but its cells are f32
loom.kernel @f [map] ins((d0) -> (d0 - 1) clip 1 : i32) outs((d0) -> (d0))
  wrap (%c: f32) { loom.yield %c : f32 }

// -----

// CHECK: @f: there are 1 inputs, but 2 clips
"builtin.module"() ({
  "loom.kernel"() <{sym_name = "f", iterators = #loom.iterators<[map]>,
                    in_projections = [#zspace.projection<(d0) -> (d0)>], in_clips = [unit, unit],
                    extra_projections = [], out_projections = [#zspace.projection<(d0) -> (d0)>]}> ({
  ^bb0(%c: f32):
    "loom.yield"(%c) : (f32) -> ()
  }, {}) : () -> ()
}) : () -> ()

// -----

// CHECK: operand 0 records <[-1] : [3]>, but its projection selects <[0] : [3]>
!x = !loom.tensor<[0] : [4], f32>
loom.kernel @f [map] ins((d0) -> (d0 - 1) clip 1.0 : f32) outs((d0) -> (d0))
  wrap (%c: f32) { loom.yield %c : f32 }
func.func @main(%x: !x) -> !x {
  %y = loom.application @f over <[0] : [4]> (%x <[-1] : [3]>) : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK: a clip is to a number, such as 0.0 : f32
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0) clip "zero")
         outs((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

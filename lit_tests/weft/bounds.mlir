// RUN: tapestry-opt %s -p weft-apply --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// An input may be read outside its tensor, which may start anywhere; there it is the fill.

// CHECK:      %y = loom.operation @y over <[0, 0] : [6, 3]> [map, fold] by @max
// CHECK-NEXT:   ins(%x : (d0, d1) -> (d0 + d1 + 4) clip 0xff800000 : f32)
weft.metakernel @window {
  params = [{size = {type = "int", default = 3 : i64}}],
  inputs = [{x = {shape = "[$n]", dtype = "$t", bounds = {clip = "lowest($t)"},
                  ipf = "[@n + @k - ($size - 1) // 2]"}}],
  index = "[$n]",
  fold = [{k = {extent = "$size", monoid = "max"}}],
  wrap = "x"
}
func.func @main(%x: !loom.tensor<[5] : [11], f32>) -> !loom.tensor<[0] : [6], f32> {
  %y = weft.apply @window(%x) : (!loom.tensor<[5] : [11], f32>) -> !loom.tensor<[0] : [6], f32>
  func.return %y : !loom.tensor<[0] : [6], f32>
}

// -----

// Data movement that reads outside is no view: it stores what is outside.

// CHECK:      %y = loom.operation @y over <[0] : [4]> [map]
// CHECK-NEXT:   ins(%x : (d0) -> (d0 - 1) clip 7 : i32)
// CHECK:        loom.yield %{{.*}} : i32
weft.metakernel @shift {
  inputs = [{x = {shape = "[$n]", bounds = {clip = 7 : i64}, ipf = "[@n - 1]"}}],
  index = "[$n]"
}
func.func @main(%x: !loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32> {
  %y = weft.apply @shift(%x) : (!loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32>
  func.return %y : !loom.tensor<[0] : [4], i32>
}

// -----

// CHECK: @shift does not apply to ([4] f32): inputs.x.ipf `[@n - 1]`: x is read at [-1] : [3], and it has only [0] : [4]
// CHECK-NEXT: hint: bounds: {clip: 0} reads 0 outside
weft.metakernel @shift {inputs = [{x = {shape = "[$n]", ipf = "[@n - 1]"}}], index = "[$n]"}
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = weft.apply @shift(%x) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

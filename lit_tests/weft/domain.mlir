// RUN: tapestry-opt %s -p weft-apply --split-input-file | filecheck %s

// Rows become affine forms that must not be negative; what always holds is left out.

// CHECK:      %y = loom.operation @y over <[0, 0] : [5, 5]> [map, fold] by @add
// CHECK:      domain(d0 - d1 >= 0, -d0 + d1 + 1 >= 0)
weft.metakernel @band {
  params = [{window = {type = "int"}}],
  inputs = [{x = {shape = "[$n, $n]", ipf = "[@i, @j]"}}],
  index = "[i = $n]",
  fold = [{j = {extent = "$n", monoid = "add"}}],
  domain = ["@i >= @j", "@i - @j < $window", "@j >= 0", "$window > 0"],
  wrap = "x"
}
func.func @main(%x: !loom.tensor<[1, 2] : [6, 7], f32>) -> !loom.tensor<[3] : [8], f32> {
  %y = weft.apply @band(%x) {window = 2 : i64}
         : (!loom.tensor<[1, 2] : [6, 7], f32>) -> !loom.tensor<[3] : [8], f32>
  func.return %y : !loom.tensor<[3] : [8], f32>
}

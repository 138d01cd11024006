// RUN: tapestry-opt %s -p weft-apply --split-input-file | filecheck %s

// What is scanned follows the mapped dimensions; outputs are over both.

// CHECK:      %y = loom.operation @y over <[0, 0] : [3, 4]> [map, scan] by @add
// CHECK-NEXT:   ins(%x : (d0, d1) -> (d1 + 2, d0 - 1))
// CHECK-NEXT:   outs((d0, d1) -> (d1, d0))
// CHECK-NOT:    unwrap
weft.metakernel @running_sum {
  params = [{axis = {type = "int", axis_of = "x"}}],
  inputs = [{x = {shape = "[$pre...{$axis}, $n, $post...]", ipf = "[@pre..., @n, @post...]"}}],
  index = "[$pre..., $post...]",
  scan = [{n = {extent = "$n", monoid = "add"}}],
  wrap = "x",
  outputs = [{result = {shape = "[$pre..., $n, $post...]", ipf = "[@pre..., @n, @post...]"}}]
}
func.func @main(%x: !loom.tensor<[2, -1] : [6, 2], i32>) -> !loom.tensor<[0, 0] : [4, 3], i32> {
  %y = weft.apply @running_sum(%x) {axis = 0 : i64}
         : (!loom.tensor<[2, -1] : [6, 2], i32>) -> !loom.tensor<[0, 0] : [4, 3], i32>
  func.return %y : !loom.tensor<[0, 0] : [4, 3], i32>
}

// -----

// unwrap reads a state of its way, and inputs that move along the scan: a running mean.

// CHECK:      %y = loom.operation @y over <[0] : [5]> [scan] by @add
// CHECK-NEXT:   ins(%x : (d0) -> (-d0 + 4))
// CHECK-NEXT:   extra(%b : (d0) -> (d0))
// CHECK-NEXT:   outs((d0) -> (d0))
// CHECK:        unwrap
// CHECK:          loom.index 0
weft.metakernel @running_mean {
  inputs = [{x = {shape = "[$n]", ipf = "[$n - 1 - @n]"}}, {b = {shape = "[$n]"}}],
  index = "[]",
  scan = [{n = {extent = "$n", monoid = "add"}}],
  wrap = "x",
  unwrap = "fold / cast(@n + 1, f32) + b"
}
func.func @main(%x: !loom.tensor<[0] : [5], f32>, %b: !loom.tensor<[0] : [5], f32>) -> !loom.tensor<[0] : [5], f32> {
  %y = weft.apply @running_mean(%x, %b)
         : (!loom.tensor<[0] : [5], f32>, !loom.tensor<[0] : [5], f32>) -> !loom.tensor<[0] : [5], f32>
  func.return %y : !loom.tensor<[0] : [5], f32>
}

// RUN: tapestry-opt %s -p weft-apply --split-input-file --parsing-diagnostics --verify-diagnostics | filecheck %s

// The members of a concatenation are views at their places; a part that stands there already is
// itself, and one of another dtype is converted. Tensors start anywhere.

// CHECK:      %y = loom.view %b : (d0, d1) -> (d0 + 5, d1 - 2)
// CHECK-SAME:   -> !loom.tensor<[0, 3] : [2, 4], f32>
// CHECK-NEXT: %y_1 = loom.operation @y_2 over <[0, 0] : [2, 5]> [map, map]
// CHECK-NEXT:   ins(%c : (d0, d1) -> (d0, d1))
// CHECK-NEXT:   outs((d0, d1) -> (d0, d1 + 4))
// CHECK:        arith.extf
// CHECK:      %y_2 = loom.assemble %a, %y, %y_1 :
func.func @main(%a: !loom.tensor<[0, 0] : [2, 3], f32>, %b: !loom.tensor<[5, 1] : [7, 2], f32>,
                %c: !loom.tensor<[0, 0] : [2, 5], f16>) -> !loom.tensor<[0, 0] : [2, 9], f32> {
  %y = weft.apply @concat([%a, %b, %c]) {axis = 1}
         : (!loom.tensor<[0, 0] : [2, 3], f32>, !loom.tensor<[5, 1] : [7, 2], f32>,
            !loom.tensor<[0, 0] : [2, 5], f16>) -> !loom.tensor<[0, 0] : [2, 9], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 9], f32>
}

// -----

// A list of results is written by one member each: no assembly.

// CHECK:      %p = loom.view %x : (d0) -> (d0)
// CHECK-NEXT: %q = loom.view %x : (d0) -> (d0 + 4)
// CHECK-NEXT: %r = loom.view %x : (d0) -> (d0 + 8)
// CHECK-NEXT: func.return
func.func @main(%x: !loom.tensor<[0] : [10], f32>) -> (!loom.tensor<[0] : [4], f32>,
                !loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [2], f32>) {
  %p, %q, %r = weft.apply @split(%x) {chunk = 4}
                 : (!loom.tensor<[0] : [10], f32>)
                   -> (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>,
                       !loom.tensor<[0] : [2], f32>)
  func.return %p, %q, %r : !loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>,
                           !loom.tensor<[0] : [2], f32>
}

// -----

// Members interleave by placements; what a member does not read is no operand of it.

// CHECK:      %y = loom.operation @y_1 over <[0] : [4]> [map]
// CHECK-NEXT:   outs((d0) -> (d0))
// CHECK:      %y_1 = loom.assemble %x at (d0) -> (2 * d0 - 3), %y at (d0) -> (2 * d0 - 2) :
weft.metakernel @spread {
  for = "$k in 2",
  inputs = [{x = {shape = "[$n]", when = "$k == 0"}}],
  index = "[$n]",
  wrap = "where($k == 0, x, 0)",
  outputs = [{result = {shape = "[2 * $n]", ipf = "[2] + [$k]"}}]
}
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[-3] : [5], f32> {
  %y = weft.apply @spread(%x) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[-3] : [5], f32>
  func.return %y : !loom.tensor<[-3] : [5], f32>
}

// -----

// An optional operand that is left out, in the middle and at the end.

// CHECK:      %y = loom.operation @y over <[0] : [4]> [map]
// CHECK-NEXT:   ins(%x : (d0) -> (d0), %x : (d0) -> (d0))
// CHECK:      %z = loom.view %x
weft.metakernel @scaled {
  inputs = [
    {x = {shape = "[$n]"}}, {s = {shape = "[$n]", optional = true}},
    {b = {shape = "[$n]", optional = true}}
  ],
  index = "[$n]",
  wrap = "where(#s, x * s, where(#b, x + b, x))"
}
func.func @main(%x: !loom.tensor<[0] : [4], f32>)
                -> (!loom.tensor<[0] : [4], f32>, !loom.tensor<[1] : [5], f32>) {
  %y = weft.apply @scaled(%x, [], %x)
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  %z = weft.apply @scaled(%x) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[1] : [5], f32>
  func.return %y, %z : !loom.tensor<[0] : [4], f32>, !loom.tensor<[1] : [5], f32>
}

// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: template bad: unknown key `warp` (did you mean wrap or unwrap?)
weft.metakernel @bad {inputs = [{x = {shape = "[$d...]"}}], index = "[$d...]", warp = "x"}

// -----

// CHECK: template bad: cannot read the pattern `[$d..., ]`: unexpected `]` at column 9
weft.metakernel @bad {inputs = [{x = {shape = "[$d..., ]"}}], index = "[$d...]", wrap = "x"}

// -----

// CHECK: template bad: cannot read the family `$k of 3`: unexpected `of` at column 4
weft.metakernel @bad {inputs = [], index = "[]", for = "$k of 3", wrap = "x"}

// -----

// CHECK: template bad: $n[$j] in the shape of x, whose `each` is $i (write $n[$i])
weft.metakernel @bad {inputs = [{x = {each = "$i", shape = "[$n[$j]]"}}], index = "[]", wrap = "1"}

// -----

// CHECK: groups [2, -1] are of 3 operands, and there are 2
func.func @main(%x: !loom.tensor<[0] : [4], f32>) {
  %a = "weft.apply"(%x, %x) <{metakernel = @concat, parameters = {}, groups = array<i32: 2, -1>}>
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [8], f32>
  func.return
}

// -----

// CHECK: operand 0 (%b) is used before it is defined
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %a = weft.apply @relu(%b) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  %b = weft.apply @exp(%x) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %a : !loom.tensor<[0] : [4], f32>
}

// -----

// CHECK: a metakernel is applied to tensors, and gives tensors
func.func @main(%x: f32) -> f32 {
  %a = weft.apply @relu(%x) : (f32) -> f32
  func.return %a : f32
}

// -----

// CHECK: before the types
func.func @main(%x: !loom.tensor<[0] : [4], f32>) {
  %a = weft.apply @relu(%x) {axis = 1}
  func.return
}

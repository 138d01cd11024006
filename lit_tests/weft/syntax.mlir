// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

// CHECK:      weft.metakernel @scale {params = [{by = {type = "float", default = 2.000000e+00 : f64}}],
// CHECK-SAME: inputs = [{x = {shape = "[$d...]"}}], index = "[$d...]", wrap = "x * $by"}
// GENERIC:    "weft.metakernel"() <{sym_name = "scale", template = {params = [
weft.metakernel @scale {
  params = [{by = {type = "float", default = 2.0 : f64}}],
  inputs = [{x = {shape = "[$d...]"}}],
  index = "[$d...]",
  wrap = "x * $by"
}

// CHECK-NEXT: weft.metakernel @noted {inputs = [], index = "[3]", wrap = "cast(0, f32)", outputs = [{r = {dtype = "f32"}}]} attributes {note = "kept"}
weft.metakernel @noted {
  inputs = [], index = "[3]", wrap = "cast(0, f32)", outputs = [{r = {dtype = "f32"}}]
} attributes {note = "kept"}

func.func @main(%x: !loom.tensor<[0, -1] : [2, 2], f32>) -> !loom.tensor<[0] : [2], f32> {
  // CHECK:      %a = weft.apply @scale(%x) : (!loom.tensor<[0, -1] : [2, 2], f32>) -> !loom.tensor<[0, 0] : [2, 3], f32>
  // GENERIC:    %a = "weft.apply"(%x) <{metakernel = @scale, parameters = {}}> :
  %a = weft.apply @scale(%x)
         : (!loom.tensor<[0, -1] : [2, 2], f32>) -> !loom.tensor<[0, 0] : [2, 3], f32>
  // CHECK-NEXT: %s = weft.apply @sum(%a) {axis = -1 : i64, keepdim = false} attributes {note = 1 : i64} :
  // GENERIC:    "weft.apply"(%a) <{metakernel = @sum, parameters = {axis = -1 : i64, keepdim = false}}> {note = 1 : i64} :
  %s = weft.apply @sum(%a) {axis = -1, keepdim = false} attributes {note = 1}
         : (!loom.tensor<[0, 0] : [2, 3], f32>) -> !loom.tensor<[0] : [2], f32>
  // CHECK-NEXT: weft.apply @noted() : () -> !loom.tensor<[0] : [3], f32>
  %n = weft.apply @noted() : () -> !loom.tensor<[0] : [3], f32>
  // CHECK-NEXT: %t, %u = weft.apply @two(%n) {dtype = f16} : (!loom.tensor<[0] : [3], f32>) -> (!loom.tensor<[0] : [3], f16>, !loom.tensor<[0] : [3], i64>)
  %t, %u = weft.apply @two(%n) {dtype = f16} : (!loom.tensor<[0] : [3], f32>)
             -> (!loom.tensor<[0] : [3], f16>, !loom.tensor<[0] : [3], i64>)
  func.return %s : !loom.tensor<[0] : [2], f32>
}

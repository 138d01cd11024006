// RUN: tapestry-opt %s -p weft-apply --split-input-file | filecheck %s

// A template without wrap that reads boxes is a kernel, called by the template's name.

// CHECK:      %{{.*}} = loom.external @product over <[0, 0] : [4, 6]>
// CHECK-NEXT:   ins(%x : (d0, d1) -> (d0, 0) :> [1, 5], %w : (d0, d1) -> (2, d1) :> [5, 1])
// CHECK-NEXT:   outs((d0, d1) -> (d0, d1))
// CHECK-NEXT:   parameters {exact = true}
weft.metakernel @product {
  params = [{exact = {type = "bool", default = true}}],
  inputs = [{X = {shape = "[$batch..., $row, $inner]", ipf = "[..., 1, 0] :> [..., 1, $inner]"}},
            {W = {shape = "[$batch..., $inner, $col]", ipf = "[..., 0, 1] :> [..., $inner, 1]"}}],
  index = "[$batch..., $row, $col]"
}
func.func @main(%x: !loom.tensor<[0, 0] : [4, 5], f32>, %w: !loom.tensor<[2, 0] : [7, 6], f32>) -> !loom.tensor<[0, 0] : [4, 6], f32> {
  %y = weft.apply @product(%x, %w)
         : (!loom.tensor<[0, 0] : [4, 5], f32>, !loom.tensor<[2, 0] : [7, 6], f32>) -> !loom.tensor<[0, 0] : [4, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [4, 6], f32>
}

// -----

// `external` names a kernel, which may write boxes.

// CHECK:      loom.external @sort over <[0] : [4]>
// CHECK-NEXT:   ins(%x : (d0) -> (d0, 1) :> [1, 5])
// CHECK-NEXT:   outs((d0) -> (d0, 0) :> [1, 5])
// CHECK-NEXT:   parameters {descending = true}
func.func @main(%x: !loom.tensor<[0, 1] : [4, 6], f32>) -> !loom.tensor<[0, 0] : [4, 5], f32> {
  %y = weft.apply @sort_rows(%x) {descending = true}
         : (!loom.tensor<[0, 1] : [4, 6], f32>) -> !loom.tensor<[0, 0] : [4, 5], f32>
  func.return %y : !loom.tensor<[0, 0] : [4, 5], f32>
}

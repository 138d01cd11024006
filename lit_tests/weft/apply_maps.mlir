// RUN: tapestry-opt %s -p weft-apply --split-input-file | filecheck %s

// Operands broadcast like NumPy's, and promote to a common dtype.

// CHECK:      %y = loom.operation @y over <[0, 0] : [4, 3]> [map, map]
// CHECK-NEXT:   ins(%a : (d0, d1) -> (d0, 0), %b : (d0, d1) -> (d1))
// CHECK-NEXT:   outs((d0, d1) -> (d0, d1))
// CHECK-NEXT:   wrap ([[A:%.*]]: i32, [[B:%.*]]: f32) {
// CHECK-NEXT:     [[F:%.*]] = arith.sitofp [[A]] : i32 to f32
// CHECK-NEXT:     [[S:%.*]] = arith.addf [[F]], [[B]] : f32
// CHECK-NEXT:     loom.yield [[S]] : f32
func.func @main(%a: !loom.tensor<[0, 0] : [4, 1], i32>, %b: !loom.tensor<[0] : [3], f32>)
                -> !loom.tensor<[0, 0] : [4, 3], f32> {
  %y = weft.apply @add(%a, %b)
         : (!loom.tensor<[0, 0] : [4, 1], i32>, !loom.tensor<[0] : [3], f32>)
           -> !loom.tensor<[0, 0] : [4, 3], f32>
  func.return %y : !loom.tensor<[0, 0] : [4, 3], f32>
}

// -----

// A number out of the range of a float type is infinite there, as what IEEE 754 rounds.

// CHECK:      %y = loom.operation @y
// CHECK:        arith.constant 0x7c00 : f16
// CHECK:      %z = loom.operation @z
// CHECK:        arith.constant 0xfc00 : f16
// CHECK:      %p = loom.operation @p
// CHECK:        ins(%z : (d0) -> (d0 - 1) clip 0xfc00 : f16)
weft.metakernel @shift {
  inputs = [{x = {shape = "[$n]", dtype = "f16", bounds = {clip = -1.0e9 : f64}, ipf = "[@n - 1]"}}],
  index = "[$n]"
}
func.func @main(%x: !loom.tensor<[0] : [3], f16>) -> !loom.tensor<[0] : [3], f16> {
  %y = weft.apply @clamp(%x) {max = 1.0e9 : f64} : (!loom.tensor<[0] : [3], f16>) -> !loom.tensor<[0] : [3], f16>
  %z = weft.apply @clamp(%y) {min = -1.0e9 : f64} : (!loom.tensor<[0] : [3], f16>) -> !loom.tensor<[0] : [3], f16>
  %p = weft.apply @shift(%z) : (!loom.tensor<[0] : [3], f16>) -> !loom.tensor<[0] : [3], f16>
  func.return %p : !loom.tensor<[0] : [3], f16>
}

// -----

// Choosing among cells stays in half precision; an enum chooses the body at expansion.

// CHECK:      %r = loom.operation @r
// CHECK:        arith.maximumf %{{.*}}, %{{.*}} : f16
// CHECK:      %e = loom.operation @e
// CHECK:        arith.extf
// CHECK-NOT:    math.tanh
// CHECK:        math.erf %{{.*}} : f32
// CHECK:        arith.truncf
// CHECK:      %t = loom.operation @t
// CHECK-NOT:    math.erf
// CHECK:        math.tanh %{{.*}} : f32
func.func @main(%x: !loom.tensor<[0] : [4], f16>) -> !loom.tensor<[0] : [4], f16> {
  %r = weft.apply @relu(%x) : (!loom.tensor<[0] : [4], f16>) -> !loom.tensor<[0] : [4], f16>
  %e = weft.apply @gelu(%r) : (!loom.tensor<[0] : [4], f16>) -> !loom.tensor<[0] : [4], f16>
  %t = weft.apply @gelu(%e) {approximate = "tanh"}
         : (!loom.tensor<[0] : [4], f16>) -> !loom.tensor<[0] : [4], f16>
  func.return %t : !loom.tensor<[0] : [4], f16>
}

// -----

// What only moves cells becomes a view; a reshape stays one.

// CHECK:      %t = loom.view %x : (d0, d1, d2) -> (d1, d2 + 3, d0 - 1)
// CHECK-NEXT: %r = loom.reshape %t :
func.func @main(%x: !loom.tensor<[0, 3, 0] : [2, 6, 4], f32>) -> !loom.tensor<[0, 0] : [8, 3], f32> {
  %t = weft.apply @transpose(%x) {perm = [2, 0, 1]}
         : (!loom.tensor<[0, 3, 0] : [2, 6, 4], f32>) -> !loom.tensor<[1, 0, 0] : [5, 2, 3], f32>
  %r = weft.apply @reshape(%t) {shape = array<i64: -1, 3>}
         : (!loom.tensor<[1, 0, 0] : [5, 2, 3], f32>) -> !loom.tensor<[0, 0] : [8, 3], f32>
  func.return %r : !loom.tensor<[0, 0] : [8, 3], f32>
}

// -----

// A metakernel of the module comes before the library's, may have no inputs, and is gone afterwards.

// CHECK-NOT:  weft.
// CHECK:      %i = loom.operation @i over <[0] : [5]> [map]
// CHECK-NEXT:   outs((d0) -> (d0 + 2))
// CHECK-NEXT:   wrap () {
// CHECK-NEXT:     [[I:%.*]] = loom.index 0 : i64
// CHECK-NEXT:     [[F:%.*]] = arith.sitofp [[I]] : i64 to f32
// CHECK-NEXT:     loom.yield [[F]] : f32
// CHECK:      arith.mulf
weft.metakernel @positions {
  params = [{n = {type = "int"}}], inputs = [], index = "[$n]", wrap = "cast(@n, f32)",
  outputs = [{result = {dtype = "f32"}}]
}
weft.metakernel @relu {inputs = [{x = {shape = "[$d...]"}}], index = "[$d...]", wrap = "x * x"}
func.func @main() -> !loom.tensor<[0] : [5], f32> {
  %i = weft.apply @positions() {n = 5} : () -> !loom.tensor<[2] : [7], f32>
  %y = weft.apply @relu(%i) : (!loom.tensor<[2] : [7], f32>) -> !loom.tensor<[0] : [5], f32>
  func.return %y : !loom.tensor<[0] : [5], f32>
}

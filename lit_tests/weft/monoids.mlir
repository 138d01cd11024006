// RUN: tapestry-opt %s -p weft-apply --split-input-file | filecheck %s

// A template's own monoid becomes one definition per types of its state, whoever folds by it.

// CHECK:      loom.monoid @spread_f32_f32 commutative zero [0xff800000 : f32, 0x7f800000 : f32] merge
// CHECK-NEXT:   [[HIGH:%.*]] = arith.maximumf
// CHECK-NEXT:   [[LOW:%.*]] = arith.minimumf
// CHECK-NEXT:   loom.yield [[HIGH]], [[LOW]] : f32, f32
// CHECK:      loom.monoid @spread_i32_i32 commutative zero [-2147483648 : i32, 2147483647 : i32] merge
// CHECK-NOT:  loom.monoid
// CHECK:      %a = loom.operation @a over <[0] : [4]> [fold] by @spread_f32_f32
// CHECK:      %b = loom.operation @b over <[0] : [4]> [fold] by @spread_f32_f32
// CHECK:      %c = loom.operation @c over <[0] : [4]> [fold] by @spread_i32_i32
weft.metakernel @range {
  inputs = [{x = {shape = "[$n]", dtype = "$t"}}],
  index = "[]",
  fold = [{n = {extent = "$n", monoid = "spread"}}],
  monoids = {spread = {zero = ["lowest($t)", "highest($t)"],
                       merge = ["max(a[0], b[0])", "min(a[1], b[1])"], commutative = true}},
  wrap = ["x", "x"],
  unwrap = "fold[0] - fold[1]"
}
func.func @main(%x: !loom.tensor<[0] : [4], f32>, %y: !loom.tensor<[0] : [4], i32>)
    -> (!loom.tensor<[] : [], f32>, !loom.tensor<[] : [], f32>, !loom.tensor<[] : [], i32>) {
  %a = weft.apply @range(%x) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  %b = weft.apply @range(%x) {} : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[] : [], f32>
  %c = weft.apply @range(%y) : (!loom.tensor<[0] : [4], i32>) -> !loom.tensor<[] : [], i32>
  func.return %a, %b, %c : !loom.tensor<[] : [], f32>, !loom.tensor<[] : [], f32>, !loom.tensor<[] : [], i32>
}

// -----

// A name that the module has already gets a number, and what is already defined is used.

// CHECK:      loom.monoid @first_i32_1 zero [0 : i32] merge
// CHECK:      loom.monoid @first_i32 zero
// CHECK:      by @first_i32_1
weft.metakernel @first {
  inputs = [{x = {shape = "[$n]"}}],
  index = "[]",
  fold = [{n = {extent = "$n", monoid = "first"}}],
  monoids = {first = {zero = "0", merge = "where(a != 0, a, b)"}},
  wrap = "x"
}
loom.monoid @first_i32 zero [1 : i32] merge (%a: i32, %b: i32) {
  %m = arith.muli %a, %b : i32
  loom.yield %m : i32
}
func.func @main(%x: !loom.tensor<[0] : [4], i32>) -> !loom.tensor<[] : [], i32> {
  %a = weft.apply @first(%x) : (!loom.tensor<[0] : [4], i32>) -> !loom.tensor<[] : [], i32>
  func.return %a : !loom.tensor<[] : [], i32>
}

// -----

// Numbers among the parts of a statistic have the type of the others; halves are folded in f32.

// CHECK:      by @welford
// CHECK-DAG:    [[X:%.*]] = arith.extf
// CHECK-DAG:    [[ONE:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:    [[ZERO:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK:        loom.yield [[ONE]], [[X]], [[ZERO]] : f32, f32, f32
weft.metakernel @variance {
  inputs = [{x = {shape = "[$n]", dtype = "float"}}],
  index = "[]",
  fold = [{n = {extent = "$n", monoid = "welford"}}],
  wrap = ["1", "x", "0"],
  unwrap = "fold[2] / fold[0]"
}
func.func @main(%x: !loom.tensor<[0] : [4], f16>) -> !loom.tensor<[] : [], f16> {
  %a = weft.apply @variance(%x) : (!loom.tensor<[0] : [4], f16>) -> !loom.tensor<[] : [], f16>
  func.return %a : !loom.tensor<[] : [], f16>
}

// RUN: tapestry-opt %s -p weft-apply --split-input-file | filecheck %s

// A point selects a box of the table, and the body reads a cell of it. Dimensions that the box writes
// as 1 take no index.

// CHECK:      %y = loom.operation @y over <[0, 0] : [4, 8]> [map, map]
// CHECK-NEXT:   ins(%ids : (d0, d1) -> (d0), %table : (d0, d1) -> (1, d1) :> [50, 1])
// CHECK-NEXT:   outs((d0, d1) -> (d0, d1))
// CHECK-NEXT:   wrap (%{{.*}}: i32, %{{.*}}: !loom.block<[50, 1], f16>) {
// CHECK-NEXT:     [[ID:%.*]] = arith.extsi
// CHECK-NEXT:     [[FIRST:%.*]] = arith.constant 0 : i64
// CHECK-NEXT:     [[NONE:%.*]] = arith.constant 0.000000e+00 : f16
// CHECK-NEXT:     [[V:%.*]] = loom.read %{{.*}}[[[ID]], [[FIRST]]] else [[NONE]] : f16
// CHECK-NEXT:     loom.yield [[V]] : f16
weft.metakernel @lookup {
  inputs = [{ids = {shape = "[$n]", dtype = "int", ipf = "[@n]"}},
            {table = {shape = "[$vocab, $dim]", ipf = "[0, @dim] :> [$vocab, 1]"}}],
  index = "[$n, $dim]",
  wrap = "read(table, ids, else=0)",
  outputs = [{result = {dtype = "f16"}}]
}
func.func @main(%ids: !loom.tensor<[0] : [4], i32>, %table: !loom.tensor<[1, 0] : [51, 8], f16>) -> !loom.tensor<[0, 0] : [4, 8], f16> {
  %y = weft.apply @lookup(%ids, %table)
         : (!loom.tensor<[0] : [4], i32>, !loom.tensor<[1, 0] : [51, 8], f16>) -> !loom.tensor<[0, 0] : [4, 8], f16>
  func.return %y : !loom.tensor<[0, 0] : [4, 8], f16>
}

// -----

// A box of one cell is that cell: with `else`, where the index is 0.

// CHECK:      wrap (%{{.*}}: i64, %{{.*}}: f32) {
// CHECK-NOT:    loom.read
// CHECK:        arith.cmpi eq
// CHECK-NEXT:   arith.constant 7
// CHECK-NEXT:   arith.select
weft.metakernel @pick {
  inputs = [{at = {shape = "[$m]", dtype = "i64", ipf = "[@m]"}},
            {x = {shape = "[$n]", dtype = "$t", ipf = "[0] :> [$n]"}}],
  index = "[$m]",
  wrap = "read(x, at, else=7)",
  outputs = [{result = {dtype = "$t"}}]
}
func.func @main(%at: !loom.tensor<[0] : [3], i64>, %x: !loom.tensor<[4] : [5], f32>) -> !loom.tensor<[0] : [3], f32> {
  %y = weft.apply @pick(%at, %x)
         : (!loom.tensor<[0] : [3], i64>, !loom.tensor<[4] : [5], f32>) -> !loom.tensor<[0] : [3], f32>
  func.return %y : !loom.tensor<[0] : [3], f32>
}

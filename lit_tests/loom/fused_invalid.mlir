// RUN: tapestry-opt %s --split-input-file --verify-diagnostics | filecheck %s

// Each case breaks one rule of groups, and only that one.

!x = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @g: @a runs over <[0] : [4]>, but the group's points are <[0] : [5]> there
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [5]> aligned((d0) -> (d0)) ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %a : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0, 0] : [4, 4], f32>

// CHECK{LITERAL}: @g: @a is aligned by (d0, d1) -> (d0, d0); each row must be another dimension of the group
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0, 0] : [4, 4]> aligned((d0, d1) -> (d0, d0)) ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0, 0] : [4, 4]> [map, map]
           ins(%i : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %a : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @g: 1 members, but 2 alignments
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [4]> aligned((d0) -> (d0), (d0) -> (d0)) ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %a : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0, 0] : [4, 4], f32>

// A transposed read is another alignment.
// CHECK{LITERAL}: @g: @b reads dimension 0 of what @a writes at d1, but it is written at d0; align the two, or clone @a, or leave it out of the group
// CHECK{LITERAL}: @g: @b reads dimension 1
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0, 0] : [4, 4]> aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
    ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0, 0] : [4, 4]> [map, map]
           ins(%i : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    %b = loom.operation @b over <[0, 0] : [4, 4]> [map, map]
           ins(%a : (d0, d1) -> (d1, d0)) outs((d0, d1) -> (d0, d1))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %b : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @g: @a is read by no member and is no output; leave it out
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [4]> aligned((d0) -> (d0), (d0) -> (d0)) ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    %b = loom.operation @b over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %b : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @g: an output is what a member writes, not what the group reads
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [4]> aligned() ins(%x) group (%i: !x) {
    loom.yield %i : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!t = !loom.tensor<[0] : [2], f32>

// CHECK{LITERAL}: @g: the group holds loom.view; its members are loom.operations
func.func @main(%x: !x) -> !t {
  %y = loom.fused @g over <[0] : [4]> aligned() ins(%x) group (%i: !x) {
    %a = loom.view %i : (d0) -> (d0) : !x -> !t
    loom.yield %a : !t
  } : (!x) -> !t
  func.return %y : !t
}

// -----

!x = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @g: @a has shards of its own; the group is split as one
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [4]> aligned((d0) -> (d0)) ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           shards <grid [[0, 2, 4]]> wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %a : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0] : [4], f64>

// CHECK{LITERAL}: @g: the group takes (!loom.tensor<[0] : [4], f64>), but its operands are (!loom.tensor<[0] : [4], f32>)
func.func @main(%x: !x) -> !y {
  %y = loom.fused @g over <[0] : [4]> aligned((d0) -> (d0)) ins(%x) group (%i: !y) {
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f64) { loom.yield %c : f64 } : (!y) -> !y
    loom.yield %a : !y
  } : (!x) -> !y
  func.return %y : !y
}

// -----

!x = !loom.tensor<[0] : [4], f32>

// Members are verified too, and their order.
// CHECK{LITERAL}: operand 0 (%a) is used before it is defined
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [4]> aligned((d0) -> (d0), (d0) -> (d0)) ins(%x) group (%i: !x) {
    %b = loom.operation @b over <[0] : [4]> [map] ins(%a : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %b : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!m = !loom.tensor<[] : [], f32>
!o = !loom.tensor<[0] : [3], f32>

// CHECK{LITERAL}: @g: dimension 1 cannot be cut: @total, which writes an output, lacks it
func.func @main(%x: !x, %z: !o) -> (!m, !o) {
  %t, %y = loom.fused @g over <[0, 0] : [4, 3]> aligned((d0, d1) -> (d0), (d0, d1) -> (d1))
    shards <grid [[0, 4], [0, 2, 3]]> ins(%x, %z) group (%i: !x, %j: !o) {
    %t = loom.operation @total over <[0] : [4]> [fold] by @add ins(%i : (d0) -> (d0)) outs(() -> ())
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !m
    %b = loom.operation @shift over <[0] : [3]> [map]
           ins(%t : (d0) -> (), %j : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32, %d: f32) { %r = arith.addf %c, %d : f32  loom.yield %r : f32 }
           : (!m, !o) -> !o
    loom.yield %t, %b : !m, !o
  } : (!x, !o) -> (!m, !o)
  func.return %t, %y : !m, !o
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!h = !loom.tensor<[0] : [2], f32>
!m = !loom.tensor<[] : [], f32>

// @first reads one cell of @a, which another part may write.
// CHECK{LITERAL}: @g: dimension 0 cannot be cut: @first reads other cells of @a than the same part writes
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [4]> aligned((d0) -> (d0), (d0) -> (d0))
    shards <grid [[0, 2, 4]]> ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    %b = loom.operation @first over <[0] : [4]> [map] ins(%a : (d0) -> (0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    loom.yield %b : !x
  } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>

// The last box of a part reaches into what the next part writes.
// CHECK{LITERAL}: @g: dimension 0 cannot be cut: @next reads other cells of @a than the same part writes
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0] : [4]> aligned((d0) -> (d0), (d0) -> (d0))
    shards <grid [[0, 2, 4]]> ins(%x) group (%i: !x) {
    %a = loom.operation @a over <[0] : [4]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
           wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    %b = loom.operation @next over <[0] : [4]> [map]
           ins(%a : (d0) -> (d0) :> [2] clip 0.5 : f32) outs((d0) -> (d0))
           wrap (%c: !loom.block<[2], f32>) {
             %one = arith.constant 1 : i64
             %r = loom.read %c[%one] : f32
             loom.yield %r : f32
           } : (!x) -> !x
    loom.yield %b : !x
  } : (!x) -> !x
  func.return %y : !x
}

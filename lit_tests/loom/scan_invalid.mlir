// RUN: tapestry-opt %s --split-input-file --verify-diagnostics | filecheck %s

!x = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @unnamed: it scans, but names no monoid; add `by @add`, for example
func.func @main(%x: !x) -> !x {
  %y = loom.operation @unnamed over <[0] : [4]> [scan]
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0, 0] : [4, 4], f32>

// CHECK{LITERAL}: @twice: it scans along several dimensions; a scan of a scan is two operations
func.func @main(%x: !x) -> !x {
  %y = loom.operation @twice over <[0, 0] : [4, 4]> [scan, scan] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0, 0] : [4, 4], f32>
!y = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @both: it folds and scans; make one of them an operation of its own
func.func @main(%x: !x) -> !y {
  %y = loom.operation @both over <[0, 0] : [4, 4]> [fold, scan] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[] : [], f32>

// A scan keeps its dimension: its output has one cell per running state.
// CHECK{LITERAL}: @last: output 0 is projected from 0 dimensions, but there are 1 here
func.func @main(%x: !x) -> !y {
  %y = loom.operation @last over <[0] : [4]> [scan] by @add
         ins(%x : (d0) -> (d0)) outs(() -> ())
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %y : !y
}

// -----

!x = !loom.tensor<[0] : [4], f32>

// CHECK{LITERAL}: @back: the shards along the scan do not follow one another
func.func @main(%x: !x) -> !x {
  %y = loom.operation @back over <[0] : [4]> [scan] by @add
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0)) shards <ranges [[2] : [4], [0] : [2]]>
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!h = !loom.tensor<[0] : [2], f32>
!t = !loom.tensor<[2] : [4], f32>

loom.kernel @sums [scan] by @add ins((d0) -> (d0)) outs((d0) -> (d0))
  wrap (%c: f32) { loom.yield %c : f32 }

// CHECK{LITERAL}: @sums: the merged states do not follow one another from first to last; a scan goes on
func.func @main(%x: !x) -> !x {
  %a = loom.application @sums over <[0] : [2]> partial (%x <[0] : [2]>) : (!x) -> !h
  %b = loom.application @sums over <[2] : [4]> partial (%x <[2] : [4]>) : (!x) -> !t
  %y = loom.merge @sums over <[0] : [4]> states(%b, %a) : (!t, !h) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!h = !loom.tensor<[0] : [2], f32>

loom.kernel @sums [scan] by @add ins((d0) -> (d0)) outs((d0) -> (d0))
  wrap (%c: f32) { loom.yield %c : f32 }

// CHECK{LITERAL}: @sums: the merged states do not tile
func.func @main(%x: !x) -> !x {
  %a = loom.application @sums over <[0] : [2]> partial (%x <[0] : [2]>) : (!x) -> !h
  %y = loom.merge @sums over <[0] : [4]> states(%a) : (!h) -> !x
  func.return %y : !x
}

// -----

!x = !loom.tensor<[0] : [4], i32>
!h = !loom.tensor<[] : [], i32>

loom.monoid @first zero [0 : i32] merge (%a: i32, %b: i32) {
  %z = arith.constant 0 : i32
  %n = arith.cmpi eq, %a, %z : i32
  %r = arith.select %n, %b, %a : i32
  loom.yield %r : i32
}

loom.kernel @pick [fold] by @first ins((d0) -> (d0)) outs(() -> ())
  wrap (%c: i32) { loom.yield %c : i32 }

// CHECK{LITERAL}: @pick: the merged states do not follow one another from first to last; the monoid does not commute
func.func @main(%x: !x) -> !h {
  %a = loom.application @pick over <[0] : [2]> partial (%x <[0] : [2]>) : (!x) -> !h
  %b = loom.application @pick over <[2] : [3]> partial (%x <[2] : [3]>) : (!x) -> !h
  %c = loom.application @pick over <[3] : [4]> partial (%x <[3] : [4]>) : (!x) -> !h
  %bc = loom.merge @pick over <[] : []> partial states(%b, %c) : (!h, !h) -> !h
  %y = loom.merge @pick over <[] : []> states(%bc, %a) : (!h, !h) -> !h
  func.return %y : !h
}

// -----

!x = !loom.tensor<[0] : [4], f32>
!h = !loom.tensor<[] : [], f32>

loom.kernel @shifted [fold] by @add ins((d0) -> (d0)) extra(() -> ()) outs(() -> ())
  wrap (%c: f32) { loom.yield %c : f32 }
  unwrap (%s: f32, %b: f32) { %r = arith.addf %s, %b : f32  loom.yield %r : f32 }

// CHECK{LITERAL}: @shifted: it is partial, and only unwrap reads extra inputs; remove them
func.func @main(%x: !x, %b: !h) -> !h {
  %a = loom.application @shifted over <[0] : [4]> partial (%x <[0] : [4]>) : (!x) -> !h
  %s = loom.merge @shifted over <[] : []> partial states(%a) extra(%b) : (!h, !h) -> !h
  %y = loom.merge @shifted over <[] : []> states(%s) extra(%b) : (!h, !h) -> !h
  func.return %y : !h
}

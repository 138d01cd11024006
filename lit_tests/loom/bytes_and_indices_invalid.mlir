// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK{LITERAL}: @same: wrap takes (ui8), but its cells are (i8)
!x = !loom.tensor<[0] : [6], ui8>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @same over <[0] : [6]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%a: ui8) { loom.yield %a : ui8 } : (!x) -> !x
  func.return %y : !x
}

// -----

// CHECK{LITERAL}: @next: input 0 is clipped to 255 : ui8, but its cells are i8
!x = !loom.tensor<[0] : [6], ui8>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @next over <[0] : [6]> [map]
         ins(%x : (d0) -> (d0) clip 255 : ui8) outs((d0) -> (d0))
         wrap (%a: i8) { loom.yield %a : i8 } : (!x) -> !x
  func.return %y : !x
}

// -----

// An index becomes another type by a cast alone.
// CHECK: %b = arith.extsi %a : index to i64
// CHECK: this operation is not as its dialect says: index should be of base attribute integer_type
!n = !loom.tensor<[0] : [6], index>
!y = !loom.tensor<[0] : [6], i64>
func.func @main(%n: !n) -> !y {
  %y = loom.operation @wide over <[0] : [6]> [map] ins(%n : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%a: index) {
           %b = arith.extsi %a : index to i64
           loom.yield %b : i64
         } : (!n) -> !y
  func.return %y : !y
}

// -----

// States are what bodies make, which have no unsigned types.
// CHECK: no monoid @max folds states of type (ui8)
!x = !loom.tensor<[0] : [6], ui8>
!s = !loom.tensor<[] : [], ui8>
func.func @main(%x: !x) -> !s {
  %s = loom.operation @most over <[0] : [6]> [fold] by @max ins(%x : (d0) -> (d0)) outs(() -> ())
         wrap (%a: ui8) { loom.yield %a : ui8 } : (!x) -> !s
  func.return %s : !s
}

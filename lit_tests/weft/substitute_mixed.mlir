// A rule is used for combinations of dtypes for which it keeps values: -b wraps in 8 bits, so
// a + -b in 32 bits is not a - b there.

// RUN: tapestry-opt %s -p 'weft-substitute{rules=identities only=add_neg}' | filecheck %s

!w = !loom.tensor<[0] : [2], i32>
!n = !loom.tensor<[0] : [2], i8>

// CHECK-LABEL: @mixed
// CHECK-NEXT: weft.apply @neg
// CHECK-NEXT: weft.apply @add
func.func @mixed(%a: !w, %b: !n) -> !w {
  %n = weft.apply @neg(%b) : (!n) -> !n
  %y = weft.apply @add(%a, %n) : (!w, !n) -> !w
  func.return %y : !w
}

// CHECK-LABEL: @same
// CHECK-NEXT: weft.apply @sub(%a, %b)
func.func @same(%a: !w, %b: !w) -> !w {
  %n = weft.apply @neg(%b) : (!w) -> !w
  %y = weft.apply @add(%a, %n) : (!w, !w) -> !w
  func.return %y : !w
}

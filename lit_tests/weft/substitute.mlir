// RUN: tapestry-opt %s -p 'weft-substitute{rules="%S/Inputs/rules.yaml"}' --split-input-file | filecheck %s
// RUN: tapestry-opt %s -p 'weft-substitute{rules="%S/Inputs/rules.yaml"}' --split-input-file --equal-each -o /dev/null 2>&1 | filecheck %s --check-prefix EQUAL
// EQUAL-COUNT-8: equal (

// What replaces a value has its name and type; each produced application has its own.

// CHECK:      func.func @split
// CHECK-NEXT:   %y_z = weft.apply @matmul(%x, %w) : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 3], f32>) -> !loom.tensor<[0, 0] : [4, 3], f32>
// CHECK-NEXT:   %y = weft.apply @add(%y_z, %b) : (!loom.tensor<[0, 0] : [4, 3], f32>, !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[2, 0] : [6, 3], f32>
// CHECK-NEXT:   func.return %y
func.func @split(%x: !loom.tensor<[0, 0] : [4, 6], f32>, %w: !loom.tensor<[0, 0] : [6, 3], f32>,
                 %b: !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[2, 0] : [6, 3], f32> {
  %y = weft.apply @linear(%x, %w, %b)
         : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 3], f32>,
            !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[2, 0] : [6, 3], f32>
  func.return %y : !loom.tensor<[2, 0] : [6, 3], f32>
}

// -----

// A condition that does not hold: %y has two uses.

// CHECK:      func.func @twice
// CHECK-NEXT:   weft.apply @linear
func.func @twice(%x: !loom.tensor<[0, 0] : [4, 6], f32>, %w: !loom.tensor<[0, 0] : [6, 3], f32>,
                 %b: !loom.tensor<[0] : [3], f32>)
                 -> (!loom.tensor<[0, 0] : [4, 3], f32>, !loom.tensor<[0, 0] : [4, 3], f32>) {
  %y = weft.apply @linear(%x, %w, %b)
         : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 3], f32>,
            !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[0, 0] : [4, 3], f32>
  func.return %y, %y : !loom.tensor<[0, 0] : [4, 3], f32>, !loom.tensor<[0, 0] : [4, 3], f32>
}

// -----

// Parameters are bound and computed; rules that come to an end are applied until nothing matches.
// What is matched and used elsewhere stays.

// CHECK:      func.func @transposes
// CHECK-NEXT:   %b = weft.apply @transpose(%x) {perm = [2 : i64, 0 : i64, 1 : i64]}
// CHECK-NEXT:   %c = weft.apply @transpose(%x) {perm = [0 : i64, 1 : i64, 2 : i64]}
// CHECK-NEXT:   func.return %b, %c
func.func @transposes(%x: !loom.tensor<[0, 0, 0] : [2, 3, 4], i1>)
                      -> (!loom.tensor<[0, 0, 0] : [4, 2, 3], i1>, !loom.tensor<[0, 0, 0] : [2, 3, 4], i1>) {
  %a = weft.apply @transpose(%x) {perm = [1, 2, 0]}
         : (!loom.tensor<[0, 0, 0] : [2, 3, 4], i1>) -> !loom.tensor<[0, 0, 0] : [3, 4, 2], i1>
  %b = weft.apply @transpose(%a) {perm = [1, 2, 0]}
         : (!loom.tensor<[0, 0, 0] : [3, 4, 2], i1>) -> !loom.tensor<[0, 0, 0] : [4, 2, 3], i1>
  %c = weft.apply @transpose(%b) {perm = [1, 2, 0]}
         : (!loom.tensor<[0, 0, 0] : [4, 2, 3], i1>) -> !loom.tensor<[0, 0, 0] : [2, 3, 4], i1>
  func.return %b, %c : !loom.tensor<[0, 0, 0] : [4, 2, 3], i1>, !loom.tensor<[0, 0, 0] : [2, 3, 4], i1>
}

// -----

// A number is a constant of that number in every cell, on either side where the operator allows it;
// a tensor that starts elsewhere is moved there.

// CHECK:      func.func @zero
// CHECK-NOT:    @add
// CHECK:        %y = loom.view %x : (d0) -> (d0 - 2) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[2] : [6], f32>
// CHECK-NEXT:   func.return %y
func.func @zero(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[2] : [6], f32> {
  %c = loom.constant [0.0, 0.0, 0.0, 0.0] : !loom.tensor<[0] : [4], f32>
  %z = weft.apply @add(%c, %x)
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  %y = weft.apply @add(%z, %c)
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[2] : [6], f32>
  func.return %y : !loom.tensor<[2] : [6], f32>
}

// -----

// A zero that stretches the other operand is not left out.

// CHECK:      func.func @stretched
// CHECK:        weft.apply @add
func.func @stretched(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0, 0] : [3, 4], f32> {
  %c = loom.constant 0.0 : !loom.tensor<[0, 0] : [3, 1], f32>
  %y = weft.apply @add(%x, %c)
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0, 0] : [3, 1], f32>) -> !loom.tensor<[0, 0] : [3, 4], f32>
  func.return %y : !loom.tensor<[0, 0] : [3, 4], f32>
}

// -----

// Several results: what is produced stands before the first use of either.

// CHECK:      func.func @statistics
// CHECK-NEXT:   %s = weft.apply @sum(%x) {axis = 1 : i64, keepdim = false}
// CHECK-NEXT:   [[N:%.*]] = loom.constant 5.0 : !loom.tensor<[] : [], f32>
// CHECK-NEXT:   %m = weft.apply @div(%s, [[N]])
// CHECK-NEXT:   %e = weft.apply @exp(%s)
// CHECK-NEXT:   func.return %e, %m
func.func @statistics(%x: !loom.tensor<[0, 0] : [4, 5], f32>)
                      -> (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) {
  %s = weft.apply @sum(%x) {axis = -1} : (!loom.tensor<[0, 0] : [4, 5], f32>) -> !loom.tensor<[0] : [4], f32>
  %e = weft.apply @exp(%s) : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  %m = weft.apply @mean(%x) {axis = 1} : (!loom.tensor<[0, 0] : [4, 5], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %e, %m : !loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>
}

// -----

// Without a measure a rule is applied once to each application.

// CHECK:      func.func @once
// CHECK-NEXT:   %y = weft.apply @maximum(%b, %a)
// CHECK-NEXT:   func.return %y
func.func @once(%a: !loom.tensor<[0] : [4], f32>, %b: !loom.tensor<[0] : [4], f32>)
                -> !loom.tensor<[0] : [4], f32> {
  %y = weft.apply @maximum(%a, %b)
         : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}

// -----

// Lists of tensors, and results by their place in a list.

// CHECK:      func.func @side_by_side
// CHECK-NEXT:   %q_c = weft.apply @concat([%w, %v]) {axis = 1 : i64}
// CHECK-NEXT:   %q_both = weft.apply @matmul(%x, %q_c)
// CHECK-NEXT:   [[Q:%.*]], [[P:%.*]] = weft.apply @split(%q_both) {chunk = 3 : i64, axis = 1 : i64}
// CHECK-NEXT:   %y = weft.apply @sub([[P]], [[Q]])
func.func @side_by_side(%x: !loom.tensor<[0, 0] : [4, 6], f32>, %v: !loom.tensor<[0, 0] : [6, 3], f32>,
                        %w: !loom.tensor<[0, 0] : [6, 3], f32>) -> !loom.tensor<[0, 0] : [4, 3], f32> {
  %p = weft.apply @matmul(%x, %v)
         : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 3], f32>) -> !loom.tensor<[0, 0] : [4, 3], f32>
  %q = weft.apply @matmul(%x, %w)
         : (!loom.tensor<[0, 0] : [4, 6], f32>, !loom.tensor<[0, 0] : [6, 3], f32>) -> !loom.tensor<[0, 0] : [4, 3], f32>
  %y = weft.apply @sub(%p, %q)
         : (!loom.tensor<[0, 0] : [4, 3], f32>, !loom.tensor<[0, 0] : [4, 3], f32>) -> !loom.tensor<[0, 0] : [4, 3], f32>
  func.return %y : !loom.tensor<[0, 0] : [4, 3], f32>
}

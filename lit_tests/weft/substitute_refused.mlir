// Rules that do not keep types, values or floats are refused when they first match, at their place.

// RUN: not tapestry-opt %s -p 'weft-substitute{rules="%S/Inputs/wrong_rules.yaml" only=shape_changes}' 2>&1 | filecheck %s --check-prefix SHAPE
// SHAPE: wrong_rules.yaml:6:16: error: rule shape_changes: y is {{.*}} f32, and {{.*}} f32 is produced, for x: 
// SHAPE-NEXT: hint: say in `where` when the rule applies

// RUN: not tapestry-opt %s -p 'weft-substitute{rules="%S/Inputs/wrong_rules.yaml" only=value_changes}' 2>&1 | filecheck %s --check-prefix VALUE
// VALUE: wrong_rules.yaml:8:3: error: rule value_changes: what is matched and what is produced differ
// VALUE-NEXT: output 0 at

// RUN: not tapestry-opt %s -p 'weft-substitute{rules="%S/Inputs/wrong_rules.yaml" only=float_changes}' 2>&1 | filecheck %s --check-prefix FLOAT
// FLOAT: wrong_rules.yaml:12:3: error: rule float_changes: y is not the same in float
// FLOAT-NEXT: hint: say `exact: false`

// RUN: not tapestry-opt %s -p 'weft-substitute{rules="%S/Inputs/wrong_rules.yaml" only=does_not_fit}' 2>&1 | filecheck %s --check-prefix FIT
// FIT: wrong_rules.yaml:18:16: error: rule does_not_fit: produce.y: require `len($perm) == len($d)`: 2 == 1 does not hold for $d = [1], $perm = [1, 0]

// RUN: not tapestry-opt %s -p 'weft-substitute{rules="%S/Inputs/wrong_rules.yaml" only=value_change}' 2>&1 | filecheck %s --check-prefix ONLY
// ONLY: error: there is no rule value_change
// ONLY-NEXT: hint: did you mean value_changes

// RUN: not tapestry-opt %s -p 'weft-substitute{rules=identity}' 2>&1 | filecheck %s --check-prefix FILE
// FILE: error: there are no rules identity
// FILE-NEXT: hint: did you mean identities?

// RUN: not tapestry-opt %s -p 'weft-substitute{rules=identities choose="k"}' 2>&1 | filecheck %s --check-prefix CHOICE
// CHOICE: error: cannot read the choice 'k'

func.func @main(%x: !loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0] : [16], f32> {
  %e = weft.apply @exp(%x) : (!loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0, 0] : [4, 4], f32>
  %s = weft.apply @sub(%x, %e) : (!loom.tensor<[0, 0] : [4, 4], f32>, !loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0, 0] : [4, 4], f32>
  %p = weft.apply @mul(%x, %s) : (!loom.tensor<[0, 0] : [4, 4], f32>, !loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0, 0] : [4, 4], f32>
  %q = weft.apply @mul(%p, %e) : (!loom.tensor<[0, 0] : [4, 4], f32>, !loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0, 0] : [4, 4], f32>
  %r = weft.apply @reshape(%q) {shape = [16]} : (!loom.tensor<[0, 0] : [4, 4], f32>) -> !loom.tensor<[0] : [16], f32>
  %y = weft.apply @relu(%r) : (!loom.tensor<[0] : [16], f32>) -> !loom.tensor<[0] : [16], f32>
  func.return %y : !loom.tensor<[0] : [16], f32>
}

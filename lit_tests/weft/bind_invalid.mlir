// RUN: not tapestry-opt %s -p weft-apply 2>&1 | filecheck %s --check-prefix APPLY
// RUN: not tapestry-opt %s -p 'weft-bind{N=3}' 2>&1 | filecheck %s --check-prefix MISSING
// RUN: not tapestry-opt %s -p 'weft-bind{N=3 K=4 M=5}' 2>&1 | filecheck %s --check-prefix SPARE
// RUN: not tapestry-opt %s -p 'weft-bind{N=3 K=4}' 2>&1 | filecheck %s --check-prefix NEGATIVE
// RUN: not tapestry-opt %s -p 'weft-bind{N=0 K=4}' 2>&1 | filecheck %s --check-prefix NEGATIVE
// RUN: not tapestry-opt %s -p 'weft-bind{N=x}' 2>&1 | filecheck %s --check-prefix WORD
// RUN: not tapestry-opt %s -p 'weft-bind{N=9 K=4},weft-apply' 2>&1 | filecheck %s --check-prefix RESULT

// APPLY: bind_invalid.mlir:19:3: error: @exp has symbolic sizes (N, K)
// APPLY-NEXT: hint: weft-bind{N=... K=...} makes them numbers, before weft-apply
// MISSING: bind_invalid.mlir:17:1: error: func.func has the symbolic sizes K, which are not given
// MISSING-NEXT: hint: weft-bind{N=... K=...}
// SPARE: error: no tensor has the size M
// NEGATIVE: error: weft-bind: the size N - K is -
// WORD: error: pass weft-bind: N must be one number of at least 0, as in N=4
// RESULT: error: @exp does not apply to ([9] f32): result is [9] f32, and [5] f32 is declared
func.func @main(%x: !weft.tensor<[N], f32>) -> !weft.tensor<["N - K"], f32> {

  %y = weft.apply @exp(%x) : (!weft.tensor<[N], f32>) -> !weft.tensor<["N - K"], f32>
  func.return %y : !weft.tensor<["N - K"], f32>
}

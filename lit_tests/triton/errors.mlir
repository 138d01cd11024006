// RUN: not tapestry-opt %s -p 'loom-to-triton{tile=48}' 2>&1 | filecheck %s --check-prefix TILE
// RUN: not tapestry-opt %s -p 'loom-to-triton{numerics=loose}' 2>&1 | filecheck %s --check-prefix NUMERICS
// RUN: not tapestry-opt %s -p 'loom-to-triton' 2>&1 | filecheck %s --check-prefix WEFT
// RUN: not tapestry-opt %s -t triton 2>&1 | filecheck %s --check-prefix PRINT

// TILE: error: tile = 48 is not a size of a tile
// TILE-NEXT: hint: a power of two from 16 to 1048576
// NUMERICS: error: numerics = 'loose' is not known
// NUMERICS-NEXT: hint: one of strict, mixed, fast
// WEFT: errors.mlir:{{[0-9]+}}:3: error: weft.apply cannot be lowered to Triton
// WEFT-NEXT: hint: run weft-apply first
// PRINT: errors.mlir:{{[0-9]+}}:3: error: weft.apply cannot be printed as Triton
// PRINT-NEXT: hint: run loom-to-triton first

!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
  %y = weft.apply @relu(%x) : (!x) -> !x
  func.return %y : !x
}

// One message for each mistake, with the place and what would be right; exit 1 for the program,
// 2 for the command.

// RUN: not tapestry-opt %s 2>&1 | filecheck %s --check-prefix PLACE
// PLACE: opt_errors.mlir:[[LINE:[0-9]+]]:3: error: @y: input 0 reads <[0] : [5]>, outside its tensor <[0] : [4]>
// PLACE-NOT: Traceback

// RUN: not tapestry-opt %s -p loom-simplfy 2>&1 | filecheck %s --check-prefix PASS
// PASS: error: there is no pass 'loom-simplfy'
// PASS-NEXT: hint: did you mean loom-simplify

// RUN: not tapestry-opt %s -p 'loom-shard{shard=4}' 2>&1 | filecheck %s --check-prefix OPTION
// OPTION: error: pass loom-shard has no option 'shard'
// OPTION-NEXT: hint: did you mean shards?

// RUN: not tapestry-opt %s -p 'loom-shard{shards=four}' 2>&1 | filecheck %s --check-prefix VALUE
// VALUE: error: pass loom-shard: shards cannot be 'four'; it is a whole number

// RUN: echo 'builtin.module {}' | not tapestry-opt -p 'loom-shard{shards=1000000000000000003}' 2>&1 | filecheck %s --check-prefix MANY
// MANY: error: loom-shard: shards must be from 1 to 16777216, not 1000000000000000003

// RUN: cp %s %t.txt
// RUN: not tapestry-opt %t.txt 2>&1 | filecheck %s --check-prefix EXTENSION
// EXTENSION: error: {{.*}}.txt: Unrecognized file extension 'txt'
// EXTENSION-NEXT: hint: one of mlir

// RUN: not tapestry-opt %s -p 'loom-shard{shards=4' 2>&1 | filecheck %s --check-prefix PIPELINE
// PIPELINE: error: the pipeline 'loom-shard{shards=4' is not well formed

// RUN: not tapestry-opt %s -t tritn 2>&1 | filecheck %s --check-prefix TARGET
// TARGET: error: argument -t/--target: invalid choice: 'tritn'

// RUN: not tapestry-opt %s.gone 2>&1 | filecheck %s --check-prefix FILE
// FILE: error: cannot open {{.*}}opt_errors.mlir.gone: No such file or directory

// RUN: echo 'func.func @main(%%x: i32) { "gone.op"(%%x) : (i32) -> () func.return }' > %t.mlir
// RUN: not tapestry-opt %t.mlir 2>&1 | filecheck %s --check-prefix DIALECT
// DIALECT: :1:{{[0-9]+}}: error: Operation gone.op is not registered

// RUN: echo 'func.func @main(%%x i32) { func.return }' > %t.mlir
// RUN: not tapestry-opt %t.mlir 2>&1 | filecheck %s --check-prefix SYNTAX
// SYNTAX: :1:{{[0-9]+}}: error:
// SYNTAX-NOT: Traceback

// A refused program leaves no output file.
// RUN: rm -f %t.out
// RUN: not tapestry-opt %s -o %t.out
// RUN: not ls %t.out

!v = !loom.tensor<[0] : [4], f32>
!w = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !v) -> !w {
  %y = loom.operation @y over <[0] : [5]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 } : (!v) -> !w
  func.return %y : !w
}

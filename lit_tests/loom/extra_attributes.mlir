// Attributes that no dialect declares stay with their operation, in both forms.

// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

// CHECK: loom.monoid @most commutative zero {{.*}}
// CHECK: } {note = "monoid"}
loom.monoid @most commutative zero [0xFF800000 : f32] merge (%a: f32, %b: f32) {
  %m = arith.maximumf %a, %b : f32
  loom.yield %m : f32
} {note = "monoid"}

// CHECK: loom.kernel @rows
// CHECK: {note = "kernel"}
loom.kernel @rows [map, fold] by @most ins((d0, d1) -> (d0, d1)) outs((d0) -> (d0))
  wrap (%c: f32) { loom.yield %c : f32 } {note = "kernel"}

!x = !loom.tensor<[0, 0] : [2, 4], f32>
!y = !loom.tensor<[0] : [2], f32>
// CHECK: func.func @main
func.func @main(%x: !x, %i: !loom.tensor<[0] : [2], i64>) -> (!y, !y, !y, !loom.tensor<[0] : [2], i64>) {
  // CHECK: loom.application @rows over <[0, 0] : [2, 4]> partial (%x <[0, 0] : [2, 4]>) {note = "application"} :
  %p = loom.application @rows over <[0, 0] : [2, 4]> partial (%x <[0, 0] : [2, 4]>)
         {note = "application"} : (!x) -> !y
  // CHECK: loom.merge @rows over <[0] : [2]> states(%p) {note = "merge"} :
  %m = loom.merge @rows over <[0] : [2]> states(%p) {note = "merge"} : (!y) -> !y
  // CHECK: loom.view %x : (d0) -> (d0, 0) {note = "view"} :
  %v = loom.view %x : (d0) -> (d0, 0) {note = "view"} : !x -> !y
  // CHECK: loom.reshape %v {note = "reshape"} :
  %r = loom.reshape %v {note = "reshape"} : !y -> !y
  // CHECK: loom.assemble %r {note = "assembly"} :
  %a = loom.assemble %r {note = "assembly"} : !y -> !y
  %o = loom.operation @count over <[0] : [2]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: i64) {
           // CHECK: loom.index 0 {note = "index"} : i64
           %d = loom.index 0 {note = "index"} : i64
           %e = arith.addi %c, %d : i64
           // CHECK: loom.yield {note = "yield"} %e : i64
           loom.yield {note = "yield"} %e : i64
         }
         // CHECK: {note = "operation"}
         {note = "operation"}
         : (!loom.tensor<[0] : [2], i64>) -> !loom.tensor<[0] : [2], i64>
  func.return %m, %a, %p, %o : !y, !y, !y, !loom.tensor<[0] : [2], i64>
}

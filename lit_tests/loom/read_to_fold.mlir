// RUN: tapestry-opt %s -p loom-read-to-fold --equal-each | filecheck %s
// RUN: tapestry-opt %s -p loom-read-to-fold{by=max} --equal-each | filecheck %s --check-prefix=MAX

// A read is a fold by the monoid whose zero is what the read gives outside its block.
!ids = !loom.tensor<[0] : [6], i64>
!t = !loom.tensor<[0, 0] : [50, 2], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @main(%ids: !ids, %t: !t) -> (!y, !y, !y, !y) {
  // CHECK: @sum over <[0, 0] : [6, 50]> [map, fold] by @add
  // MAX: @sum over <[0] : [6]> [map]
  %a = loom.operation @sum over <[0] : [6]> [map]
         ins(%ids : (i) -> (i), %t : (i) -> (0, 1) :> [50, 1]) outs((i) -> (i))
         wrap (%id: i64, %b: !loom.block<[50, 1], f32>) {
           %none = arith.constant 0.0 : f32
           %zero = arith.constant 0 : i64
           %v = loom.read %b[%id, %zero] else %none : f32
           loom.yield %v : f32
         } : (!ids, !t) -> !y
  // CHECK: @max over <[0] : [6]> [map]
  // MAX: @max over <[0, 0] : [6, 50]> [map, fold] by @max
  %b = loom.operation @max over <[0] : [6]> [map]
         ins(%ids : (i) -> (i), %t : (i) -> (0, 1) :> [50, 1]) outs((i) -> (i))
         wrap (%id: i64, %b: !loom.block<[50, 1], f32>) {
           %none = arith.constant 0xFF800000 : f32
           %zero = arith.constant 0 : i64
           %v = loom.read %b[%id, %zero] else %none : f32
           loom.yield %v : f32
         } : (!ids, !t) -> !y
  // Without `else` an index outside is an error, which a fold would not notice.
  // CHECK: @error over <[0] : [6]> [map]
  %c = loom.operation @error over <[0] : [6]> [map]
         ins(%ids : (i) -> (i), %t : (i) -> (0, 1) :> [50, 1]) outs((i) -> (i))
         wrap (%id: i64, %b: !loom.block<[50, 1], f32>) {
           %zero = arith.constant 0 : i64
           %v = loom.read %b[%id, %zero] : f32
           loom.yield %v : f32
         } : (!ids, !t) -> !y
  // An index that is not 0 along a dimension of one cell may be outside.
  // CHECK: @beside over <[0] : [6]> [map]
  %d = loom.operation @beside over <[0] : [6]> [map]
         ins(%ids : (i) -> (i), %t : (i) -> (0, 1) :> [50, 1]) outs((i) -> (i))
         wrap (%id: i64, %b: !loom.block<[50, 1], f32>) {
           %none = arith.constant 0.0 : f32
           %v = loom.read %b[%id, %id] else %none : f32
           loom.yield %v : f32
         } : (!ids, !t) -> !y
  func.return %a, %b, %c, %d : !y, !y, !y, !y
}

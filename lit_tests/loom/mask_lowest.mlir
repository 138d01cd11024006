// RUN: tapestry-opt %s -p loom-mask-to-domain{lowest=-1000000000.0} --split-input-file | filecheck %s

// A window of three, masked with a large negative number: each row sees itself, so that such numbers
// count for nothing if what is seen is far above them. Nobody knows of a row that may see nothing.
// CHECK-LABEL: @window
// CHECK: @seen over
// CHECK: domain(d0 - d1 >= 0, -d0 + d1 + 2 >= 0)
// CHECK: {assumes = ["above(-1e+09)"]}
// CHECK: @blind over
// CHECK-NOT: domain
!x = !loom.tensor<[0, 0] : [6, 6], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @window(%x: !x) -> (!y, !y) {
  %y = loom.operation @seen over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %d = arith.subi %i, %j : i64
           %three = arith.constant 3 : i64
           %before = arith.cmpi sge, %i, %j : i64
           %near = arith.cmpi slt, %d, %three : i64
           %b = arith.andi %before, %near : i1
           %n = arith.constant -2.38197633e+38 : f32
           %r = arith.select %b, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  %z = loom.operation @blind over <[0, 0] : [6, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %before = arith.cmpi sgt, %i, %j : i64
           %n = arith.constant -2.38197633e+38 : f32
           %r = arith.select %before, %c, %n : f32
           loom.yield %r : f32 } : (!x) -> !y
  func.return %y, %z : !y, !y
}

// RUN: tapestry-opt %s -p loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse,loom-group --equal-each 2> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes

// What scaled dot product attention of PyTorch is traced as: half precision, a scale on both sides,
// heads that share keys, a boolean mask, and a guard for rows that are masked everywhere.
// EQUAL: loom-derive: @main: equal (certified)
// EQUAL: loom-group: @main: equal (certified)
// CHECK:      zero [0xff800000 : f32, 0.000000e+00 : f32, 0.000000e+00 : f32]
// CHECK-LABEL: @main
// CHECK-NEXT: %o = loom.fused
// CHECK-SAME: over <[0, 0, 0, 0, 0, 0] : [2, 2, 8, 8, 4, 4]>
// CHECK-NEXT: aligned((d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4), (d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5, d3))
// CHECK-NEXT: ins(%q, %k, %mask, %v)
// CHECK:      [map, map, map, map, fold] by @add
// CHECK:      [map, map, map, map, fold] by @
// CHECK:      loom.yield %{{.*}} : f32, f32, f32
// CHECK:      arith.divf
// CHECK-NEXT: arith.constant 0.000000e+00 : f32
// CHECK-NEXT: arith.select
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: loom.yield
// CHECK-NOT:  loom.operation
!q = !loom.tensor<[0, 0, 0] : [4, 8, 4], f16>
!k = !loom.tensor<[0, 0, 0] : [2, 8, 4], f16>
!k4 = !loom.tensor<[0, 0, 0, 0] : [2, 2, 8, 4], f16>
!s = !loom.tensor<[0, 0, 0] : [4, 8, 8], f32>
!r = !loom.tensor<[0, 0] : [4, 8], f32>
!b = !loom.tensor<[0, 0] : [4, 8], i1>
!w = !loom.tensor<[0, 0] : [8, 8], i1>
!sb = !loom.tensor<[0, 0, 0] : [4, 8, 8], i1>
!p = !loom.tensor<[0, 0, 0] : [4, 8, 8], f16>
func.func @main(%q: !q, %k: !k, %v: !k, %mask: !w) -> !q {
  %k4 = loom.view %k : (g, r, j, c) -> (g, j, c) : !k -> !k4
  %kk = loom.reshape %k4 : !k4 -> !q
  %v4 = loom.view %v : (g, r, j, c) -> (g, j, c) : !k -> !k4
  %vv = loom.reshape %v4 : !k4 -> !q
  %s = loom.operation @scores over <[0, 0, 0, 0] : [4, 8, 8, 4]> [map, map, map, fold] by @add
         ins(%q : (h, i, j, c) -> (h, i, c), %kk : (h, i, j, c) -> (h, j, c)) outs((h, i, j) -> (h, i, j))
         wrap (%a: f16, %b: f16) {
           %z = arith.constant 0.7071 : f32
           %a1 = arith.extf %a : f16 to f32
           %b1 = arith.extf %b : f16 to f32
           %a2 = arith.mulf %a1, %z : f32
           %b2 = arith.mulf %b1, %z : f32
           %p = arith.mulf %a2, %b2 : f32
           loom.yield %p : f32 } : (!q, !q) -> !s
  %t = loom.operation @mask over <[0, 0, 0] : [4, 8, 8]> [map, map, map]
         ins(%s : (h, i, j) -> (h, i, j), %mask : (h, i, j) -> (i, j)) outs((h, i, j) -> (h, i, j))
         wrap (%c: f32, %ok: i1) {
           %none = arith.constant 0xFF800000 : f32
           %u = arith.select %ok, %c, %none : f32
           loom.yield %u : f32 } : (!s, !w) -> !s
  %m = loom.operation @max over <[0, 0, 0] : [4, 8, 8]> [map, map, fold] by @max
         ins(%t : (h, i, j) -> (h, i, j)) outs((h, i) -> (h, i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!s) -> !r
  %e = loom.operation @exp over <[0, 0, 0] : [4, 8, 8]> [map, map, map]
         ins(%t : (h, i, j) -> (h, i, j), %m : (h, i, j) -> (h, i)) outs((h, i, j) -> (h, i, j))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %r = math.exp %d : f32
           loom.yield %r : f32 } : (!s, !r) -> !s
  %l = loom.operation @sum over <[0, 0, 0] : [4, 8, 8]> [map, map, fold] by @add
         ins(%e : (h, i, j) -> (h, i, j)) outs((h, i) -> (h, i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!s) -> !r
  %p = loom.operation @div over <[0, 0, 0] : [4, 8, 8]> [map, map, map]
         ins(%e : (h, i, j) -> (h, i, j), %l : (h, i, j) -> (h, i)) outs((h, i, j) -> (h, i, j))
         wrap (%c: f32, %b: f32) {
           %r = arith.divf %c, %b : f32
           loom.yield %r : f32 } : (!s, !r) -> !s
  %n = loom.operation @seen over <[0, 0, 0] : [4, 8, 8]> [map, map, map]
         ins(%t : (h, i, j) -> (h, i, j)) outs((h, i, j) -> (h, i, j))
         wrap (%c: f32) {
           %none = arith.constant 0xFF800000 : f32
           %no = arith.cmpf oeq, %c, %none : f32
           %true = arith.constant true
           %yes = arith.xori %no, %true : i1
           loom.yield %yes : i1 } : (!s) -> !sb
  %any = loom.operation @any over <[0, 0, 0] : [4, 8, 8]> [map, map, fold] by @or
         ins(%n : (h, i, j) -> (h, i, j)) outs((h, i) -> (h, i))
         wrap (%c: i1) { loom.yield %c : i1 } : (!sb) -> !b
  %nany = loom.operation @not over <[0, 0] : [4, 8]> [map, map] ins(%any : (h, i) -> (h, i)) outs((h, i) -> (h, i))
         wrap (%c: i1) { %true = arith.constant true
           %no = arith.xori %c, %true : i1 loom.yield %no : i1 } : (!b) -> !b
  %g = loom.operation @guard over <[0, 0, 0] : [4, 8, 8]> [map, map, map]
         ins(%nany : (h, i, j) -> (h, i), %p : (h, i, j) -> (h, i, j)) outs((h, i, j) -> (h, i, j))
         wrap (%no: i1, %c: f32) { %z = arith.constant 0.0 : f32
           %u = arith.select %no, %z, %c : f32
           %h = arith.truncf %u : f32 to f16
           loom.yield %h : f16 } : (!b, !s) -> !p
  %o = loom.operation @mix over <[0, 0, 0, 0] : [4, 8, 4, 8]> [map, map, map, fold] by @add
         ins(%g : (h, i, d, j) -> (h, i, j), %vv : (h, i, d, j) -> (h, j, d)) outs((h, i, d) -> (h, i, d))
         wrap (%a: f16, %b: f16) {
           %a1 = arith.extf %a : f16 to f32
           %b1 = arith.extf %b : f16 to f32
           %p = arith.mulf %a1, %b1 : f32
           loom.yield %p : f32 }
         unwrap (%a: f32) { %h = arith.truncf %a : f32 to f16 loom.yield %h : f16 } : (!p, !q) -> !q
  func.return %o : !q
}

// RUN: tapestry-opt %s -p default > %t.mlir
// RUN: filecheck %s < %t.mlir
// RUN: tapestry equal %s %t.mlir | filecheck %s --check-prefix=EQUAL

// What torch.export and core ATen make of scaled_dot_product_attention(q, k, v, is_causal=True,
// enable_gqa=True) in float16, PyTorch 2.13: a scale on both sides, heads of keys repeated by
// expand and clone, a causal mask computed of two ranges and added, and a guard for rows that see
// nothing. The mask becomes a domain; the guard asks the maximum, and is applied to what is folded.
// EQUAL: equal (
// CHECK-LABEL: @main
// CHECK-NEXT: loom.fused
// CHECK-NEXT: aligned
// CHECK-NEXT: ins(%q, %k, %v)
// CHECK:      loom.operation
// CHECK:      domain(d3 - d4 >= 0)
// CHECK:      loom.operation
// CHECK:      domain({{.*}} >= 0)
// CHECK:      loom.yield %{{.*}} : f32, f32, f32
// CHECK:      assumes = ["finite({{.*}})", "finite(v
// CHECK-NOT:  loom.operation
// CHECK:      func.return
!q = !loom.tensor<[0, 0, 0, 0] : [2, 4, 8, 16], f16>
!k = !loom.tensor<[0, 0, 0, 0] : [2, 2, 8, 16], f16>
!qf = !loom.tensor<[0, 0, 0, 0] : [2, 4, 8, 16], f32>
!kf = !loom.tensor<[0, 0, 0, 0] : [2, 2, 8, 16], f32>
!k1 = !loom.tensor<[0, 0, 0, 0, 0] : [2, 2, 1, 8, 16], f32>
!k2 = !loom.tensor<[0, 0, 0, 0, 0] : [2, 2, 2, 8, 16], f32>
!kt = !loom.tensor<[0, 0, 0, 0] : [2, 4, 16, 8], f32>
!qb = !loom.tensor<[0, 0, 0] : [8, 8, 16], f32>
!kb = !loom.tensor<[0, 0, 0] : [8, 16, 8], f32>
!sb = !loom.tensor<[0, 0, 0] : [8, 8, 8], f32>
!s = !loom.tensor<[0, 0, 0, 0] : [2, 4, 8, 8], f32>
!t = !loom.tensor<[0, 0, 0, 0] : [2, 4, 8, 8], i1>
!r = !loom.tensor<[0, 0, 0, 0] : [2, 4, 8, 1], i1>
!i = !loom.tensor<[0] : [8], i64>
!i0 = !loom.tensor<[0, 0] : [1, 8], i64>
!i1 = !loom.tensor<[0, 0] : [8, 1], i64>
!ij = !loom.tensor<[0, 0] : [8, 8], i64>
!b = !loom.tensor<[0, 0] : [8, 8], i1>
!m = !loom.tensor<[0, 0] : [8, 8], f32>
!c = !loom.tensor<[] : [], f32>
!n = !loom.tensor<[] : [], i64>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %half = loom.constant 0.5 : !c
  %qf = weft.apply @cast(%q) {dtype = f32} : (!q) -> !qf
  %kf = weft.apply @cast(%k) {dtype = f32} : (!k) -> !kf
  %vf = weft.apply @cast(%v) {dtype = f32} : (!k) -> !kf
  %mul = weft.apply @mul(%qf, %half) : (!qf, !c) -> !qf
  %full = weft.apply @full() {shape = [8, 8], value = 1.0, dtype = i1} : () -> !b
  %arange = weft.apply @arange() {stop = 8, dtype = i64} : () -> !i
  %u = weft.apply @unsqueeze(%arange) {axes = [0]} : (!i) -> !i0
  %arange_1 = weft.apply @arange() {stop = 8, dtype = i64} : () -> !i
  %u_1 = weft.apply @unsqueeze(%arange_1) {axes = [1]} : (!i) -> !i1
  %sub = weft.apply @sub(%u, %u_1) : (!i0, !i1) -> !ij
  %zero = loom.constant 0 : !n
  %le = weft.apply @le(%sub, %zero) : (!ij, !n) -> !b
  %and = weft.apply @logical_and(%le, %full) : (!b, !b) -> !b
  %ninf = loom.constant "0x000080FF" : !c
  %fzero = loom.constant 0.0 : !c
  %where = weft.apply @where(%and, %fzero, %ninf) : (!b, !c, !c) -> !m
  %k1 = weft.apply @unsqueeze(%kf) {axes = [2]} : (!kf) -> !k1
  %k2 = weft.apply @expand(%k1) {shape = [2, 2, 2, 8, 16]} : (!k1) -> !k2
  %k3 = weft.apply @clone(%k2) : (!k2) -> !k2
  %k4 = weft.apply @reshape(%k3) {shape = [2, 4, 8, 16]} : (!k2) -> !qf
  %v1 = weft.apply @unsqueeze(%vf) {axes = [2]} : (!kf) -> !k1
  %v2 = weft.apply @expand(%v1) {shape = [2, 2, 2, 8, 16]} : (!k1) -> !k2
  %v3 = weft.apply @clone(%v2) : (!k2) -> !k2
  %v4 = weft.apply @reshape(%v3) {shape = [2, 4, 8, 16]} : (!k2) -> !qf
  %kt = weft.apply @permute(%k4) {dims = [0, 1, 3, 2]} : (!qf) -> !kt
  %mul_1 = weft.apply @mul(%kt, %half) : (!kt, !c) -> !kt
  %qe = weft.apply @expand(%mul) {shape = [2, 4, 8, 16]} : (!qf) -> !qf
  %qb = weft.apply @reshape(%qe) {shape = [8, 8, 16]} : (!qf) -> !qb
  %ke = weft.apply @expand(%mul_1) {shape = [2, 4, 16, 8]} : (!kt) -> !kt
  %kb = weft.apply @reshape(%ke) {shape = [8, 16, 8]} : (!kt) -> !kb
  %bmm = weft.apply @bmm(%qb, %kb) : (!qb, !kb) -> !sb
  %view = weft.apply @reshape(%bmm) {shape = [2, 4, 8, 8]} : (!sb) -> !s
  %add = weft.apply @add(%view, %where) : (!s, !m) -> !s
  %p = weft.apply @softmax(%add) {axis = 3} : (!s) -> !s
  %eq = weft.apply @eq(%add, %ninf) : (!s, !c) -> !t
  %not = weft.apply @logical_not(%eq) : (!t) -> !t
  %any = weft.apply @any(%not) {axis = [3], keepdim = true} : (!t) -> !r
  %not_1 = weft.apply @logical_not(%any) : (!r) -> !r
  %zeros = weft.apply @full_like(%p) {value = 0.0} : (!s) -> !s
  %safe = weft.apply @where(%not_1, %zeros, %p) : (!r, !s, !s) -> !s
  %pb = weft.apply @reshape(%safe) {shape = [8, 8, 8]} : (!s) -> !sb
  %vb = weft.apply @reshape(%v4) {shape = [8, 8, 16]} : (!qf) -> !qb
  %o = weft.apply @bmm(%pb, %vb) : (!sb, !qb) -> !qb
  %ov = weft.apply @reshape(%o) {shape = [2, 4, 8, 16]} : (!qb) -> !qf
  %oh = weft.apply @cast(%ov) {dtype = f16} : (!qf) -> !q
  func.return %oh : !q
}

// RUN: tapestry-opt %s -p weft-apply,loom-simplify,loom-fuse > %t.fused.mlir
// RUN: tapestry-opt %t.fused.mlir -p loom-derive --equal-each > %t.derived.mlir 2> %t.notes
// RUN: tapestry-opt %t.derived.mlir -p loom-simplify,loom-fuse > %t.again.mlir
// RUN: tapestry-opt %t.again.mlir -p loom-mask-to-domain --equal-each 2>> %t.notes | filecheck %s
// RUN: filecheck %s --check-prefix=EQUAL < %t.notes
// EQUAL-NOT: differs
// EQUAL: loom-derive: @attention: equal
// EQUAL: loom-mask-to-domain: @nothing_seen: equal

// What looks like attention and is none, or not quite: what becomes of it is read off projections and
// bodies. As many queries as keys, so that shapes do not tell.
!q = !loom.tensor<[0, 0] : [6, 4], f32>
!s = !loom.tensor<[0, 0] : [6, 6], f32>
!b = !loom.tensor<[0, 0] : [6, 6], i1>
!r = !loom.tensor<[0, 0] : [6, 1], f32>
!c = !loom.tensor<[] : [], f32>
!qi = !loom.tensor<[0, 0] : [6, 4], i32>
!si = !loom.tensor<[0, 0] : [6, 6], i32>

// Attention, to compare with.
// CHECK-LABEL: @attention
// CHECK: loom.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK: func.return
func.func @attention(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %o = weft.apply @matmul(%p, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Normalized over the queries (pytorch issue 196468): sums differ from key to key, and the product
// with the values is a pass of its own.
// CHECK-LABEL: @over_queries
// CHECK-NOT: f32, f32, f32
// CHECK: func.return
func.func @over_queries(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 0} : (!s) -> !s
  %o = weft.apply @matmul(%p, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Weights by their transpose: normalized over what is not folded.
// CHECK-LABEL: @transposed_weights
// CHECK-NOT: f32, f32, f32
// CHECK: func.return
func.func @transposed_weights(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %pt = weft.apply @transpose(%p) {perm = [1, 0]} : (!s) -> !s
  %o = weft.apply @matmul(%pt, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Values along rows, not along columns: attention all the same.
// CHECK-LABEL: @transposed_values
// CHECK: %v : (d0, d1, d2) -> (d1, d2))
// CHECK: loom.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK: func.return
func.func @transposed_values(%q: !q, %k: !q, %v: !loom.tensor<[0, 0] : [4, 6], f32>) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %vt = weft.apply @transpose(%v) {perm = [1, 0]} : (!loom.tensor<[0, 0] : [4, 6], f32>) -> !q
  %o = weft.apply @matmul(%p, %vt) : (!s, !q) -> !q
  func.return %o : !q
}

// A mask that is a large negative number: a row that sees nothing is the mean of all values, so keys
// that are masked do count, and there is no domain.
// CHECK-LABEL: @finite_mask
// CHECK-NOT: domain
// CHECK: loom.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK-NOT: domain
// CHECK: func.return
func.func @finite_mask(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %ones = weft.apply @ones() {shape = [6, 6], dtype = i1} : () -> !b
  %later = weft.apply @triu(%ones) : (!b) -> !b
  %low = loom.constant -1000000000.0 : !c
  %m = weft.apply @where(%later, %low, %s) : (!b, !c, !s) -> !s
  %p = weft.apply @softmax(%m) {axis = 1} : (!s) -> !s
  %o = weft.apply @matmul(%p, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Masked with its diagonal: the first row sees nothing. That is NaN, and remains it.
// CHECK-LABEL: @nothing_seen
// CHECK: domain(d0 - d1 - 1 >= 0)
// CHECK: domain(d0 - d2 - 1 >= 0)
// CHECK: arith.constant 0x7fc00000 : f32
// CHECK: assumes = ["finite(v)"]
// CHECK: func.return
func.func @nothing_seen(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %ones = weft.apply @ones() {shape = [6, 6], dtype = i1} : () -> !b
  %later = weft.apply @triu(%ones) : (!b) -> !b
  %low = loom.constant "0x000080FF" : !c
  %m = weft.apply @where(%later, %low, %s) : (!b, !c, !s) -> !s
  %p = weft.apply @softmax(%m) {axis = 1} : (!s) -> !s
  %o = weft.apply @matmul(%p, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Masked after the softmax: all keys count for the sum that divides, those seen for the product.
// So there is no domain: one pass it is, in which values that are not seen are multiplied by zero.
// CHECK-LABEL: @masked_weights
// CHECK-NOT: domain
// CHECK: loom.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK-NOT: domain
// CHECK: func.return
func.func @masked_weights(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %seen = weft.apply @tril(%p) : (!s) -> !s
  %o = weft.apply @matmul(%seen, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Exponentials of one tensor, relative to the maximum of another: that bounds nothing.
// CHECK-LABEL: @another_maximum
// CHECK: nothing that x{{.*}}*exp(x{{.*}}) is relative to bounds it
// CHECK: func.return
func.func @another_maximum(%s: !s, %t: !s, %v: !q) -> !q {
  %m = weft.apply @max(%s) {axis = [1], keepdim = true} : (!s) -> !r
  %d = weft.apply @sub(%t, %m) : (!s, !r) -> !s
  %e = weft.apply @exp(%d) : (!s) -> !s
  %o = weft.apply @matmul(%e, %v) : (!s, !q) -> !q
  %u = weft.apply @matmul(%s, %v) : (!s, !q) -> !q
  %w = weft.apply @add(%o, %u) : (!q, !q) -> !q
  func.return %w : !q
}

// Scaled after the softmax, which is no temperature.
// CHECK-LABEL: @scaled_weights
// CHECK: loom.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK: func.return
func.func @scaled_weights(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %two = loom.constant 2.0 : !c
  %z = weft.apply @mul(%p, %two) : (!s, !c) -> !s
  %o = weft.apply @matmul(%z, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Not divided by their sum: there is none in the state.
// CHECK-LABEL: @not_normalized
// CHECK-NOT: f32, f32, f32
// CHECK: loom.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK: func.return
func.func @not_normalized(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %m = weft.apply @max(%s) {axis = [1], keepdim = true} : (!s) -> !r
  %d = weft.apply @sub(%s, %m) : (!s, !r) -> !s
  %e = weft.apply @exp(%d) : (!s) -> !s
  %o = weft.apply @matmul(%e, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Keys that are values as well, and queries that are both.
// CHECK-LABEL: @one_tensor
// CHECK: loom.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// CHECK: func.return
func.func @one_tensor(%x: !q) -> !q {
  %t = weft.apply @transpose(%x) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%x, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %o = weft.apply @matmul(%p, %x) : (!s, !q) -> !q
  func.return %o : !q
}

// Normalized twice: the second softmax is of probabilities, a pass after the first.
// CHECK-LABEL: @twice
// CHECK: func.return
func.func @twice(%q: !q, %k: !q, %v: !q) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!q) -> !loom.tensor<[0, 0] : [4, 6], f32>
  %s = weft.apply @matmul(%q, %t) : (!q, !loom.tensor<[0, 0] : [4, 6], f32>) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %pp = weft.apply @softmax(%p) {axis = 1} : (!s) -> !s
  %o = weft.apply @matmul(%pp, %v) : (!s, !q) -> !q
  func.return %o : !q
}

// Products of integers, and no exponentials: nothing depends on a result, nothing is derived.
// CHECK-LABEL: @integers
// CHECK-NOT: loom.monoid
// CHECK-NOT: deriv
// CHECK: func.return
func.func @integers(%q: !qi, %k: !qi, %v: !qi) -> !qi {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!qi) -> !loom.tensor<[0, 0] : [4, 6], i32>
  %s = weft.apply @matmul(%q, %t) : (!qi, !loom.tensor<[0, 0] : [4, 6], i32>) -> !si
  %seen = weft.apply @tril(%s) : (!si) -> !si
  %o = weft.apply @matmul(%seen, %v) : (!si, !qi) -> !qi
  func.return %o : !qi
}

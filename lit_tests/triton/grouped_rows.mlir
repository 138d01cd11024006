// RUN: tapestry-opt %s -p default,loom-to-triton -t triton | filecheck %s

// Four heads of queries share keys: their rows are one axis of a tile, and blocks of it lie in one
// head each, because its rows are whole blocks. So the walk along the keys ends at the block's last
// row, as it does for one head.

// CHECK: value = tl.multiple_of(m_start % 1024, BLOCK_M)
// CHECK-NEXT: d3 = value + m_lanes
// CHECK: for k_start in range(0, tl.minimum(1024, value + BLOCK_M), BLOCK_K):
// CHECK: if value - (k_start + (BLOCK_K - 1)) >= 0:

!q = !loom.tensor<[0, 0, 0, 0] : [2, 8, 1024, 64], f16>
!k = !loom.tensor<[0, 0, 0, 0] : [2, 2, 1024, 64], f16>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %o = weft.apply @grouped_query_attention(%q, %k, %v) {causal = true} : (!q, !k, !k) -> !q
  func.return %o : !q
}

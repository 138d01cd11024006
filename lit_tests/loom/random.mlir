// RUN: tapestry-opt %s | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s
// RUN: tapestry-opt %s -p loom-fuse --equal-each | filecheck %s --check-prefix=FUSED
// RUN: tapestry-opt %s -p loom-to-triton -t triton | filecheck %s --check-prefix=TRITON

// A draw is a pure function of its seed and counter: fusing and reindexing keep the counter.

// CHECK:      %bits = loom.random word 1 of %s, %at : i32
// FUSED:      loom.operation @draw_read over <[0] : [4]> [map]
// FUSED:        %[[AT:.*]] = loom.index 0 : i64
// FUSED:        loom.random word 1 of %{{.*}}, %[[AT]] : i32
// TRITON:     words = tl.philox(seed, low, high, none, none)
// TRITON:     philox_word(seed, p.to(tl.int64), 1)
func.func @main(%seed: !loom.tensor<[] : [], i64>) -> !loom.tensor<[0] : [4], i32> {
  %drawn = loom.operation @draw over <[0] : [4]> [map]
         ins(%seed : (d0) -> ()) outs((d0) -> (d0))
         wrap (%s: i64) {
           %at = loom.index 0 : i64
           %bits = loom.random word 1 of %s, %at : i32
           loom.yield %bits : i32
         } : (!loom.tensor<[] : [], i64>) -> !loom.tensor<[0] : [4], i32>
  %y = loom.operation @read over <[0] : [4]> [map]
         ins(%drawn : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%b: i32) {
           %c = arith.xori %b, %b : i32
           %d = arith.addi %c, %b : i32
           loom.yield %d : i32
         } : (!loom.tensor<[0] : [4], i32>) -> !loom.tensor<[0] : [4], i32>
  func.return %y : !loom.tensor<[0] : [4], i32>
}

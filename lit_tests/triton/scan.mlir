// RUN: tapestry-opt %s -p 'loom-to-triton{tile=64}' | filecheck %s --check-prefix IR
// RUN: tapestry-opt %s -p 'loom-to-triton{tile=64}' -t triton | filecheck %s --check-prefix WHOLE
// RUN: tapestry-opt %s -p 'loom-shard{grid=1,2},loom-to-triton{tile=64}' -t triton | filecheck %s --check-prefix SHARDS
// RUN: tapestry-opt %s -p 'loom-to-triton{tile=64}' --print-op-generic | tapestry-opt | filecheck %s --check-prefix IR

!x = !loom.tensor<[0, 0] : [4, 100], f32>

// A block is scanned at once; its last state is carried to the next block.
// IR: scf.for
// IR: %[[S:.*]] = triton.scan "add" %{{.*}} along 1 : i64 : (tensor<1x64xf32>) -> tensor<1x64xf32>
// IR: %[[M:.*]] = arith.addf %{{.*}}, %[[S]]
// IR: triton.store %[[M]]
// IR: triton.reduce "last"

// WHOLE: acc_carried = tl.full([BLOCK_P], 0.0, tl.float32)
// WHOLE-NEXT: for k_start in range(0, 100, BLOCK_K):
// WHOLE: acc = tl.cumsum({{.*}}, axis=1)
// WHOLE: total = acc_carried[:, None] + acc
// WHOLE: tl.store({{.*}}, total, mask=
// WHOLE: tl.reduce({{.*}}, 1, combine_last)

// Where shards cut the scan, the carried state goes from launch to launch in a buffer.
// SHARDS: acc_carried = tl.load(acc_carried_ptr
// SHARDS: for k_start in range(d1_start, d1_end, BLOCK_K):
// SHARDS: tl.store(acc_carried_ptr
// SHARDS: y_acc_carried = allocate((4,), "float32", 0.0)
func.func @main(%x: !x) -> !x {
  %y = loom.operation @cumsum over <[0, 0] : [4, 100]> [map, scan] by @add
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x
  func.return %y : !x
}

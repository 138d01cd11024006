// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="twice: P = 64, masks = boundary"}' | filecheck %s
// RUN: tapestry-opt %s -p 'loom-to-triton{schedules="twice: P = 64, masks = boundary"}' -t triton | filecheck %s --check-prefix PRINTED

// Programs whose blocks are full have code of their own, without masks.

// CHECK:      %[[N:.*]] = arith.constant 99 : i32
// CHECK:      %[[END:.*]] = arith.addi %p_start, %{{.*}} : i32
// CHECK-NEXT: %[[FULL:.*]] = triton.compare "<=" %[[END]], %[[N]] : i32, i32 -> i1
// CHECK-NEXT: scf.if %[[FULL]] {
// CHECK-NEXT:   %a = triton.load %x_ptr[%p] :
// CHECK-NEXT:   %s = arith.addf %a, %a
// CHECK-NEXT:   triton.store %s to %y_ptr[%p] :
// CHECK-NEXT: } else {
// CHECK-NEXT:   triton.load %x_ptr[%p] mask %p_mask other
// CHECK:        triton.store %{{.*}} to %y_ptr[%p] mask %p_mask
// CHECK-NEXT: }

// PRINTED: if p_start + BLOCK_P <= 99:
// PRINTED-NEXT: x = tl.load(x_ptr + p)
// PRINTED-NEXT: tl.store(y_ptr + p, x + x)
// PRINTED-NEXT: else:
// PRINTED-NEXT: tl.load(x_ptr + p, mask=p_mask, other=0.0)

!x = !loom.tensor<[0] : [99], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @twice over <[0] : [99]> [map]
         ins(%x : (i) -> (i)) outs((i) -> (i))
         wrap (%a: f32) { %s = arith.addf %a, %a : f32 loom.yield %s : f32 } : (!x) -> !x
  func.return %y : !x
}

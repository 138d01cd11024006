// RUN: tapestry-opt %s -p default,loom-to-triton -t triton --split-input-file | filecheck %s

// A row whose total is NaN may have any exponentials: they are those that were summed.

!x = !loom.tensor<[0, 0] : [64, 128], f32>
// CHECK:        exp = tl.exp(x - tl.where(mask, 0.0, y_peak)[:, None])
// CHECK-NEXT:   y_total = tl.sum(exp, axis=1)
// CHECK-NEXT:   quotient = exp / tl.where(mask, float("nan"), y_total)[:, None]
func.func @main(%x: !x) -> !x {
  %y = weft.apply @softmax(%x) : (!x) -> !x
  func.return %y : !x
}

// -----

// Functions of NaN are NaN.
!x = !loom.tensor<[0, 0] : [64, 128], f32>
// CHECK:        tl.store({{.*}}, difference - tl.log(chosen)[:, None])
func.func @main(%x: !x) -> !x {
  %y = weft.apply @log_softmax(%x) : (!x) -> !x
  func.return %y : !x
}

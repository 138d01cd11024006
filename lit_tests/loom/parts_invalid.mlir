// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Parts of states over their own dimensions, rightly and wrongly; @both has a part over i, one over d.

// What is stored over fewer dimensions, and what is not, merge with each other.
// CHECK: loom.merge @both over <[0, 0] : [2, 6]> states(%a0, %a1, %a2, %a3)
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%a0: !loom.tensor<[0] : [2], f32>, %a1: !loom.tensor<[0] : [6], f32>, %a2: !loom.tensor<[0, 0] : [2, 6], f32>, %a3: !loom.tensor<[0] : [6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32> {
  %y = loom.merge @both over <[0, 0] : [2, 6]> states(%a0, %a1, %a2, %a3)
         : (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [6], f32>, !loom.tensor<[0, 0] : [2, 6], f32>, !loom.tensor<[0] : [6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 6], f32>
}

// -----

// CHECK: loom.application @both over <[0, 0, 0] : [2, 8, 6]> partial
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%s: !loom.tensor<[0, 0] : [2, 8], f32>, %v: !loom.tensor<[0, 0] : [8, 6], f32>) -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [6], f32>) {
  %p, %q = loom.application @both over <[0, 0, 0] : [2, 8, 6]> partial (%s <[0, 0] : [2, 8]>, %v <[0, 0] : [8, 6]>)
         : (!loom.tensor<[0, 0] : [2, 8], f32>, !loom.tensor<[0, 0] : [8, 6], f32>) -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [6], f32>)
  func.return %p, %q : !loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [6], f32>
}

// -----

// CHECK{LITERAL}: @both: result 1 is !loom.tensor<[0] : [5], f32>, but must be <[0] : [6]> of f32
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%s: !loom.tensor<[0, 0] : [2, 8], f32>, %v: !loom.tensor<[0, 0] : [8, 6], f32>) -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [5], f32>) {
  %p, %q = loom.application @both over <[0, 0, 0] : [2, 8, 6]> partial (%s <[0, 0] : [2, 8]>, %v <[0, 0] : [8, 6]>)
         : (!loom.tensor<[0, 0] : [2, 8], f32>, !loom.tensor<[0, 0] : [8, 6], f32>) -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [5], f32>)
  func.return %p, %q : !loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [5], f32>
}

// -----

// CHECK{LITERAL}: @both: state 1 is on <[0] : [7]>, outside <[0] : [6]>
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%a0: !loom.tensor<[0] : [2], f32>, %a1: !loom.tensor<[0] : [7], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32> {
  %y = loom.merge @both over <[0, 0] : [2, 6]> states(%a0, %a1)
         : (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [7], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 6], f32>
}

// -----

// CHECK{LITERAL}: @both: state 0 is on <[] : []>, outside <[0] : [2]>
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%a0: !loom.tensor<[] : [], f32>, %a1: !loom.tensor<[0] : [6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32> {
  %y = loom.merge @both over <[0, 0] : [2, 6]> states(%a0, %a1)
         : (!loom.tensor<[] : [], f32>, !loom.tensor<[0] : [6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 6], f32>
}

// -----

// CHECK{LITERAL}: @both: state 1 is on <[0, 0] : [1, 6]>, but state 0, a part of the same application's result, is on <[0] : [2]>
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%a0: !loom.tensor<[0] : [2], f32>, %a1: !loom.tensor<[0, 0] : [1, 6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32> {
  %y = loom.merge @both over <[0, 0] : [2, 6]> states(%a0, %a1)
         : (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0, 0] : [1, 6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 6], f32>
}

// -----

// The second part says that only some of d was folded, so the first must not stand for all of it.
// CHECK{LITERAL}: @both: state 0 is on <[0] : [2]> and so stands for all of <[0, 0] : [2, 6]>, but was folded over <[0, 0] : [2, 4]>; store it over all kept dimensions
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%a0: !loom.tensor<[0] : [2], f32>, %a1: !loom.tensor<[0, 0] : [2, 4], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32> {
  %y = loom.merge @both over <[0, 0] : [2, 6]> states(%a0, %a1)
         : (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0, 0] : [2, 4], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 6], f32>
}

// -----

// So does the application that made the state.
// CHECK{LITERAL}: @both: state 3 is on <[0] : [6]> and so stands for all of <[0, 0] : [2, 6]>, but was folded over <[1, 0] : [2, 6]>; store it over all kept dimensions
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%s: !loom.tensor<[0, 0] : [2, 8], f32>, %v: !loom.tensor<[0, 0] : [8, 6], f32>, %a: !loom.tensor<[0, 0] : [1, 6], f32>, %b: !loom.tensor<[0, 0] : [1, 6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32> {
  %p, %q = loom.application @both over <[1, 0, 0] : [2, 8, 6]> partial (%s <[1, 0] : [2, 8]>, %v <[0, 0] : [8, 6]>)
         : (!loom.tensor<[0, 0] : [2, 8], f32>, !loom.tensor<[0, 0] : [8, 6], f32>) -> (!loom.tensor<[1] : [2], f32>, !loom.tensor<[0] : [6], f32>)
  %y = loom.merge @both over <[0, 0] : [2, 6]> states(%a, %b, %p, %q)
         : (!loom.tensor<[0, 0] : [1, 6], f32>, !loom.tensor<[0, 0] : [1, 6], f32>, !loom.tensor<[1] : [2], f32>, !loom.tensor<[0] : [6], f32>) -> !loom.tensor<[0, 0] : [2, 6], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 6], f32>
}

// -----

// A part without points would hold nothing.
// CHECK{LITERAL}: @both: result 0 is !loom.tensor<[0] : [2], f32>, but must be <[0, 0] : [2, 0]> of f32
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }
func.func @main(%s: !loom.tensor<[0, 0] : [2, 8], f32>, %v: !loom.tensor<[0, 0] : [8, 6], f32>) -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [0], f32>) {
  %p, %q = loom.application @both over <[0, 0, 0] : [2, 8, 0]> partial (%s <[0, 0] : [0, 0]>, %v <[0, 0] : [0, 0]>)
         : (!loom.tensor<[0, 0] : [2, 8], f32>, !loom.tensor<[0, 0] : [8, 6], f32>) -> (!loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [0], f32>)
  func.return %p, %q : !loom.tensor<[0] : [2], f32>, !loom.tensor<[0] : [0], f32>
}

// -----

// CHECK{LITERAL}: @both: part 0 is stored over (d0, d1) -> (d1), but it varies over (d0, d1) -> (d0)
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (d), (i, d) -> (d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }

// -----

// More dimensions than a part varies along are no mistake.
// CHECK: parts((d0, d1) -> (d0), (d0, d1) -> (d0, d1))
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (i, d))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }

// -----

// CHECK{LITERAL}: @both: part 1 is stored over (d0, d1) -> (d1, d0); its rows must be kept dimensions, in order, (d0, d1) -> (d1) for example
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i), (i, d) -> (d, i))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }

// -----

// CHECK{LITERAL}: @both: 1 projections of parts, but the state has 2
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %x = arith.addf %a, %c : f32
  %y = arith.addf %b, %d : f32
  loom.yield %x, %y : f32, f32
}
loom.kernel @both [map, fold, map] by @pair ins((i, j, d) -> (i, j), (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
  parts((i, d) -> (i))
  wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
  unwrap (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32  loom.yield %r : f32 }

// -----

// CHECK{LITERAL}: @double: 1 projections of parts, but the state has 0
loom.kernel @double [map] ins((d0) -> (d0)) outs((d0) -> (d0)) parts((d0) -> (d0)) wrap (%c: f32) { loom.yield %c : f32 }
